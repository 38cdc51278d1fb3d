"""``mkldist bank``: build, show and verify banks of Gram matrices without running a sweep."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import SweepInputs, cluster_options, sweep_options
from mkldist.core.consoles import standard_error, standard_output
from mkldist.core.wording import pluralize
from mkldist.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from mkldist.run.cluster import ConnectOptions


@click.group("bank")
def command() -> None:
    """Build, show and verify banks of Gram matrices."""


@command.command("build")
@sweep_options
@cluster_options()
@json_option("folder", "banks", "blocks", "bytes")
def build(
    sweep: SweepInputs, output: Path | None, connect_options: ConnectOptions, as_json: bool
) -> None:
    """Compute the Gram matrices of sweep FILE that are missing or damaged."""
    from mkldist.core.memory import readable_bytes
    from mkldist.run.sweep import build_banks

    with sweep.naming():
        built = build_banks(
            sweep.load(),
            origin=sweep.file,
            data_dirs=sweep.data_dirs,
            output=output or sweep.results,
            connect_options=connect_options,
            console=standard_error(),
            allow_code=sweep.allow_code,
        )
    if as_json:
        print_json(
            {"folder": built.root, "banks": built.banks, "blocks": built.blocks,
             "bytes": built.bytes}
        )  # fmt: skip
        return
    click.echo(
        f"{pluralize(len(built.banks), 'bank')} in {built.root}: computed "
        f"{pluralize(built.blocks, 'block')}, "
        f"{readable_bytes(built.bytes)}"
    )


@command.command("show")
@click.argument("folder")
@json_option("banks")
def show(folder: str, as_json: bool) -> None:
    """List the banks in FOLDER (a path or a URL), e.g. results/banks."""
    rows = [_row(folder, bank) for bank in _banks(folder)]
    if as_json:
        print_json({"banks": rows})
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from mkldist.core.memory import readable_bytes

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("bank", no_wrap=True)
    for heading in ("data set", "kernels"):
        table.add_column(heading)
    for heading in ("M", "n", "dtype", "bytes", "blocks"):
        table.add_column(heading, justify="right")
    for row in rows:
        if row["damaged"]:
            table.add_row(row["id"], f"damaged: {row['damaged']}", style="red")
            continue
        table.add_row(
            row["id"],
            row["dataset"],
            row["kernels"],
            str(row["n_kernels"]),
            str(row["n_points"]),
            row["dtype"],
            readable_bytes(row["bytes"]),
            f"{row['blocks'] - row['missing_blocks']}/{row['blocks']}",
        )
    standard_output().print(table)


def _row(folder: str, bank: str) -> dict[str, Any]:
    """Return what is known of a bank; of a damaged one its id and the damage."""
    from mkldist.bank.store import open_store
    from mkldist.errors import StoreError

    try:
        store = open_store(folder, bank)
    except StoreError as error:
        return {"id": bank, "damaged": error.found}
    return {
        "id": bank,
        "damaged": "",
        "dataset": str(store.attrs.get("dataset", "")),
        "kernels": str(store.attrs.get("label", "")),
        "n_kernels": store.n_kernels,
        "n_points": store.n_points,
        "dtype": store.dtype.name,
        "bytes": store.n_bytes,
        "blocks": len(store.blocks),
        "missing_blocks": len(store.missing()),
    }


@command.command("verify")
@click.argument("folder")
@json_option("banks")
def verify(folder: str, as_json: bool) -> None:
    """Read every block of the banks in FOLDER (a path or a URL) and check it.

    Damaged blocks are marked as missing: the next sweep or 'mkldist bank build' computes them
    again.  The exit code is 2 if any block is damaged.
    """
    rows = []
    for bank in _banks(folder):
        rows.append(_verified(folder, bank))
        if not as_json:
            for line in _verdict(rows[-1]):
                click.echo(line)
    if as_json:
        print_json({"banks": rows})
    if any(row["damaged"] or row["damaged_blocks"] for row in rows):
        sys.exit(EXIT_BAD_INPUT)


def _verified(folder: str, bank: str) -> dict[str, Any]:
    """Read the blocks of a bank and mark damaged ones as missing; return what was found."""
    from mkldist.bank.store import open_store
    from mkldist.errors import StoreError

    try:
        store = open_store(folder, bank)
    except StoreError as error:
        return {"id": bank, "damaged": error.found, "damaged_blocks": []}
    bad = store.drop_damaged()
    absent = {block.index for block in store.missing()}
    return {
        "id": bank,
        "damaged": "",
        "blocks": len(store.blocks),
        "missing_blocks": len(absent - {*bad}),
        "damaged_blocks": bad,
    }


def _verdict(row: dict[str, Any]) -> Iterator[str]:
    """Yield lines on a bank that was verified."""
    if row["damaged"]:
        yield f"{row['id']}: damaged: {row['damaged']}"
        return
    bad, missing = row["damaged_blocks"], row["missing_blocks"]
    words = f"{len(bad)} damaged" if bad else "sound"
    words += f", {missing} missing" if missing else ""
    yield f"{row['id']}: {row['blocks']} blocks, {words}"
    for index in bad:
        yield f"  block {index}: marked as missing; a sweep will compute it"


def _banks(folder: str) -> list[str]:
    """Return the ids of the banks in a folder; raise a StoreError if there are none."""
    from mkldist.bank.store import list_banks
    from mkldist.errors import StoreError

    banks = list_banks(folder)
    if not banks:
        raise StoreError(folder, "no banks", "a folder of banks such as results/banks")
    return banks
