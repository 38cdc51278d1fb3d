"""``mkldist report``, ``export`` and ``scale``: pages, tables and fits of a sweep's results."""

from __future__ import annotations

from pathlib import Path

import click

from mkldist.cli.options import (
    PATH,
    complete_results,
    json_option,
    note_basis,
    overwrite_option,
    print_json,
    results_argument,
)
from mkldist.core.terminal import standard_output
from mkldist.results.export import ENDINGS, format_of


@click.command("report")
@click.argument("results", type=PATH, shell_complete=complete_results)
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
def report_command(
    results: Path, page: Path, figures: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Write the results of a sweep, running or finished, to one page.

    RESULTS is a sweep file, its name or the folder of its results.
    """
    from mkldist.report.page import check_name, check_target
    from mkldist.run.paths import results_of

    check_name(page)
    results = results_of(results)
    check_target(page, results, overwrite=overwrite)
    from mkldist.report.page import write_report

    report = write_report(results, page, figures, overwrite=overwrite)
    note_basis(results)
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


@click.command("export")
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=complete_results,
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(ENDINGS)),
    help="netcdf and zarr: the whole tree; parquet and csv: a row per run, and beside it a file of "
    "kernel weights.  [default: by the ending of --to, else netcdf]",
)
@click.option(
    "--to",
    "destination",
    type=click.Path(path_type=Path),
    help="File to write.  [default: NAME.nc, .zarr, .parquet or .csv here]",
)
@overwrite_option
def export_command(
    paths: tuple[Path, ...], kind: str | None, destination: Path | None, overwrite: bool
) -> None:
    """Write the results of the sweep PATH, or of several in one, to a file for other programs.

    PATH is the folder of its results, its file or its name.  Several must be of the same data and
    splits; a method that they have under one name has the name of its sweep, too.
    """
    from mkldist.errors import InputError
    from mkldist.results.export import export
    from mkldist.run.paths import results_of

    if kind is None:
        ending = destination.suffix if destination else ""
        kind = format_of(ending) if ending else "netcdf"
        if kind is None:
            wanted = f"a name that ends in {', '.join(ENDINGS.values())}, or a --format"
            raise InputError(f"--to {destination}", f"the ending {ending!r}", wanted)
    folders = [results_of(path) for path in paths]
    name = "-".join(folder.resolve().name for folder in folders)
    target = destination or Path(name + ENDINGS[kind])
    for file in export(folders, kind, target, overwrite=overwrite):
        click.echo(str(file))
    note_basis(*folders)


FOLDER = Path("scaling")


@click.command("scale")
@results_argument()
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
def scale_command(
    results: Path, folder: Path | None, over: tuple[str, ...], overwrite: bool, as_json: bool
) -> None:
    """Fit the times of a scaling study, running or finished: seconds = a size^k.

    RESULTS is a sweep file, its name or the folder of its results.  There is an exponent k with its
    95 % interval for each method, and the share of building, passes and solver in its time.
    """
    from mkldist.report.facts import records
    from mkldist.report.scaling import NO_FIGURES, scaling_study

    study = scaling_study(results, over)
    note_basis(results)
    target = folder or (None if as_json else FOLDER)
    if target is not None:
        study.write(target, results, overwrite=overwrite)
    if as_json:
        cautions = [f"{one.title}: {one.text}" for one in study.cautions]
        print_json(
            {"times": records(study.times), "fits": records(study.fits), "cautions": cautions}
        )
        return
    console = standard_output()
    for table in study.tables:
        console.print(table.for_terminal())
        console.print(table.caption, style="dim", highlight=False)
    for caution in study.cautions:
        click.echo(f"{caution.title}: {caution.text}")
    click.echo(f"tables:  scaling-times.csv and scaling-fits.csv in {target}")
    figures = f"figures: {len(study.charts)} in {target}" if study.charts else NO_FIGURES
    click.echo(figures)
