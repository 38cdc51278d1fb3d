"""``mkldist cluster``: whether a cluster is fit for sweeps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.options import encryption_options
from mkldist.core.consoles import standard_output
from mkldist.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from mkldist.run.doctor import Finding

WAIT_FOR_JOBS, WAIT_FOR_SCHEDULER = 60.0, 3.0


@click.group("cluster")
def command() -> None:
    """Check clusters."""


@command.command("check")
@click.argument("profile", type=click.Path(path_type=Path), required=False)
@click.option("--scheduler", metavar="ADDRESS", help="The running Dask scheduler to check instead.")
@encryption_options
@click.option(
    "--workers", type=click.IntRange(min=1), help="Workers to start.  [default: as in PROFILE]"
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder of results that workers are to share.",
)
@click.option(
    "--banks", metavar="FOLDER|URL", help="Folder or URL of stored banks.  [default: OUTPUT/banks]"
)
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    help="Seconds to wait for workers.  [default: 60 for PROFILE, 3 for --scheduler]",
)
@json_option("sound", "findings")
def check(
    profile: Path | None,
    scheduler: str | None,
    tls: Path | None,
    allow_unencrypted: bool,
    workers: int | None,
    output: Path,
    banks: str | None,
    wait: float | None,
    as_json: bool,
) -> None:
    """Start the cluster of the file PROFILE, or join a scheduler, and say what is missing.

    Checked are the scheduler, versions of packages, folders that workers share with this machine,
    the object store of banks, node caches, clocks, threads and memory.  What is started is stopped
    at the end.  The exit code is 2 if no sweep could run.
    """
    from mkldist.run.cluster import ConnectOptions
    from mkldist.run.doctor import examine_cluster

    if (profile is None) == (scheduler is None):
        raise click.UsageError("Give the file of a cluster or --scheduler ADDRESS, one of them.")
    options = ConnectOptions(
        scheduler, profile, workers, tls=tls, allow_unencrypted=allow_unencrypted
    )
    places = {"results": str(output), "banks": banks or str(output / "banks")}
    if wait is None:
        wait = WAIT_FOR_JOBS if profile else WAIT_FOR_SCHEDULER
    findings = list(examine_cluster(options, places, wait))
    sound = not any(finding.hinders for finding in findings)
    if as_json:
        print_json({"sound": sound, "findings": findings})
    else:
        _show(findings)
    if not sound:
        sys.exit(EXIT_BAD_INPUT)


def _show(findings: Sequence[Finding]) -> None:
    """Print a table of the findings, and what to do about them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("check", "state", "found"):
        table.add_column(heading, overflow="fold")
    for one in findings:
        state, style = "sound", "green"
        if one.advice:
            state, style = "note", "yellow"
        if one.hinders:
            state, style = "fault", "red"
        advice = f"\n→ {one.advice}" if one.advice else ""
        table.add_row(one.name, Text(state, style), Text(one.words + advice))
    standard_output().print(table)
