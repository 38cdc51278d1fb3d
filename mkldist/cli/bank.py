"""``mkldist bank``: build, show and verify banks of Gram matrices without running a sweep."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.options import GivenSweep, cluster_options, sweep_options
from mkldist.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from mkldist.run.cluster import ConnectOptions


@click.group("bank")
def command() -> None:
    """Build, show and verify banks of Gram matrices."""


@command.command("build")
@sweep_options
@cluster_options
def build(sweep: GivenSweep, output: Path | None, connect_options: ConnectOptions) -> None:
    """Compute the Gram matrices of sweep FILE that are missing or damaged."""
    from rich.console import Console

    from mkldist.cli.plan import readable_bytes
    from mkldist.run.build_banks import build_banks

    with sweep.naming():
        built = build_banks(
            sweep.load(),
            origin=sweep.file,
            data_dirs=sweep.data_dirs,
            output=output or sweep.results,
            connect_options=connect_options,
            console=Console(stderr=True),
            allow_code=sweep.allow_code,
        )
    click.echo(
        f"{len(built.banks)} banks in {built.root}: computed {built.blocks} blocks, "
        f"{readable_bytes(built.bytes)}"
    )


@command.command("show")
@click.argument("folder")
def show(folder: str) -> None:
    """List the banks in FOLDER (a path or a URL), e.g. results/banks."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from mkldist.cli.plan import readable_bytes
    from mkldist.errors import StoreError
    from mkldist.gram.store import GramStore

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("bank", no_wrap=True)
    for heading in ("data set", "kernels"):
        table.add_column(heading)
    for heading in ("M", "n", "dtype", "bytes", "blocks"):
        table.add_column(heading, justify="right")
    for bank in _banks(folder):
        try:
            store = GramStore.open(folder, bank)
        except StoreError as error:
            table.add_row(bank, f"damaged: {error.found}", style="red")
            continue
        n_blocks = len(store.blocks)
        table.add_row(
            bank,
            str(store.attrs.get("dataset", "")),
            str(store.attrs.get("label", "")),
            str(store.n_kernels),
            str(store.layout.n_points),
            store.dtype.name,
            readable_bytes(store.n_bytes),
            f"{n_blocks - len(store.missing())}/{n_blocks}",
        )
    Console().print(table)


@command.command("verify")
@click.argument("folder")
def verify(folder: str) -> None:
    """Read every block of the banks in FOLDER (a path or a URL) and check it.

    Damaged blocks are marked as missing: the next sweep or 'mkldist bank build' computes them
    again.  The exit code is 2 if any block is damaged.
    """
    from mkldist.errors import StoreError
    from mkldist.gram.store import GramStore

    n_damaged = 0
    for bank in _banks(folder):
        try:
            store = GramStore.open(folder, bank)
        except StoreError as error:
            click.echo(f"{bank}: damaged: {error.found}")
            n_damaged += 1
            continue
        bad, missing = store.verify(), len(store.missing())
        store.invalidate(bad)
        n_damaged += len(bad)
        words = f"{len(bad)} damaged" if bad else "sound"
        words += f", {missing} missing" if missing else ""
        click.echo(f"{bank}: {len(store.blocks)} blocks, {words}")
        for block in bad:
            click.echo(f"  block {block.index}: marked as missing; a sweep will compute it")
    if n_damaged:
        sys.exit(EXIT_BAD_INPUT)


def _banks(folder: str) -> list[str]:
    """Return the ids of the banks in a folder.

    Raises
    ------
    mkldist.errors.StoreError
        If there are none.
    """
    from mkldist.errors import StoreError
    from mkldist.gram.store import list_banks

    banks = list_banks(folder)
    if not banks:
        raise StoreError(folder, "no banks", "a folder of banks such as results/banks")
    return banks
