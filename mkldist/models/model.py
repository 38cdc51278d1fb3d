"""Fitted models: everything that predictions on new rows need, and nothing else."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array, Bools, Floats
from mkldist.blas_threads import single_threaded
from mkldist.counted import counted
from mkldist.data.dataset import absent_of, lacking_rows
from mkldist.data.frames import frame_texts
from mkldist.data.sparse_features import as_sparse, check_sparse
from mkldist.errors import DataError, UnknownCategoryWarning
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.models.content import ModelContent
from mkldist.models.file import read_content, write_content
from mkldist.models.in_order import in_order
from mkldist.models.new_views import WholeRows, completed, lacks, new_views, view_of_python
from mkldist.models.outcome import Labels
from mkldist.models.rows import (
    array_rows,
    check_rows,
    frame_columns_of_texts,
    frame_rows,
    unseen_lines,
)
from mkldist.row_places import FROM_ZERO, RowPlaces
from mkldist.spec.arguments import check_flags, given_path

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 2**23  # of the features of the rows that one thread takes at a time
MOST_ROWS, FEWEST_ROWS = 8192, 64
SPARSE_ROWS = 1024


class Model(ModelContent):
    """A fitted model: preprocessing, active kernels, support vectors and classes.

    ``mkldist fit`` and ``to_model`` of an estimator make models, :func:`mkldist.load_model` reads
    them.  A model needs neither the sweep nor the data that it was fitted on.

    Its fields are those of :class:`mkldist.models.content.ModelContent`.

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
