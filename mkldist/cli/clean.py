"""``mkldist clean``: remove stored Gram matrices, which a sweep can compute again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.core.wording import pluralize

if TYPE_CHECKING:
    from mkldist.run.clean import StoredBank


@click.command("clean")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--yes", is_flag=True, help="Remove without asking.")
@click.option(
    "--banks",
    "named",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    multiple=True,
    help="Folder of banks elsewhere, from which --yes may remove too; repeatable.",
)
@json_option("banks", "bytes", "removed_bytes")
def command(path: Path, yes: bool, named: tuple[Path, ...], as_json: bool) -> None:
    """Remove the Gram matrices that the sweep PATH stored; print what and how much, and ask.

    PATH is the folder of a sweep's results, its file or its name; or a folder of many sweeps
    such as results, for all that they stored.  Records, results and snapshots stay.  A sweep that
    needs the Gram matrices later computes them again, also another one that shares them.  While a
    sweep uses a folder of banks, nothing is removed from it.  Results that were copied name the
    banks of the original: --yes removes nothing from a folder that is neither in PATH nor beside
    it, unless --banks names it.  --json asks nothing, and removes nothing without --yes.
    """
    from mkldist.core.memory import readable_bytes
    from mkldist.run.clean import check_roots, other_users, remove, stored_banks, total_bytes
    from mkldist.run.paths import results_of

    folder = results_of(path, several=True)
    banks = stored_banks(folder)
    if yes:
        check_roots(folder, banks, named)
    if as_json:
        users = other_users(folder, banks)
        rows = [
            {"folder": bank.root, "id": bank.id, "kernels": bank.words, "bytes": bank.n_bytes,
             "copy": bank.copy, "copy_bytes": bank.copy_bytes,
             "used_by": users.get((bank.root, bank.id), ())}
            for bank in banks
        ]  # fmt: skip
        n_bytes = total_bytes(banks)
        print_json({"banks": rows, "bytes": n_bytes, "removed_bytes": remove(banks) if yes else 0})
        return
    if not banks:
        click.echo(f"{path}: no Gram matrices are stored")
        return
    for line in _lines(folder, banks):
        click.echo(line)
    words = readable_bytes(total_bytes(banks))
    if not yes and not _agreed(f"Remove {words}?"):
        click.echo("nothing was removed; --yes removes without asking")
        return
    click.echo(f"removed {readable_bytes(remove(banks))}")


def _lines(folder: Path, banks: Sequence[StoredBank]) -> Iterator[str]:
    """Yield a line for the banks of each folder and data set, and one for their copies."""
    from mkldist.core.memory import readable_bytes
    from mkldist.run.clean import other_users, roots_elsewhere, staying

    elsewhere = roots_elsewhere(folder, banks)
    groups: dict[tuple[Path, str], list[StoredBank]] = {}
    for bank in banks:
        groups.setdefault((bank.root, bank.words), []).append(bank)
    for (root, words), those in groups.items():
        size = readable_bytes(sum(bank.n_bytes for bank in those))
        yield f"{root}: {pluralize(len(those), 'bank')} of {words}, {size}"
    shared = other_users(folder, banks)
    if shared:
        names = ", ".join(dict.fromkeys(name for users in shared.values() for name in users))
        which = (
            f"{pluralize(len(shared), 'bank of these is', 'banks of these are')} used by {names}"
        )
        them = "it" if len(shared) == 1 else "them"
        yield f"NOTE: {which} too, which computes {them} again if needed"
    for root, count in staying(banks).items():
        stays = pluralize(count, "bank stays", "banks stay")
        yield f"{root}: {stays}, which {folder.name} did not store"
    for root in elsewhere:
        yield f"NOTE: {root} is not beside {folder}: its banks may belong to other results"
    copies: dict[Path, list[StoredBank]] = {}
    for bank in banks:
        if bank.copy is not None:
            copies.setdefault(bank.copy.parent, []).append(bank)
    for cache, those in copies.items():
        size = readable_bytes(sum(bank.copy_bytes for bank in those))
        yield f"{cache}: {pluralize(len(those), 'copy', 'copies')} of them, {size}"


def _agreed(question: str) -> bool:
    """Ask; no answer means no."""
    try:
        return click.confirm(question)
    except click.Abort:
        click.echo()
        return False
