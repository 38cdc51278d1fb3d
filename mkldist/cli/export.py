"""``mkldist export``: results as one file for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from mkldist.cli.completion import complete_results
from mkldist.cli.left_out import tell_left_out
from mkldist.results.export import ENDINGS, format_of


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
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def command(
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
    tell_left_out(*folders)
