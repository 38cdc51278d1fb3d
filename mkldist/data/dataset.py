"""Data sets: raw data of a reader, the data set of every later stage, and their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.checksums import array_id
from mkldist.core.wording import FROM_ZERO, RowLabels, truncate
from mkldist.errors import DataError
from mkldist.spec.kinds import Imputation, MissingView, Task


@dataclass(frozen=True)
class ImportSummary:
    """What became of a source: the data taken, left out and encoded, and the oddities found."""

    label: str = ""  # the label column and how it was chosen; empty where a source has but one
    left_out: tuple[str, ...] = ()  # columns that are no features, and why
    encoded: tuple[str, ...] = ()  # columns of categories, and the number of their features
    constant: tuple[str, ...] = ()  # features that were dropped because they do not vary
    n_rows: int = 0  # of the source
    missing: tuple[int, int] = (0, 0)  # numbers of rows and of columns that miss values
    sparse: str = ""  # size of sparse features, and of dense ones; empty for dense features
    views: tuple[str, ...] = ()  # their sizes, and how many points lack them
    texts: tuple[str, ...] = ()  # columns, their lengths, and how many points lack them
    notes: tuple[str, ...] = ()  # what is legal but is often a mistake


@dataclass(frozen=True)
class SourceColumns:
    """How features were made of the columns of a source.

    Features are the columns of numbers in order, then one for each category of each column of
    categories; those at the positions `kept` are the features of the data set.
    """

    numbers: tuple[str, ...]  # constant ones included
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)  # "?" if missing
    label: str = ""  # empty where the source is no table
    others: tuple[str, ...] = ()  # columns that are neither label nor features
    id: str = ""  # the one of them that names the rows; empty for none
    kept: tuple[int, ...] | None = None  # features that vary; None for all
    start: int | None = None  # first index in a .svm file, 0 or 1; None for other sources
    texts: tuple[str, ...] = ()  # for kernels of texts of a model; no features are made of them
    format: dict[str, Any] = field(default_factory=dict)  # keys that say how the table is written

    @property
    def n_features(self) -> int:
        """Number of features before those that do not vary are dropped."""
        return len(self.numbers) + sum(map(len, self.categories.values()))

    @property
    def n_kept(self) -> int:
        """Number of features of the data set."""
        return self.n_features if self.kept is None else len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that features are made of."""
        return (*self.numbers, *self.categories)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns of features and of texts that new rows need: constant ones are not needed."""
        if self.kept is None:
            return (*self.names, *self.texts)
        kept = set(self.kept)
        numbers = [name for place, name in enumerate(self.numbers) if place in kept]
        return (*numbers, *self.categories, *self.texts)


SHOWN = 5


@dataclass(frozen=True)
class View:
    """A named block of features, or of columns of texts."""

    columns: tuple[int, ...]
    missing: MissingView | None = None
    """What holds for points without any value of the view: its kernels are zero there, or its
    features are filled; texts only allow for the former.  None if there are no such points."""


@dataclass(frozen=True, eq=False)
class TextColumns:
    """Texts of n points, perhaps in views."""

    names: tuple[str, ...]  # of t columns
    values: npt.NDArray[Any]  # (n, t) str objects; empty where a point has no text
    views: dict[str, View] = field(default_factory=dict)

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]]) -> TextColumns | None:
        """Return texts by the names of their columns; None without columns."""
        if not columns:
            return None
        return cls(tuple(columns), side_by_side(columns))

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """The columns of each view."""
        return {name: view.columns for name, view in self.views.items()}

    @property
    def may_lack(self) -> frozenset[int]:
        """Columns that points may have no text in, since a view says what then holds."""
        views = self.views.values()
        return frozenset(c for view in views if view.missing == "zero" for c in view.columns)

    @cached_property
    def absent(self) -> Bools:
        """Where points have no text, (n, t)."""
        return np.asarray(self.values == "", dtype=bool)

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """The texts as plain arrays: all bytes in UTF-8, row by row, and where each text ends."""
        return as_arrays(self.values)

    @classmethod
    def from_arrays(
        cls,
        names: Sequence[str],
        arrays: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]],
        views: dict[str, View],
    ) -> TextColumns:
        """Return the texts of which :attr:`arrays` gave the arrays."""
        return cls(tuple(names), from_arrays(*arrays), views)

    def of_rows(self, rows: Ints) -> TextColumns:
        """Return the texts of some of the points."""
        return replace(self, values=self.values[rows])

    def check(
        self, ids: npt.NDArray[np.str_] | None, where: str, row_labels: RowLabels = FROM_ZERO
    ) -> None:
        """Refuse columns that points have no text of, unless a view says what then holds."""
        allowed = self.may_lack
        for column, name in enumerate(self.names):
            rows = np.flatnonzero(self.absent[:, column]).tolist()
            if not rows or (column in allowed and len(rows) < len(self.values)):
                continue
            if len(rows) == len(self.values):
                raise DataError(
                    f"{where}: texts", f"no text at all in column {name!r}", "texts", "Ignore it"
                )
            points = row_labels.names(rows, ids)
            found = f"no text in column {name!r} for {len(rows)} of {len(self.values)} points "
            found += f"({truncate(points, SHOWN)})"
            expected = "a text for each point, or a view that says what holds without"
            hint = 'Set missing = "zero" for the view of this column, in [[datasets.views]] with '
            hint += f'columns = ["{name}"] or a file of its own; kernels are zero at these points'
            raise DataError(f"{where}: texts", found, expected, hint)

    def lines(self) -> Iterator[str]:
        """Yield each column in words: the lengths of its texts, and how many points lack one."""
        for column, name in enumerate(self.names):
            lengths = [len(text) for text in self.values[:, column] if text]
            line = f"{name!r}, of {min(lengths)} to {max(lengths)} letters"
            lacking = int(self.absent[:, column].sum())
            if lacking:
                line += f"; {lacking} of {len(self.values)} points have none: its kernels are zero"
                line += " there"
            yield line


def side_by_side(columns: Mapping[str, Sequence[str]]) -> Array:
    """Return at least one column of n texts as an array (n, t) of str objects."""
    values = np.empty((len(next(iter(columns.values()))), len(columns)), dtype=object)
    for place, texts in enumerate(columns.values()):
        values[:, place] = list(map(str, texts))
    return values


def as_arrays(texts: Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return texts, (n, t), as all of their bytes in UTF-8, and where each text ends."""
    encoded = [text.encode() for text in texts.ravel().tolist()]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), ends.reshape(texts.shape)


def from_arrays(content: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> Array:
    """Return the texts of :func:`as_arrays`, an array of str objects."""
    joined, stops = content.tobytes(), ends.ravel().tolist()
    values = np.empty(len(stops), dtype=object)
    starts = [0, *stops[:-1]]
    values[:] = [joined[a:b].decode() for a, b in zip(starts, stops, strict=True)]
    return values.reshape(ends.shape)


def fingerprint_parts(texts: TextColumns | None) -> tuple[npt.NDArray[Any], ...]:
    """Return the arrays that tell texts from others; none without texts."""
    return () if texts is None else (np.array(texts.names), *texts.arrays)


@dataclass(frozen=True, eq=False)
class Split:
    """Row indices of the parts of one partition."""

    train: Ints  # labelled rows, whose features and labels methods learn from
    test: Ints  # held-out rows, whose features and labels no method sees
    unlabelled: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    """Rows whose features methods may use, but not their labels; none in supervised learning."""

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


@dataclass(frozen=True, eq=False)
class GramView:
    """A view that is given by its Gram matrices over all n points."""

    grams: npt.NDArray[np.floating]  # (M, n, n), zero where points lack it; perhaps a memory map
    present: Bools  # (n,) points that have the view
    missing: MissingView | None = None  # as for View
    made_of: str = ""
    """Content id of what the matrices are computed from, beside the features; empty if they are
    data themselves.  It tells them from others, as their last bits may vary by machine."""
    names: tuple[str, ...] = ()  # of the matrices; empty for numbers

    @property
    def content(self) -> tuple[npt.NDArray[Any], ...]:
        """Arrays that tell these matrices from others."""
        return (np.array([self.made_of]),) if self.made_of else (self.grams, self.present)

    def of(self, rows: Ints) -> GramView:
        """Return the matrices of some of the points."""
        grams = self.grams[:, rows[:, None], rows]
        return GramView(grams, self.present[rows], self.missing, names=self.names)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set of classes or of real values, ready for kernels."""

    name: str  # under which results are stored
    x: Floats | None
    """Features (n, d), or None beside `grams` or `sparse`.  They are finite, or NaN where a value
    is missing that `impute` fills, or where a point lacks an optional view."""
    y: Floats
    """Labels (n,): -1 and +1 for two classes; positions 0 … k-1 in `classes` for k > 2 classes;
    finite values in the user's units for regression; NaN for rows that only unlabelled parts of
    splits may hold."""
    classes: tuple[str, ...] | None
    """The user's names of the classes, of two first that of -1; None for regression."""
    feature_names: tuple[str, ...] = ()
    predefined: tuple[Split, ...] = ()  # partitions that came with the data
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of features, by column
    grams: npt.NDArray[np.floating] | None = None  # (M, n, n) instead of features; perhaps mapped
    gram_names: tuple[str, ...] = ()  # of the matrices; empty for numbers
    apart: bool = False  # True if `grams` lacks the values between test points, and has zeros there
    origin: str = ""  # of the data, for provenance
    impute: Imputation | None = None  # None if no value is missing
    row_groups: Ints | None = None  # (n,) number of each row's group, which splits keep together
    group_names: tuple[str, ...] = ()  # by the numbers in `row_groups`
    weights: Floats | None = None  # (n,) from 0; rows of weight 0 are in no training part
    row_order: Ints | None = None  # (n,) rows in the order of time; None if they are so already
    views: dict[str, View] = field(default_factory=dict)  # blocks of the features
    given: dict[str, GramView] = field(default_factory=dict)  # views that are Gram matrices
    distances: dict[str, Floats] = field(default_factory=dict)  # (n, n) of graphs, by their files
    sparse: Any = None  # (n, d) csr_array instead of `x`
    summary: ImportSummary = field(default_factory=ImportSummary)  # for the user to read
    columns: SourceColumns | None = None  # that features are made of
    texts: TextColumns | None = None  # for kernels of texts
    view_columns: dict[str, SourceColumns] = field(default_factory=dict)
    """The same of each view with a file of its own; their features follow the others."""
    ids: npt.NDArray[np.str_] | None = None  # (n,) names of points, where views are Gram matrices
    row_labels: RowLabels = FROM_ZERO  # how messages name the points

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
        """Position in `classes` of each row's class, (n,), -1 without; for classification only."""
        numbers = self.y if self.multiclass else self.y > 0
        return np.where(self.labelled, numbers, -1).astype(np.intp)

    @property
    def labelled(self) -> Bools:
        """Which rows have a label, (n,)."""
        return ~np.isnan(self.y)

    @property
    def class_counts(self) -> Ints:
        """Number of rows of each class, (k,); for classification only."""
        return np.bincount(self.class_numbers[self.labelled], minlength=len(self.classes or ()))

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
        others += tuple(self.distances.values())
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


@dataclass(frozen=True, eq=False)
class RawData:
    """Features (or Gram matrices) and labels as the source has them.

    Fields that :class:`Dataset` has too mean the same there.
    """

    labels: npt.NDArray[Any]
    """(n,) text, numbers or bool in the user's own terms; missing labels are ``""`` or NaN."""
    x: Floats | None
    feature_names: tuple[str, ...] = ()
    partitions: tuple[Split, ...] = ()  # that came with the data
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    grams: npt.NDArray[Any] | None = None
    gram_names: tuple[str, ...] = ()
    apart: bool = False
    origin: str = ""
    task: Task = "classification"  # unless the user sets another
    of_splits: dict[str, npt.NDArray[np.str_]] = field(default_factory=dict)
    """Columns (n,) by which rows are divided, by name."""
    weights: npt.NDArray[Any] | None = None
    summary: ImportSummary = field(default_factory=ImportSummary)  # what became of the columns
    columns: SourceColumns | None = None  # None if each feature is a column
    label_name: str = ""  # the label column of a table
    ids: npt.NDArray[np.str_] | None = None
    views: dict[str, View] = field(default_factory=dict)
    given: dict[str, GramView] = field(default_factory=dict)
    sparse: Any = None
    file_groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Groups of files of groups, whose members that are no features are left out."""
    texts: TextColumns | None = None
    view_columns: dict[str, SourceColumns] = field(default_factory=dict)
    row_labels: RowLabels = FROM_ZERO
    own_memory: bool = False  # True if nothing else uses the memory of `x`: rows may move there
