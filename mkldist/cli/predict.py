"""``mkldist predict``: predictions of a model for the rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    required=True,
    help="CSV file to write.",
)
@click.option(
    "--view",
    "views",
    multiple=True,
    metavar="NAME=FILE",
    help="File of a view that stands beside DATA, e.g. expression=new.csv; may be repeated.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="COLUMN",
    help="Column of DATA, or VIEW.COLUMN, that the model does not know, to be left out; may be "
    "repeated.",
)
@click.option(
    "--threads",
    "n_threads",
    type=click.IntRange(min=1),
    help="Threads that predict.  [default: one per processor]",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--allow-code",
    is_flag=True,
    help="Import and call the kernel functions of a model that are not mkldist's own.",
)
def command(
    model: Path,
    data: Path,
    target: Path,
    views: tuple[str, ...],
    ignored: tuple[str, ...],
    n_threads: int | None,
    overwrite: bool,
    allow_code: bool,
) -> None:
    """Predict the rows of DATA by the file MODEL, and write a CSV file.

    DATA is a .csv, .tsv, .parquet, .npz or .svm file, or a .zarr folder, with the columns that the
    model was fitted on, in any order; a label column may be there and is not used.  Tables of any
    length take little memory.  The output has a row for each row of DATA: the name of the row if
    the sweep set id, the prediction, and for classes the decision values.

    A model of views from several files needs each of these by --view, joined to DATA by the column
    of ids.  A view of Gram matrices is a .npz file of kernel values between the rows of DATA and
    those of the model (grams, ids, points).
    """
    from mkldist.fit.model import load_model, write_predictions
    from mkldist.fit.new_rows import unseen_lines

    fitted = load_model(model, allow_code=allow_code)
    done = write_predictions(
        fitted, data, target, views=_files(views), ignored=ignored, overwrite=overwrite,
        n_threads=n_threads,
    )  # fmt: skip
    classes = fitted.labels.classes
    names = [] if classes is None else classes.tolist()
    counts = "".join(f", {name}: {done.counts[name]}" for name in names)
    click.echo(f"{target}: {done.n_rows} rows{counts}")
    for line in [*unseen_lines(done.unseen), *done.notes]:
        click.echo(f"note: {line}", err=True)


def _files(views: Sequence[str]) -> dict[str, Path]:
    """Return the files of ``NAME=FILE`` by the names of their views."""
    from mkldist.errors import InputError

    found: dict[str, Path] = {}
    for text in views:
        name, equals, file = text.partition("=")
        if not equals or not name.strip() or not file.strip():
            found_here, expected = "no name and file", "NAME=FILE, such as expression=new.csv"
            raise InputError(f"--view {text}", found_here, expected)
        if name.strip() in found:
            raise InputError(f"--view {text}", f"a second file of {name.strip()!r}", "one")
        found[name.strip()] = Path(file.strip())
    return found
