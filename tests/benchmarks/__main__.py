"""``python -m tests.benchmarks``: measure each goal of the framework on this machine."""

from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from tests.benchmarks import (
    accelerator,
    judgement,
    many_points,
    many_runs,
    peers,
    predicting,
    python_call,
    reach,
    starting,
)
from tests.benchmarks.measuring import Measured

ROWS = (
    reach.ROWS
    | many_points.ROWS
    | many_runs.ROWS
    | python_call.ROWS
    | predicting.ROWS
    | starting.ROWS
    | accelerator.ROWS
    | judgement.ROWS
    | peers.ROWS
)
SLOW = (
    *("million", "larger-than-memory", *many_runs.ROWS, *accelerator.ROWS, *judgement.ROWS),
    *peers.ROWS,
    *(row for row in many_points.ROWS if row != "many-points"),
)


@click.command(epilog=f"Rows: {', '.join(ROWS)}.")
@click.argument("rows", nargs=-1, type=click.Choice(list(ROWS)))
@click.option(
    "--data-dir",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with ionosphere.csv and the other data sets of Xu et al. 2008.",
)
def main(rows: tuple[str, ...], data_dir: Path | None) -> None:
    """Measure ROWS, by default all but the longest, on one thread of linear algebra."""
    console = Console()
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("work", "took", "yardstick", "ratio", "aim", ""):
        table.add_column(heading, justify="left" if heading in ("work", "") else "right")
    with threadpool_limits(limits=1):
        for name in rows or [row for row in ROWS if row not in SLOW]:
            with console.status(name):
                for measured in ROWS[name](data_dir):
                    table.add_row(*_cells(measured))
    console.print(table)


def _cells(measured: Measured) -> list[str]:
    theirs, unit = measured.theirs, measured.unit if measured.unit == "s" else ""
    ratio = "" if theirs is None else f"{theirs / measured.ours:.2f}x"
    yardstick = "" if theirs is None else f"{theirs:.3g} {unit}"
    took = f"{measured.ours:.3g} {unit}".strip()
    return [measured.work, took, yardstick, ratio, measured.reach, measured.note]


if __name__ == "__main__":
    main()
