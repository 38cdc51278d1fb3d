"""Fitted models: everything that predictions on new rows need, and nothing else."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.blas_threads import single_threaded
from mkldist.errors import UnknownCategoryWarning
from mkldist.models.content import ModelContent
from mkldist.models.file import read_content, write_content
from mkldist.models.in_order import in_order
from mkldist.models.outcome import Labels
from mkldist.models.rows import array_rows, check_rows, frame_rows, unseen_lines

if TYPE_CHECKING:
    import pandas as pd

BLOCK_BYTES = 2**23  # of the features of the rows that one thread takes at a time
MOST_ROWS, FEWEST_ROWS = 8192, 64


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
            f"<Model: {origin}, {answer}, {self.n_kernels} kernels, {self.n_support} support "
            f"vectors, {len(self.feature_names)} features>"
        )

    @property
    def n_kernels(self) -> int:
        """Number of active kernels, those of each decision function counted."""
        return sum(len(function.kernels) for function in self.functions)

    @property
    def n_support(self) -> int:
        """Number of support vectors, those of each decision function counted."""
        return sum(len(function.points) for function in self.functions)

    @property
    def kernel_weights(self) -> pd.DataFrame:
        """Active kernels with their weights, and the class where each has weights of its own."""
        import pandas as pd

        tables = []
        for place, (function, weights) in enumerate(zip(self.functions, self.weights, strict=True)):
            names = function.kernels.names(self.feature_names)
            table = pd.DataFrame({"kernel": names, "weight": weights})
            if len(self.functions) > 1:
                table.insert(0, "class", [self.outcome.function_names[place]] * len(table))
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def predict(self, X: Any) -> Labels:
        """Return the predictions of rows: classes in the type of the labels, or real values.

        Parameters
        ----------
        X : (t, d) array-like or DataFrame
            Rows in the units of the data: the columns of a DataFrame by name, in any order; those
            of an array as they were when the model was fitted.

        Raises
        ------
        mkldist.errors.DataError
            For other columns, text where numbers should be, infinite values, and missing values
            that the model does not fill.

        Warns
        -----
        mkldist.errors.UnknownCategoryWarning
            For categories that the model does not know; such a row has none of the known ones.
        """
        return self.outcome.predictions(self._values(X))

    def decision_function(self, X: Any) -> Floats:
        """Return decision values, (t,), or (t, k) of k > 2 classes; real values as predicted.

        Parameters
        ----------
        X : (t, d) array-like or DataFrame
            As for :meth:`predict`, also for errors and warnings.
        """
        values = self._values(X)
        return values if values.shape[1] > 1 else values[:, 0]

    def values(self, x: Floats, where: str = "X", first: int = 0) -> Floats:
        """Return decision values of features (r, d) as the columns give them, (r, k).

        Parameters
        ----------
        x : (r, d) float64
            Features, neither filled nor scaled.
        where : str
            The place to name in a message.
        first : int
            Number of the first of these rows in its table, from 0.
        """
        filled = self.preprocessing.fill is not None
        check_rows(x, self.feature_names, where, filled=filled, first=first)
        points = np.ascontiguousarray(self.preprocessing.applied(x))
        return np.concatenate([function.values(points) for function in self.functions], axis=1)

    def rows_at_once(self) -> int:
        """Return the number of rows that a thread takes at a time."""
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
        write_content(self, Path(path))

    def _values(self, X: Any) -> Floats:
        """Return decision values of rows, (t, k), several blocks of them side by side."""
        x, unseen = self._features(X)
        if unseen:
            said = "X: " + "; ".join(unseen_lines(unseen))
            warnings.warn(said, UnknownCategoryWarning, stacklevel=3)
        step = self.rows_at_once()
        with single_threaded():
            blocks = in_order(
                lambda start: self.values(x[start : start + step], first=start),
                range(0, len(x), step),
            )
            return np.concatenate([np.empty((0, self._n_functions)), *blocks])

    def _features(self, X: Any) -> tuple[Floats, Counter[tuple[str, str]]]:
        if hasattr(X, "columns") and hasattr(X, "to_numpy"):
            rows, x = frame_rows(self.columns, X, "X")
            return x, rows.unseen
        return array_rows(self.columns, X, "X"), Counter()

    @property
    def _n_functions(self) -> int:
        return sum(len(function.bias) for function in self.functions)


def load_model(path: str | Path) -> Model:
    """Read a model that ``mkldist fit`` or :meth:`Model.save` wrote.

    Nothing in the file is executed or unpickled, and a file that was altered is refused.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    mkldist.errors.StoreError
        If the file is missing, is no model, is damaged, or has a newer format.

    Examples
    --------
    >>> import mkldist
    >>> model = mkldist.load_model("wdbc.model")  # doctest: +SKIP
    >>> model.predict(table)  # doctest: +SKIP
    """
    return Model(**vars(read_content(Path(path))))
