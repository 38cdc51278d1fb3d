"""``mkldist scale``: how time grows with the number of kernels or of training points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.left_out import tell_left_out
from mkldist.core.consoles import standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from mkldist.analysis.growth import Growth
    from mkldist.report.scaling import ScalingStudy

FOLDER = Path("scaling")
EARLY, EVEN = " !", "  "  # marks of methods with and without runs that stopped early


@click.command("scale")
@click.argument("results", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option(
    "-o", "--output", "folder", type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder for two tables as CSV, and figures as PDF, SVG, PNG and CSV.  [default: "
    f"{FOLDER}; none with --json]",
)  # fmt: skip
@click.option(
    "--over",
    multiple=True,
    type=click.Choice(["n_kernels", "n_train"]),
    help="Size that grows.  [default: each that has several values]",
)
@click.option(
    "--overwrite", is_flag=True, help="Replace files that are not of an earlier call for RESULTS."
)
@json_option("times", "fits", "cautions")
def command(
    results: Path, folder: Path | None, over: tuple[str, ...], overwrite: bool, as_json: bool
) -> None:
    """Fit the times of a scaling study, running or finished: seconds = a size^k.

    RESULTS is a sweep file, its name or the folder of its results.  There is an exponent k with its
    95 % interval for each method, and the share of building, passes and solver in its time.
    """
    from mkldist.report.facts import records
    from mkldist.report.scaling import scaling_study
    from mkldist.run.paths import results_of

    path = results_of(results)
    study = scaling_study(path, over)
    tell_left_out(path)
    target = folder or (None if as_json else FOLDER)
    if target is not None:
        study.write(target, path, overwrite=overwrite)
    if as_json:
        cautions = [f"{one.title}: {one.text}" for one in study.cautions]
        print_json(
            {"times": records(study.times), "fits": records(study.fits), "cautions": cautions}
        )
        return
    _print_tables(study)
    for caution in study.cautions:
        click.echo(f"{caution.title}: {caution.text}")
    if study.note:
        click.echo(study.note)
    click.echo(f"tables:  scaling-times.csv and scaling-fits.csv in {target}")
    if study.charts:
        click.echo(f"figures: {len(study.charts)} in {target}")


def _print_tables(study: ScalingStudy) -> None:
    """Print a table for each size that grows, data set, bank and value of the other size."""
    from mkldist.analysis.growth import SIZES, overview
    from mkldist.report.facts import records

    console = standard_output()
    for growth in study.growths:
        places = ["dataset", "bank", growth.other]
        for (dataset, bank, value), rows in overview(growth).groupby(places, sort=False):
            at = f", {value:,} {SIZES[growth.other]}" if value else ""
            console.print(f"{dataset} · {bank}{at}", style="bold", highlight=False)
            console.print(_table(growth, records(rows)))
            console.print()


def _table(growth: Growth, rows: list[dict[str, Any]]) -> Table:
    """Return the exponents of the methods on one data set and bank."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from mkldist.analysis.growth import PARTS, SIZES, seconds_text
    from mkldist.report.scaling import interval_text, share_text, sizes_text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    table.add_column(SIZES[growth.over])
    for heading in ("exponent\n[95 %]", "seconds,\nlargest", *(f"{part}\n%" for part in PARTS)):
        table.add_column(heading, justify="right")
    marks = (EVEN, EARLY) if any(row["early"] for row in rows) else ("", "")
    for row in rows:
        table.add_row(
            str(row["method"]), sizes_text(row), f"{row['exponent']:.2f} {interval_text(row)}",
            seconds_text(row["at_largest"]) + marks[row["early"] > 0],
            *(share_text(row, part) for part in PARTS),
        )  # fmt: skip
    return table
