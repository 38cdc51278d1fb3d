"""``mkldist report``: a page of a sweep's results."""

from __future__ import annotations

from pathlib import Path

import click

from mkldist.cli.completion import complete_results


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option(
    "-o", "--output", "page", type=click.Path(path_type=Path), default=Path("report.html"),
    show_default=True, help="The page, an HTML file that needs no other.",
)  # fmt: skip
@click.option(
    "--figures", type=click.Path(file_okay=False, path_type=Path),
    help="Write each figure to this folder as PDF, SVG, PNG and CSV.",
)  # fmt: skip
def command(results: Path, page: Path, figures: Path | None) -> None:
    """Write the results of a sweep, running or finished, to one page.

    RESULTS is a sweep file, its name or the folder of its results.
    """
    from mkldist.report.page import write_report
    from mkldist.run.places import results_of

    report = write_report(results_of(results), page, figures)
    for sentence in report.headline:
        click.echo(sentence)
    if report.note:
        click.echo(report.note)
    click.echo(f"report:  {page}")
    if figures is not None:
        click.echo(f"figures: {len(report.charts)} in {figures}")
