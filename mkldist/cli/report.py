"""``mkldist report``: a page of a sweep's results."""

from __future__ import annotations

from pathlib import Path

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.json_output import json_option, print_json
from mkldist.cli.left_out import tell_left_out


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option(
    "-o", "--output", "page", type=click.Path(path_type=Path), default=Path("report.html"),
    show_default=True, help="The page, an HTML file that needs no other.",
)  # fmt: skip
@click.option(
    "--figures", type=click.Path(file_okay=False, path_type=Path),
    help="Write each figure to this folder as PDF, SVG, PNG and CSV, and each table as CSV.",
)  # fmt: skip
@click.option(
    "--overwrite", is_flag=True,
    help="Replace a file that is no page of this sweep, and files of figures and tables.",
)  # fmt: skip
@json_option("headline", "note", "page", "figures", "tables")
def command(
    results: Path, page: Path, figures: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Write the results of a sweep, running or finished, to one page.

    RESULTS is a sweep file, its name or the folder of its results.
    """
    from mkldist.report.page import check_name, check_target
    from mkldist.run.paths import results_of

    check_name(page)
    path = results_of(results)
    check_target(page, path, overwrite=overwrite)
    from mkldist.report.page import write_report

    report = write_report(path, page, figures, overwrite=overwrite)
    tell_left_out(path)
    if as_json:
        print_json(
            {
                "headline": report.headline,
                "note": report.note,
                "page": page,
                "figures": [f for one in report.charts for f in one.files(figures)]
                if figures
                else [],
                "tables": [one.file(figures) for one in report.tables] if figures else [],
            }
        )
        return
    for sentence in report.headline:
        click.echo(sentence)
    if report.note:
        click.echo(report.note)
    click.echo(f"report:  {page}")
    if figures is not None:
        click.echo(f"figures: {len(report.charts)}, and {len(report.tables)} tables, in {figures}")
