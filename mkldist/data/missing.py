"""Missing and infinite values of features: fill them, or refuse them with columns and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, truncate
from mkldist.data.dataset import Dataset, Split
from mkldist.data.row_blocks import row_blocks
from mkldist.errors import DataError
from mkldist.spec.kinds import Imputation

MISSING_VALUES = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
SHOWN = 8


def check_values(
    x: Floats,
    feature_names: Sequence[str],
    impute: Imputation | None,
    where: str,
    absent: Bools | None = None,
    row_labels: RowLabels = FROM_ZERO,
) -> tuple[int, int]:
    """Return the numbers of rows and of columns with missing values, which are to be filled.

    Parameters
    ----------
    x : (n, d) float64
        Features; NaN where a value is missing.
    feature_names : sequence of str
        d names.
    impute : {"median", "mean", "most_frequent"} or None
        Replacement of missing values; None refuses them.
    where : str
        The place to name in a message.
    absent : (n, d) bool, optional
        Features of views that points lack; they are not filled.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        For an infinite value; for missing values without `impute`, naming columns, counts and the
        first row; for a column without any value.
    """
    infinite, missing = _Tally(x.shape[1]), _Tally(x.shape[1])
    n_known = np.zeros(x.shape[1], dtype=np.intp)
    for rows in row_blocks(len(x), x.itemsize * x.shape[1]):
        infinite.add(np.isinf(x[rows]), rows.start)
        without = np.isnan(x[rows])
        n_known += len(without) - without.sum(axis=0)
        missing.add(without if absent is None else without & ~absent[rows], rows.start)
    infinite.refuse(
        feature_names, "infinite values", "finite numbers", _INFINITE, where, row_labels
    )
    if n_known.min(initial=len(x)) == len(x):
        return 0, 0
    if impute is None:
        missing.refuse(
            feature_names, "missing values", "a number everywhere", _MISSING, where, row_labels
        )
    empty = _Tally(x.shape[1], np.where(n_known == 0, len(x), 0), len(x))
    empty.refuse(
        feature_names, "columns without any value", "at least one number per column",
        "Remove these columns", where,
    )  # fmt: skip
    return missing.n_rows_with, int((missing.counts > 0).sum())


_INFINITE = "Correct them in the data; imputation fills missing values only"
_MISSING = 'Set impute = "median" for this data set, or remove those rows or columns'


def check_known_rows(dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse splits whose known rows have no value to fill a feature with.

    Raises
    ------
    DataError
        Naming the first such split and its features.
    """
    if dataset.x is None or (dataset.impute is None and dataset.absent is None):
        return
    x, has_gaps = dataset.x, np.zeros(dataset.n_features, dtype=bool)
    for rows in row_blocks(len(x), x.itemsize * x.shape[1]):
        has_gaps |= np.isnan(x[rows]).any(axis=0)
    with_gaps = np.flatnonzero(has_gaps)
    for number, split in enumerate(splits):
        empty = np.array([np.isnan(x[split.known, c]).all() for c in with_gaps], dtype=bool)
        if empty.any():
            names = [repr(dataset.feature_names[column]) for column in with_gaps[empty].tolist()]
            raise DataError(
                f"data set {dataset.name!r}, split {number} of {len(splits)} (from 0)",
                f"no value of {truncate(names, SHOWN)} in its training part of {len(split.known)}",
                "a value of every feature, to fill missing ones with",
                'Ignore these columns, enlarge the training part, or set fit = "all" under '
                "[preprocessing]",
            )


def replacements(impute: Imputation, x: Floats, rows: Ints | None = None) -> Floats:
    """Return the value that fills each feature where it is missing, some columns at a time.

    It is that of scikit-learn's ``SimpleImputer``, whose import would cost every worker and every
    command a second.

    Parameters
    ----------
    impute : {"median", "mean", "most_frequent"}
        The median, the mean or the most frequent of the known values, of equally frequent ones the
        smallest.
    x : (n, d) float64
        Features.
    rows : (r,) intp, optional
        Rows to take it from, with a value of every feature; by default all.

    Returns
    -------
    (d,) float64
    """
    n_rows = len(x) if rows is None else len(rows)
    found = np.empty(x.shape[1])
    for columns in row_blocks(x.shape[1], x.itemsize * n_rows):
        some = x[:, columns]
        found[columns] = STRATEGIES[impute](some if rows is None else some[rows])
    return found


def with_replacements(x: Floats, values: Floats, absent: Bools | None = None) -> Floats:
    """Return features (n, d) with `values`, (d,), in the place of missing ones.

    Features of views that points lack, where `absent` (n, d) is True, stay NaN.
    """
    missing = np.isnan(x)
    return np.where(missing if absent is None else missing & ~absent, values, x)


def _medians(x: Floats) -> Floats:
    return np.asarray(np.nanmedian(x, axis=0))


def _means(x: Floats) -> Floats:
    return np.asarray(np.nanmean(x, axis=0))


def _most_frequent(x: Floats) -> Floats:
    result = np.empty(x.shape[1])
    for column, values in enumerate(x.T):
        distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        result[column] = distinct[counts.argmax()]
    return result


STRATEGIES: Mapping[Imputation, Callable[[Floats], Floats]] = {
    "median": _medians,
    "mean": _means,
    "most_frequent": _most_frequent,
}


class _Tally:
    """Counts of some entries of an (n, d) array, by column, (d,), and by row, block by block.

    `first` is the first row with such entries, -1 if there is none.
    """

    def __init__(self, n_columns: int, counts: Ints | None = None, n_rows: int = 0) -> None:
        self.counts = np.zeros(n_columns, dtype=np.intp) if counts is None else counts
        self.n_rows, self.n_rows_with, self.first = n_rows, 0, -1

    def add(self, mask: Bools, start: int) -> None:
        """Count the entries of a block that begins at the row `start`."""
        self.n_rows += len(mask)
        if not mask.any():
            return
        self.counts += mask.sum(axis=0)
        with_any = mask.any(axis=1)
        self.n_rows_with += int(with_any.sum())
        if self.first < 0:
            self.first = start + int(with_any.argmax())

    def refuse(
        self,
        feature_names: Sequence[str],
        found: str,
        expected: str,
        hint: str,
        where: str,
        row_labels: RowLabels | None = None,
    ) -> None:
        """Raise if there is any entry, naming the first row if it tells."""
        columns = np.flatnonzero(self.counts)
        if not len(columns):
            return
        names = [f"{feature_names[c]!r} ({self.counts[c]})" for c in columns.tolist()]
        listed = truncate(names, SHOWN, "more columns")
        found = f"{found} in {listed}, of {self.n_rows} rows"
        if row_labels is not None:
            found += f", the first in {row_labels.of(self.first)}"
        raise DataError(where, found, expected, hint)
