"""``mkldist export``: results as one file for other programs."""

from __future__ import annotations

from pathlib import Path

import click

FORMATS = {"netcdf": ".nc", "parquet": ".parquet", "csv": ".csv"}


@click.command("export")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    default="netcdf",
    show_default=True,
    help="netcdf: the whole tree; parquet and csv: one row per run.",
)
@click.option(
    "--to",
    "destination",
    type=click.Path(path_type=Path),
    help="File to write.  [default: NAME.nc, .parquet or .csv here]",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def command(path: Path, kind: str, destination: Path | None, overwrite: bool) -> None:
    """Write the results in folder PATH to one file."""
    from mkldist.results.export import export

    target = destination or Path(path.resolve().name + FORMATS[kind])
    export(path, kind, target, overwrite=overwrite)
    click.echo(str(target))
