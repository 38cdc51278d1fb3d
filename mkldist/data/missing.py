"""Missing and infinite values of features: fill them, or refuse them with columns and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mkldist.arrays import Bools, Floats
from mkldist.data.dataset import Dataset, Split
from mkldist.data.listing import first_of
from mkldist.errors import DataError
from mkldist.row_places import FROM_ZERO, RowPlaces
from mkldist.spec.kinds import Imputation

MISSING_VALUES = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
SHOWN = 8


def check_values(
    x: Floats,
    feature_names: Sequence[str],
    impute: Imputation | None,
    where: str,
    absent: Bools | None = None,
    row_places: RowPlaces = FROM_ZERO,
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
    row_places : RowPlaces
        How a message names a row.

    Raises
    ------
    DataError
        For an infinite value; for missing values without `impute`, naming columns, counts and the
        first row; for a column without any value.
    """
    _refuse(
        np.isinf(x), feature_names, "infinite values", "finite numbers", _INFINITE, where,
        row_places,
    )  # fmt: skip
    missing = np.isnan(x)
    if not missing.any():
        return 0, 0
    empty = missing.all(axis=0)
    if absent is not None:
        missing &= ~absent
    if impute is None:
        _refuse(
            missing, feature_names, "missing values", "a number everywhere", _MISSING, where,
            row_places,
        )  # fmt: skip
    _refuse(
        np.broadcast_to(empty, x.shape), feature_names, "columns without any value",
        "at least one number per column", "Remove these columns", where,
    )  # fmt: skip
    return int(missing.any(axis=1).sum()), int(missing.any(axis=0).sum())


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
    with_gaps = np.flatnonzero(np.isnan(dataset.x).any(axis=0))
    for number, split in enumerate(splits):
        empty = np.isnan(dataset.x[np.ix_(split.known, with_gaps)]).all(axis=0)
        if empty.any():
            names = [repr(dataset.feature_names[column]) for column in with_gaps[empty].tolist()]
            raise DataError(
                f"data set {dataset.name!r}, split {number} of {len(splits)} (from 0)",
                f"no value of {first_of(names, SHOWN)} in its training part of {len(split.known)}",
                "a value of every feature, to fill missing ones with",
                'Ignore these columns, enlarge the training part, or set fit = "all" under '
                "[preprocessing]",
            )


def replacements(impute: Imputation, x: Floats) -> Floats:
    """Return the value that fills each feature where it is missing.

    It is that of scikit-learn's ``SimpleImputer``, whose import would cost every worker and every
    command a second.

    Parameters
    ----------
    impute : {"median", "mean", "most_frequent"}
        The median, the mean or the most frequent of the known values, of equally frequent ones the
        smallest.
    x : (r, d) float64
        Rows to take it from, with a value of every feature.

    Returns
    -------
    (d,) float64
    """
    return STRATEGIES[impute](x)


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


def _refuse(
    bad: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    feature_names: Sequence[str],
    found: str,
    expected: str,
    hint: str,
    where: str,
    row_places: RowPlaces | None = None,
) -> None:
    """Raise if any entry of the (n, d) mask `bad` is set, naming the first row if it tells."""
    counts = bad.sum(axis=0)
    columns = np.flatnonzero(counts)
    if not len(columns):
        return
    names = [f"{feature_names[c]!r} ({counts[c]})" for c in columns.tolist()]
    listed = first_of(names, SHOWN, "more columns")
    found = f"{found} in {listed}, of {len(bad)} rows"
    if row_places is not None:
        found += f", the first in {row_places.of(int(bad.any(axis=1).argmax()))}"
    raise DataError(where, found, expected, hint)
