"""``mkldist doctor``: what a sweep will find on this machine."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from mkldist.run.doctor import Finding

WIDTH = 100
COLUMN = 15


@click.command("doctor")
@click.argument(
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    required=False,
)
@json_option("findings")
def command(folder: Path, as_json: bool) -> None:
    """Look at software, processors, memory, caches, and the disk of FOLDER, by default this one.

    A file of 64 MiB is written to FOLDER and removed.  The exit code is 2 if no sweep could run.
    The rates of this machine are measured, and stored for 'mkldist plan --workers'.
    """
    findings: list[Finding] = []
    for finding in _findings(folder):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json({"findings": findings})
    if any(finding.hinders for finding in findings):
        sys.exit(EXIT_BAD_INPUT)


def _findings(folder: Path) -> Iterator[Finding]:
    """Yield what is found; rates last, unless something hinders sweeps."""
    from mkldist.run.doctor import examine
    from mkldist.run.forecast import rates_finding

    hindered = False
    for finding in examine(folder):
        hindered |= finding.hinders
        yield finding
    if not hindered:
        yield rates_finding(folder)


def _print(finding: Finding) -> None:
    """Print a finding, wrapped, and its advice."""
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
