"""``mkldist status``: how far a sweep is, also while it runs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("status")
@click.argument("path", type=click.Path(path_type=Path))
def command(path: Path) -> None:
    """Print runs by state, errors and the summary so far of the sweep in folder PATH."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from mkldist.results.state import RunState
    from mkldist.results.status import sweep_status

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
    console.print(f"{status.name} in {status.path}\n", highlight=False, soft_wrap=True)
    console.print(table)
    if status.counts.get(RunState.COMPLETE, 0):
        from mkldist.analysis.tables import results_table
        from mkldist.results.tree import open_results

        console.print()
        console.print(results_table(open_results(path)))
    for failure in status.failed:
        console.print(f"failed {failure.node}: {failure.error}", highlight=False, soft_wrap=True)
