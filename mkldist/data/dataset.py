"""The two objects that every later stage receives: a data set and a split of its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.identity import array_id
from mkldist.core.wording import FROM_ZERO, RowLabels
from mkldist.data.source_columns import SourceColumns
from mkldist.data.summary import ImportSummary
from mkldist.data.texts import TextColumns, fingerprint_parts
from mkldist.spec.kinds import Imputation, MissingView, Task


def _no_rows() -> Ints:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Split:
    """Row indices of the parts of one partition.

    Parameters
    ----------
    train : (l,) intp
        Labelled rows, whose features and labels methods learn from.
    test : (t,) intp
        Held-out rows, whose features and labels no method sees.
    unlabelled : (u,) intp
        Rows whose features methods may use, but not their labels; none in supervised learning.
    """

    train: Ints
    test: Ints
    unlabelled: Ints = field(default_factory=_no_rows)

    @cached_property
    def known(self) -> Ints:
        """Rows whose features methods may use: training and unlabelled rows.

        They are ascending if there are unlabelled rows, else the training rows in their order.
        """
        return np.union1d(self.train, self.unlabelled) if len(self.unlabelled) else self.train

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of the index arrays."""
        unlabelled = (self.unlabelled,) if len(self.unlabelled) else ()
        return array_id(self.train, self.test, *unlabelled)


@dataclass(frozen=True)
class View:
    """A named block of features.

    Parameters
    ----------
    columns : tuple of int
        The features.
    missing : {"zero", "impute"} or None
        What holds for points without any value of the view: its kernels are zero there, or its
        features are filled.  None if there are no such points.
    """

    columns: tuple[int, ...]
    missing: MissingView | None = None


@dataclass(frozen=True, eq=False)
class GivenGrams:
    """A view that is given by its Gram matrices over all n points.

    Parameters
    ----------
    grams : (M, n, n) array
        The matrices, zero in the rows and columns of points that lack the view.  May be
        memory-mapped.
    present : (n,) bool
        Points that have the view.
    missing : {"zero"} or None
        As for :class:`View`.
    made_of : str
        Content id of what the matrices are computed from, beside the features; empty if they are
        data themselves.  It tells them from others, as their last bits may vary by machine.
    """

    grams: npt.NDArray[np.floating]
    present: Bools
    missing: MissingView | None = None
    made_of: str = ""

    @property
    def content(self) -> tuple[npt.NDArray[Any], ...]:
        """Arrays that tell these matrices from others."""
        return (np.array([self.made_of]),) if self.made_of else (self.grams, self.present)

    def of(self, rows: Ints) -> GivenGrams:
        """Return the matrices of some of the points."""
        grams = self.grams[:, rows[:, None], rows]
        return GivenGrams(grams, self.present[rows], self.missing)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set of classes or of real values, ready for kernels.

    Parameters
    ----------
    name : str
        The name under which results are stored.
    x : (n, d) float64, or None when `grams` is given
        Features; finite, or NaN where a value is missing and `impute` fills it, or where a point
        lacks an optional view.
    y : (n,) float64
        Labels: -1 and +1 for two classes; positions 0 … k-1 in `classes` for k > 2 classes; finite
        values in the user's units for regression.
    classes : tuple of str, or None
        The user's names of the classes, of two first that of -1, then that of +1; None for
        regression.
    feature_names : tuple of str
        d names.
    predefined : tuple of Split
        Partitions that came with the data; empty if there are none.
    groups : dict of str to tuple of int
        Named feature groups (column indices) for kernels on feature subsets.
    grams : (M, n, n) array, or None
        Precomputed Gram matrices over all n points instead of features.  May be memory-mapped.
    origin : str
        Where the data came from, for provenance.
    impute : {"median", "mean", "most_frequent"} or None
        Replacement of missing values; None if none is missing.
    row_groups : (n,) intp, or None
        Number of each row's group; the splits of a grouped data set keep the rows of a group
        together.
    weights : (n,) float64, or None
        Row weights from 0, which multiply losses; rows of weight 0 are in no training part.
    row_order : (n,) intp, or None
        Rows in the order of time; None if they are so already.
    views : dict of str to View
        Blocks of the features; those of no view belong to the data set's own file.
    given : dict of str to GivenGrams
        Views that are Gram matrices, beside the features.
    sparse : (n, d) csr_array, or None
        Features in compressed sparse rows instead of `x`.
    summary : ImportSummary
        How the data set was made of its source, for the user to read.
    columns : SourceColumns, optional
        The columns of the source that features are made of; None if each feature is a column.
    texts : TextColumns, optional
        Columns of texts, for kernels of texts.
    view_columns : dict of str to SourceColumns
        The same of each view with a file of its own; their features follow the others.
    ids : (n,) array of str, or None
        Names of the points, where views are Gram matrices.
    row_labels : RowLabels
        How messages name the points.
    """

    name: str
    x: Floats | None
    y: Floats
    classes: tuple[str, ...] | None
    feature_names: tuple[str, ...] = ()
    predefined: tuple[Split, ...] = ()
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    grams: npt.NDArray[np.floating] | None = None
    origin: str = ""
    impute: Imputation | None = None
    row_groups: Ints | None = None
    weights: Floats | None = None
    row_order: Ints | None = None
    views: dict[str, View] = field(default_factory=dict)
    given: dict[str, GivenGrams] = field(default_factory=dict)
    sparse: Any = None
    summary: ImportSummary = field(default_factory=ImportSummary)
    columns: SourceColumns | None = None
    texts: TextColumns | None = None
    view_columns: dict[str, SourceColumns] = field(default_factory=dict)
    ids: npt.NDArray[np.str_] | None = None
    row_labels: RowLabels = FROM_ZERO

    @property
    def task(self) -> Task:
        """``"classification"`` or ``"regression"``."""
        return "regression" if self.classes is None else "classification"

    @property
    def multiclass(self) -> tuple[str, ...]:
        """Names of the classes if there are more than two, else empty."""
        return self.classes if self.classes is not None and len(self.classes) > 2 else ()

    @property
    def class_numbers(self) -> Ints:
        """Position in `classes` of each row's class, (n,); for classification only."""
        numbers = self.y if self.multiclass else self.y > 0
        return numbers.astype(np.intp)

    @property
    def n_points(self) -> int:
        """Number of samples n."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features d; 0 for precomputed Gram matrices."""
        if self.sparse is not None:
            return int(self.sparse.shape[1])
        return 0 if self.x is None else self.x.shape[1]

    @property
    def weighing(self) -> Bools:
        """Which rows have a weight above zero, (n,)."""
        return np.ones(len(self.y), dtype=bool) if self.weights is None else self.weights > 0.0

    @cached_property
    def fingerprint(self) -> str:
        """Content hash of all that runs depend on: features, labels, task, weights, groups …."""
        task = () if self.classes is not None else (np.array([self.task]),)
        impute = () if self.impute is None else (np.array([self.impute]),)
        groups = () if self.row_groups is None else (self.row_groups,)
        weights = () if self.weights is None else (np.array(["weights"]), self.weights)
        optional = () if self.absent is None else (self.absent,)
        sparse = () if self.sparse is None else sparse_parts(self.sparse)
        given = [array for one in self.given.values() for array in one.content]
        texts = fingerprint_parts(self.texts)
        others = (*task, *impute, *groups, *weights, *optional, *given, *sparse, *texts)
        return array_id(self.x, self.y, self.grams, *others)

    @cached_property
    def absent(self) -> Bools | None:
        """Where features (n, d) are those of a view that a point lacks; None if nowhere."""
        return None if self.x is None else absent_of(self.x, self.views)


def lacking_rows(x: Floats, view: View) -> Bools:
    """Return which points have no value of a view at all, (n,)."""
    return np.asarray(np.isnan(x[:, view.columns]).all(axis=1))


def absent_of(x: Floats, views: Mapping[str, View]) -> Bools | None:
    """Return where features (n, d) are those of an optional view that a point lacks, or None."""
    found: Bools | None = None
    for view in views.values():
        if view.missing != "zero":
            continue
        lacking = np.flatnonzero(lacking_rows(x, view))
        if len(lacking):
            found = np.zeros(x.shape, dtype=bool) if found is None else found
            found[lacking[:, None], np.array(view.columns)] = True
    return found


def sparse_parts(matrix: Any) -> tuple[npt.NDArray[Any], ...]:
    """Return data, indices, row pointers and shape of a matrix in compressed sparse rows."""
    return matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape)
