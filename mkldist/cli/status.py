"""``mkldist status``: the progress of a sweep, also while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.completion import complete_results
from mkldist.results.state import RunState

if TYPE_CHECKING:
    from mkldist.results.status import SweepStatus


@click.command("status")
@click.argument("path", type=click.Path(path_type=Path), shell_complete=complete_results)
def command(path: Path) -> None:
    """Print the progress, summary so far and errors of the sweep PATH.

    PATH is the folder of its results, its file or its name.
    A run counts as waiting until its outcome is recorded.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from mkldist.results.status import sweep_status
    from mkldist.run.places import results_of

    path = results_of(path)
    status = sweep_status(path)
    console = Console()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("data set and method")
    for state in RunState:
        table.add_column(str(state), justify="right")
    for node, counts in status.by_node.items():
        table.add_row(node, *(str(counts.get(state, 0)) for state in RunState))
    table.add_section()
    table.add_row("all", *(str(status.counts.get(state, 0)) for state in RunState))
    console.print(f"{status.name} in {status.path}", highlight=False, soft_wrap=True)
    console.print(f"{_activity(status)}\n", highlight=False, soft_wrap=True)
    console.print(table)
    if status.counts.get(RunState.COMPLETE, 0):
        from mkldist.analysis.tables import recorded_table

        console.print()
        console.print(recorded_table(path))
        if status.counts.get(RunState.WAITING, 0):
            console.print("The table holds the results as last written; a sweep writes them anew")
            console.print("from time to time and at its end.", highlight=False)
    for failure in status.failed:
        settings = "".join(f", {name} = {value}" for name, value in failure.params.items())
        console.print(
            f"failed {failure.node}, split {failure.split}{settings}: {failure.error}",
            highlight=False,
            soft_wrap=True,
        )


def _activity(status: SweepStatus) -> str:
    """Return a phrase that says if a process is at work on the sweep."""
    claim = status.claim
    if claim is None or claim.is_live is False:
        waiting = status.counts.get(RunState.WAITING, 0)
        further = max(0, status.most_runs - status.n_runs)
        if not waiting + further:
            return "not at work; every run has an outcome"
        runs = f"{waiting} of {status.n_runs} runs to do"
        if status.most_runs:
            runs = f"at most {waiting + further} of {status.most_runs} runs of its search to do"
        return f"stopped with {runs}; the same mkldist sweep command resumes"
    if claim.is_live:
        return f"at work: {claim}"
    return f"claimed by {claim}; only that machine can tell whether it is still at work"
