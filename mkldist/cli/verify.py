"""``mkldist verify``: check all files of a sweep's results, and repair them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import data_dir_option
from mkldist.core.consoles import command_line
from mkldist.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from mkldist.run.verify import Checked

COLUMN = 11


@click.command("verify")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--repair", is_flag=True, help="Make damaged files anew.")
@data_dir_option("Folder in which --repair looks up data sets; may be repeated.")
@click.option(
    "--allow-code",
    is_flag=True,
    help="Let --repair call kernel functions that are not mkldist's own.",
)
@json_option("path", "sound", "checked", "repaired", "damaged")
def command(
    path: Path, repair: bool, data_dirs: tuple[Path, ...], allow_code: bool, as_json: bool
) -> None:
    """Read all files of the results PATH and check them: one line for each kind.

    PATH is the folder of a sweep's results, its file or its name.  --repair makes manifest,
    layout, snapshots and descriptions of banks anew, and removes damaged records, Gram matrices
    and graph Laplacians, which the sweep's command makes again.  The exit code is 2 if damage is
    found that is not repaired.
    """
    from mkldist.run.paths import results_of
    from mkldist.run.verify import verify

    folder = results_of(path)
    found = verify(folder)
    done: list[str] = []
    left = found
    damaged = {one.kind for one in found if one.damaged}
    if repair and damaged:
        from mkldist.run.verify import repair as repaired

        done = repaired(folder, damaged, data_dirs, allow_code=allow_code)
        left = verify(folder)
    if as_json:
        print_json(_document(folder, found, left, done))
    else:
        for line in (*_lines(found), *done, *_left(left if done else (), folder)):
            click.echo(line)
        if damaged and not repair:
            again = command_line("verify", folder, "--repair")
            click.echo(f"{again} makes anew what can be made anew")
    if any(one.damaged for one in left):
        sys.exit(EXIT_BAD_INPUT)


def _lines(found: Sequence[Checked]) -> Iterator[str]:
    """Yield a line for each kind of files, followed by the damaged ones."""
    for one in found:
        said = f"{len(one.damaged)} damaged" if one.damaged else "sound"
        noun = "record" if one.kind == "records" else "file"
        files = f"{one.files:,} {noun}{'s' * (one.files != 1)}"
        note = f" ({one.note})" if one.note else ""
        yield f"{one.kind:{COLUMN}}{files}, {said}{note}"
        for path in one.damaged:
            yield f"  {path}"


def _left(left: Sequence[Checked], folder: Path) -> Iterator[str]:
    """Yield the files that are damaged after a repair."""
    for one in left:
        for path in one.damaged:
            yield f"not repaired: {path}"
    if left and not any(one.damaged for one in left):
        yield f"{folder} is sound now"


def _document(
    folder: Path, found: Sequence[Checked], left: Sequence[Checked], done: Sequence[str]
) -> dict[str, object]:
    """Return what was found and done as JSON takes it."""
    return {
        "path": folder,
        "sound": not any(one.damaged for one in left),
        "checked": [
            {"kind": one.kind, "files": one.files, "damaged": one.damaged, "note": one.note}
            for one in found
        ],
        "repaired": done,
        "damaged": [path for one in left for path in one.damaged],
    }
