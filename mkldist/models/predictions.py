"""Predictions for the rows of a file, written as they are made, in bounded memory."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkldist.arrays import Floats
from mkldist.blas_threads import single_threaded
from mkldist.durable import check_free, remove_temporaries, replacing, writing
from mkldist.errors import DataError, OutputError, ending_words
from mkldist.models.blocks import Block, NewTable, opened_rows
from mkldist.models.in_order import in_order
from mkldist.models.model import Model
from mkldist.models.new_views import NewView, WholeRows, completed
from mkldist.models.rows import NewRows
from mkldist.models.view_files import ignored_of, view_files


@dataclass(frozen=True)
class Predicted:
    """Account of a file of predictions.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    counts : Counter
        Rows of each predicted class; empty for real values.
    unseen : Counter of (str, str)
        Rows of categories that the model does not know, by column and category.
    notes : tuple of str
        What else was left out.
    """

    n_rows: int
    counts: Counter[Any]
    unseen: Counter[tuple[str, str]]
    notes: tuple[str, ...] = ()


def write_predictions(
    model: Model,
    data: Path,
    target: Path,
    *,
    views: Mapping[str, Path] | None = None,
    ignored: Collection[str] = (),
    overwrite: bool = False,
    n_threads: int | None = None,
) -> Predicted:
    """Predict the rows of a file and write a CSV file, whole or not at all.

    The columns are that of the row names where the model knows one, ``prediction``, and for classes
    ``decision``, or ``decision[CLASS]`` of each of several classes.

    Parameters
    ----------
    model : Model
        The model.
    data : Path
        A ``.csv``, ``.tsv``, ``.parquet``, ``.npz`` or ``.svm`` file, or a zarr group.  Tables are
        read a block at a time.
    target : Path
        The file to write, which ends in ``.csv``.
    views : mapping of str to Path, optional
        Files of the views that stand beside this one, see :attr:`Model.needed_views`; they are held
        in memory.
    ignored : collection of str
        Columns to leave out; ``VIEW.COLUMN`` for those of a view.
    overwrite : bool
        Replace a file that is there.
    n_threads : int, optional
        Threads that predict; by default one for each processor.

    Raises
    ------
    mkldist.errors.DataError
        If the rows cannot be read or their columns differ from those of the model.
    mkldist.errors.OutputError
        If the file cannot be written or is there already.
    """
    _check_target(target, [data, *(views or {}).values()], overwrite=overwrite)
    counts: Counter[Any] = Counter()
    n_rows = 0
    joined = view_files(model, views or {}, ignored)
    of_views = {name for view in model.view_columns for name in ignored_of(view, ignored)}
    own = [name for name in ignored if name not in of_views]
    table = NewTable(model.columns, model.rows_at_once(), own, model.is_sparse)
    with (
        opened_rows(data, table) as file,
        writing(target),
        single_threaded(),
    ):
        remove_temporaries(target.parent)
        with (
            replacing(target) as temporary,
            temporary.open("x", newline="", encoding="utf-8") as stream,
        ):
            writer = csv.writer(stream)
            writer.writerow(_header(model, file.rows))
            for block, values in _predicted(model, data, file.blocks, joined.views, n_threads):
                labels = model.outcome.predictions(values).tolist()
                writer.writerows(_lines(model, block, labels, values))
                n_rows += len(labels)
                if model.outcome.classes is not None:
                    counts.update(labels)
            if not n_rows:
                raise DataError(str(data), "no rows", "at least one row to predict")
            notes = [file.note, *joined.notes, *(view.check_end() for view in joined.views)]
    unseen = sum((view.unseen for view in joined.views), file.rows.unseen)
    return Predicted(n_rows, counts, unseen, tuple(filter(None, notes)))


def _check_target(target: Path, read: Sequence[Path], *, overwrite: bool) -> None:
    if target.suffix != ".csv":
        ending = ending_words(target.suffix)
        raise OutputError(str(target), ending, "a name ending in '.csv'")
    if target.resolve() in [path.resolve() for path in read]:
        raise OutputError(str(target), "the file of the rows", "another file for predictions")
    check_free(target, overwrite=overwrite)


def _header(model: Model, rows: NewRows) -> list[str]:
    names = model.outcome.function_names
    decisions = [f"decision[{name}]" for name in names] or ["decision"]
    if model.outcome.classes is None:
        decisions = []
    return [*([rows.id] if rows.id else []), "prediction", *decisions]


def _predicted(
    model: Model,
    data: Path,
    blocks: Iterator[Block],
    views: Sequence[NewView],
    n_threads: int | None,
) -> Iterator[tuple[Block, Floats]]:
    """Yield blocks and their decision values, in order, some blocks side by side."""

    def work(item: tuple[Block, WholeRows]) -> tuple[Block, Floats]:
        block, rows = item
        return block, model.values(rows, str(data), block.row_places)

    whole = ((block, completed(model, block.x, block.texts, block.ids, views)) for block in blocks)
    yield from in_order(work, whole, n_threads)


def _lines(
    model: Model, block: Block, labels: Sequence[Any], values: Floats
) -> Iterator[tuple[Any, ...]]:
    """Return the fields of each row; numbers are written so that they read back unchanged."""
    columns: list[Sequence[Any]] = [] if block.ids is None else [block.ids]
    columns.append(labels)
    if model.outcome.classes is not None:
        columns += values.T.tolist()
    return zip(*columns, strict=True)
