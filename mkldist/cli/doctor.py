"""``mkldist doctor``: what a sweep will find on this machine."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import click

from mkldist.errors import EXIT_BAD_INPUT

WIDTH = 100
COLUMN = 15


@click.command("doctor")
@click.argument(
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    required=False,
)
def command(folder: Path) -> None:
    """Look at software, processors, memory, caches, and the disk of FOLDER, by default this one.

    A file of 64 MiB is written to FOLDER and removed.  The exit code is 2 if no sweep could run.
    """
    from mkldist.run.doctor import examine

    hindered = False
    for finding in examine(folder):
        hindered |= finding.hinders
        for line in textwrap.wrap(
            finding.words,
            WIDTH - COLUMN,
            initial_indent=f"{finding.name:{COLUMN}}",
            subsequent_indent=" " * COLUMN,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            click.echo(line)
        if finding.advice:
            color = "red" if finding.hinders else "yellow"
            click.echo(" " * COLUMN + click.style(f"→ {finding.advice}", fg=color))
    if hindered:
        sys.exit(EXIT_BAD_INPUT)
