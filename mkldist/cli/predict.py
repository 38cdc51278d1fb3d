"""``mkldist predict``: predictions of a model for the rows of a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mkldist.cli.json_output import json_option, print_json

if TYPE_CHECKING:
    from mkldist.fit.predictions import Score


@click.command("predict")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    help="CSV file to write; only --score does without it.",
)
@click.option(
    "--explain",
    is_flag=False,
    flag_value="auto",
    type=click.Choice(["auto", "views", "features", "kernels"]),
    help="Add what each view, each set of features or each kernel contributes to the decision "
    "values.  [default: views if the model has some, else features]",
)
@click.option("--score", is_flag=True, help="Compare the predictions with the labels of DATA.")
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
@json_option("file", "rows", "predicted", "score", "notes")
def command(
    model: Path,
    data: Path,
    target: Path | None,
    explain: str | None,
    score: bool,
    views: tuple[str, ...],
    ignored: tuple[str, ...],
    n_threads: int | None,
    overwrite: bool,
    allow_code: bool,
    as_json: bool,
) -> None:
    """Predict the rows of DATA by the file MODEL, and write a CSV file.

    DATA is a .csv, .tsv, .parquet, .npz or .svm file, or a .zarr folder, with the columns that the
    model was fitted on, in any order; a label column may be there and is not used, unless --score
    asks for it.  Tables of any length take little memory.  The output has a row for each row of
    DATA: the name of the row if the sweep set id, the prediction, and for classes the decision
    values, and the probabilities if the model is calibrated.

    A model of views from several files needs each of these by --view, joined to DATA by the column
    of ids.  A view of Gram matrices is a .npz file of kernel values between the rows of DATA and
    those of the model (grams, ids, points).
    """
    from mkldist.analysis.losses import standing_in
    from mkldist.errors import InputError
    from mkldist.fit.model import load_model
    from mkldist.fit.new_rows import unseen_lines
    from mkldist.fit.predictions import write_predictions

    if target is None and (explain or not score):
        raise InputError("mkldist predict", "no -o", "-o FILE.csv for the predictions, or --score")
    fitted = load_model(model, allow_code=allow_code)
    standing = standing_in(fitted.facts)
    if standing is not None and standing.no_better:
        click.echo(f"warning: this model is {standing.words}", err=True)
    if explain == "auto":
        explain = "views" if fitted.views or fitted.source_views else "features"
    done = write_predictions(
        fitted, data, target, views=_files(views), ignored=ignored, overwrite=overwrite,
        n_threads=n_threads, explained_by=explain, scored=score,
    )  # fmt: skip
    notes = [*unseen_lines(done.unseen), *done.notes]
    if explain and all(len({*own}) < 2 for _, own in fitted.parts(explain)):
        notes.append(
            f"all active kernels are one part by {explain}, so that no contribution is told from "
            "another: kernels of single features, groups or views have parts of their own"
        )
    if as_json:
        document = {"file": target, "rows": done.n_rows, "predicted": done.counts}
        print_json({**document, "score": done.score, "notes": notes})
        return
    classes = fitted.labels.classes
    names = [] if classes is None else classes.tolist()
    counts = "".join(f", {name}: {done.counts[name]}" for name in names)
    click.echo(f"{target or data}: {done.n_rows} rows{counts}")
    for line in [] if done.score is None else _score_lines(done.score):
        click.echo(line)
    for line in notes:
        click.echo(f"note: {line}", err=True)


def _score_lines(score: Score) -> list[str]:
    """Return the table of a score, and that of the numbers of rows by class and prediction."""
    from mkldist.core.metrics import METRICS

    table: list[tuple[str, ...]] = [("", "model", "constant answer")]
    for name, value in score.values.items():
        pair = [
            "-" if math.isnan(one) else METRICS[name].text(one)
            for one in (value, score.of_constant[name])
        ]
        table.append((METRICS[name].words, *pair))
    lines = _aligned(table)
    if score.confusion:
        names = list(score.confusion)
        counts = [(name, *map(str, row.values())) for name, row in score.confusion.items()]
        lines += ["", *_aligned([("label, predicted:", *names), *counts])]
    return lines


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return rows whose columns are as wide as their longest text, numbers at the right."""
    first, *others = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([row[0].ljust(first), *map(str.rjust, row[1:], others)]).rstrip() for row in table
    ]


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
