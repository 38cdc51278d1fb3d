"""Fitted models: everything that predictions on new rows need, and nothing else."""

from __future__ import annotations

import csv
import warnings
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.blas_threads import single_threaded
from mkldist.counted import counted
from mkldist.data.dataset import absent_of, lacking_rows
from mkldist.data.frames import frame_texts
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import as_sparse, check_sparse
from mkldist.data.texts import TextColumns
from mkldist.durable import check_free, remove_temporaries, replacing, writing
from mkldist.errors import DataError, OutputError, UnknownCategoryWarning, ending_words
from mkldist.fit.decision import Expansion
from mkldist.fit.model_file import Labels, ModelContent, ModelTexts, read_content, write_content
from mkldist.fit.new_rows import (
    Block,
    NewRows,
    NewTable,
    NewView,
    WholeRows,
    array_rows,
    check_rows,
    completed,
    frame_columns_of_texts,
    frame_rows,
    ignored_of,
    lacks,
    new_views,
    opened_rows,
    unseen_lines,
    view_files,
    view_of_python,
)
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.processors import n_processors
from mkldist.row_places import FROM_ZERO, RowPlaces
from mkldist.spec.arguments import check_flags, given_path

if TYPE_CHECKING:
    import pandas as pd


Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """Yield ``function(item)`` of each item, in order.

    An item is taken when a thread is about to be free, so that no more than one item beyond the
    threads is in memory.

    Parameters
    ----------
    function : callable
        Function that releases the interpreter's lock.
    items : iterable
        Its arguments, taken by the calling thread.
    n_threads : int, optional
        Number of threads; by default one for each processor.
    """
    threads = n_processors() if n_threads is None else n_threads
    if threads == 1:
        yield from map(function, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="mkldist-predict") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, eq=False)
class UsedTexts:
    """Decision functions that hold the texts of used columns alone, and what new rows bring.

    Parameters
    ----------
    columns : SourceColumns
        Columns of the table.
    view_columns : dict of str to SourceColumns
        Columns of the views with a table of their own.
    texts : ModelTexts, or None
        The columns of texts; None if no kernel uses one.
    functions : tuple of Expansion
        The functions.
    """

    columns: SourceColumns
    view_columns: dict[str, SourceColumns]
    texts: ModelTexts | None
    functions: tuple[Expansion, ...]

    @classmethod
    def of(
        cls,
        texts: TextColumns | None,
        functions: Sequence[Expansion],
        columns: SourceColumns,
        view_columns: Mapping[str, SourceColumns],
    ) -> UsedTexts:
        """Return the columns of texts that functions use, and these functions.

        Parameters
        ----------
        texts : TextColumns or None
            The texts that the functions were fitted on; None without any.
        functions : sequence of Expansion
            The functions, with the texts of all columns.
        columns : SourceColumns
            Columns of the table, without those of texts.
        view_columns : mapping of str to SourceColumns
            The same of the views with a table of their own.
        """
        if texts is None:
            return cls(columns, dict(view_columns), None, tuple(functions))
        used = _used(functions)
        optional = texts.may_lack
        of_views = {column: view for view in view_columns for column in texts.groups.get(view, ())}
        by_table: dict[str | None, list[int]] = {}
        for column in used.tolist():
            by_table.setdefault(of_views.get(column), []).append(column)
        own = [name for c, name in enumerate(texts.names) if c not in of_views]
        needed = [texts.names[c] for c in by_table.get(None, ())]
        return cls(
            _with_texts(columns, own, needed),
            {
                view: _of_view(view, one, [texts.names[c] for c in by_table.get(view, ())])
                for view, one in view_columns.items()
            },
            ModelTexts(
                tuple(texts.names[c] for c in used.tolist()),
                tuple(c in optional for c in used.tolist()),
            )
            if len(used)
            else None,
            tuple(
                function
                if function.texts is None
                else replace(function, texts=function.texts.on_columns(used))
                for function in functions
            ),
        )


def _used(functions: Sequence[Expansion]) -> Ints:
    """Return the columns of texts that functions use, ascending."""
    indices = [f.texts.kernels.subset_indices for f in functions if f.texts is not None]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *indices])).astype(np.intp)


def _with_texts(
    columns: SourceColumns, texts: Sequence[str], needed: Sequence[str]
) -> SourceColumns:
    """Return the columns of a table of which new rows need some texts; others may be there."""
    others = [name for name in (*columns.others, *texts) if name not in needed]
    return replace(columns, texts=tuple(needed), others=tuple(dict.fromkeys(others)))


def _of_view(view: str, columns: SourceColumns, needed: Sequence[str]) -> SourceColumns:
    """Return the columns of a view's table; its columns of texts carry the view's name here."""
    return _with_texts(columns, (), [name.removeprefix(f"{view}.") for name in needed])


BLOCK_BYTES = 2**23  # of the features of the rows that one thread takes at a time
MOST_ROWS, FEWEST_ROWS = 8192, 64
SPARSE_ROWS = 1024


class Model(ModelContent):
    """A fitted model: preprocessing, active kernels, support vectors and classes.

    ``mkldist fit`` and ``to_model`` of an estimator make models, :func:`mkldist.load_model` reads
    them.  A model needs neither the sweep nor the data that it was fitted on.

    Its fields are those of :class:`mkldist.fit.model_file.ModelContent`.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = mkldist.MKLClassifier(C=10.0).fit(X, y).to_model()
    >>> model.predict([[1.0, 1.0], [-1.0, 1.0]]).tolist()
    ['same', 'other']
    """

    def __repr__(self) -> str:
        """Return what the model is of and its size in one line, without arrays."""
        origin = f"{self.facts.get('method', 'model')} on {self.facts.get('dataset', 'data')}"
        classes = self.outcome.classes
        answer = "real values" if classes is None else f"classes {', '.join(map(str, classes))}"
        return (
            f"<Model: {origin}, {answer}, {counted(self.n_kernels, 'kernel')}, {self.n_support} "
            f"support vectors, {counted(len(self.feature_names), 'feature')}>"
        )

    @property
    def n_kernels(self) -> int:
        """Number of active kernels, those of each decision function counted."""
        return sum(function.n_kernels for function in self.functions)

    @property
    def n_support(self) -> int:
        """Number of support vectors, those of each decision function counted."""
        return sum(function.n_support for function in self.functions)

    @property
    def kernel_weights(self) -> pd.DataFrame:
        """Active kernels with their weights, and the class where each has weights of its own."""
        import pandas as pd

        tables = []
        for place, (function, weights) in enumerate(zip(self.functions, self.weights, strict=True)):
            text_names = () if self.texts is None else self.texts.names
            names = function.names(self.feature_names, text_names)
            table = pd.DataFrame({"kernel": names, "weight": weights})
            if len(self.functions) > 1:
                table.insert(0, "class", [self.outcome.function_names[place]] * len(table))
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def predict(self, X: Any, views: Mapping[str, Any] | None = None) -> Labels:
        """Return the predictions of rows: classes in the type of the labels, or real values.

        Parameters
        ----------
        X : (t, d) array-like, sparse array or DataFrame
            Rows in the units of the data: the columns of a DataFrame by name, in any order; those
            of an array as they were when the model was fitted.
        views : mapping of str to array-like or DataFrame, optional
            For each of :attr:`needed_views` its rows: a table, or, of a view of Gram matrices,
            kernel values (t, n) or (M, t, n) between the rows and the n of ``model.given.names``.
            Tables with the column of ids are joined by it to the rows of `X`, which then have
            theirs; others have the rows of `X` in their order, NaN where they lack the view.

        Raises
        ------
        mkldist.errors.DataError
            For other columns, text where numbers should be, infinite values, and missing values
            that the model does not fill; for views that are absent, unknown or cannot be joined.

        Warns
        -----
        mkldist.errors.UnknownCategoryWarning
            For categories that the model does not know; such a row has none of the known ones.
        """
        return self.outcome.predictions(self._values(X, views or {}))

    def decision_function(self, X: Any, views: Mapping[str, Any] | None = None) -> Floats:
        """Return decision values, (t,), or (t, k) of k > 2 classes; real values as predicted.

        Parameters
        ----------
        X, views
            As for :meth:`predict`, also for errors and warnings.
        """
        values = self._values(X, views or {})
        return values if values.shape[1] > 1 else values[:, 0]

    def values(
        self, rows: WholeRows, where: str = "X", row_places: RowPlaces = FROM_ZERO
    ) -> Floats:
        """Return decision values of r rows with all of their views, (r, k).

        Parameters
        ----------
        rows : WholeRows
            The rows.
        where : str
            The place to name in a message.
        row_places : RowPlaces
            How a message names a row.
        """
        absent = self._checked(rows.x, where, row_places)
        if self.texts is not None and rows.texts is not None:
            self.texts.check(rows.texts, where, row_places)
        if self.is_sparse:  # not filled
            points = self.preprocessing.scale.scaled(as_sparse(rows.x))
        else:
            points = np.ascontiguousarray(self.preprocessing.applied(rows.x, absent))
        parts = [function.values(points, rows.between, rows.texts) for function in self.functions]
        return np.concatenate(parts, axis=1)

    def rows_at_once(self) -> int:
        """Return the number of rows that a thread takes at a time."""
        if self.is_sparse:
            return SPARSE_ROWS
        width = 8 * max(1, len(self.feature_names))
        return max(FEWEST_ROWS, min(MOST_ROWS, BLOCK_BYTES // width))

    def save(self, path: str | Path) -> None:
        """Write the model to one file, whole or not at all; see :func:`mkldist.load_model`.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        mkldist.errors.OutputError
            If it cannot be written.
        """
        write_content(self, given_path("path", path))

    def _checked(self, x: Floats, where: str, row_places: RowPlaces) -> Bools | None:
        """Check features (r, d); return where they are those of views that rows lack, or None."""
        if is_sparse(x):
            if not self.is_sparse:
                hint = "Call X.toarray()"
                raise DataError(where, "sparse features", "dense ones, as the model has", hint)
            check_sparse(x, where, row_places)
            return None
        for name, view in self.views.items():
            lacking = lacking_rows(x, view) if view.missing is None else np.zeros(0)
            if lacking.any():
                names = row_places.names(np.flatnonzero(lacking).tolist())
                raise lacks(name, names, where)
        absent = absent_of(x, self.views)
        filled = self.preprocessing.fill is not None
        check_rows(
            x, self.feature_names, where, filled=filled, row_places=row_places, absent=absent
        )
        return absent

    def _values(self, X: Any, views: Mapping[str, Any]) -> Floats:
        """Return decision values of rows, (t, k), several blocks of them side by side."""
        x, texts, ids, unseen = self._features(X)
        read = partial(view_of_python, self)
        joined = new_views(self, views, read, "views")
        for view in joined:
            unseen = unseen + view.unseen
        if unseen:
            said = "X: " + "; ".join(unseen_lines(unseen))
            warnings.warn(said, UnknownCategoryWarning, stacklevel=3)
        whole = completed(self, x, texts, ids, joined)
        for view in joined:
            view.check_end()
        step = self.rows_at_once()

        def of_block(start: int) -> Floats:
            part = whole.part(slice(start, start + step))
            return self.values(part, row_places=FROM_ZERO.after(start))

        with single_threaded():
            blocks = in_order(of_block, range(0, x.shape[0], step))
            return np.concatenate([np.empty((0, self._n_functions)), *blocks])

    def _features(
        self, X: Any
    ) -> tuple[Floats, Array | None, Sequence[str] | None, Counter[tuple[str, str]]]:
        """Return features, texts and names of rows, and categories that the model does not know."""
        if hasattr(X, "columns") and hasattr(X, "to_numpy"):
            rows, x = frame_rows(self.columns, X, "X")
            ids = frame_texts(X[rows.id], "X") if rows.id and self.source_views else None
            return x, frame_columns_of_texts(self.columns, X, "X"), ids, rows.unseen
        given = as_sparse(X) if hasattr(X, "tocsr") else X
        return array_rows(self.columns, given, "X"), None, None, Counter()

    @property
    def _n_functions(self) -> int:
        return sum(len(function.bias) for function in self.functions)


def load_model(path: str | Path, *, allow_code: bool = False) -> Model:
    """Read a model that ``mkldist fit`` or :meth:`Model.save` wrote.

    Nothing in the file is executed or unpickled, and a file that was altered is refused.  Of kernel
    functions of one's own it holds the names alone; the functions themselves are imported if
    `allow_code` says so, and must give the kernel values that they gave in the fit.

    Parameters
    ----------
    path : str or Path
        The file.
    allow_code : bool
        True to import and call kernel functions that are not mkldist's.  The folder of the file is
        searched first.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format; if it names such
        functions and `allow_code` is not set, or they give other values.
    mkldist.errors.SpecError
        If such a function cannot be imported, `path` is no path, or `allow_code` is neither True
        nor False.

    Examples
    --------
    >>> import mkldist
    >>> model = mkldist.load_model("wdbc.model")  # doctest: +SKIP
    >>> model.predict(table)  # doctest: +SKIP
    """
    check_flags(allow_code=allow_code)
    return Model(**vars(read_content(given_path("path", path), allow_code=allow_code)))


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
