"""Missing and infinite values of features: impute them, or refuse them with columns and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.listing import first_of
from mkldist.errors import DataError

MISSING_VALUES = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
SHOWN = 8


def complete(
    x: Floats, feature_names: Sequence[str], impute: Literal["median"] | None, where: str
) -> Floats:
    """Return features without missing values.

    Imputation takes the median of a column over all rows, training and test rows alike, so that
    all splits share one array of features.  It does not use labels.

    Parameters
    ----------
    x : (n, d) float64
        Features; NaN where a value is missing.
    feature_names : sequence of str
        d names.
    impute : {"median"} or None
        Replacement of missing values; None refuses them.
    where : str
        The place to name in a message.

    Returns
    -------
    (n, d) float64
        `x` itself if no value is missing.

    Raises
    ------
    DataError
        For an infinite value; for missing values without `impute`, naming columns and counts;
        for a column without any value.
    """
    _refuse(np.isinf(x), feature_names, "infinite values", "finite numbers", _INFINITE, where)
    missing = np.isnan(x)
    if not missing.any():
        return x
    if impute is None:
        _refuse(missing, feature_names, "missing values", "a number everywhere", _MISSING, where)
    empty = missing.all(axis=0)
    _refuse(
        missing & empty, feature_names, "columns without any value",
        "at least one number per column", "Remove these columns", where,
    )  # fmt: skip
    return np.where(missing, np.nanmedian(x, axis=0), x)


_INFINITE = "Correct them in the data; imputation fills missing values only"
_MISSING = 'Set impute = "median" for this data set, or remove those rows or columns'


def _refuse(
    bad: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
    feature_names: Sequence[str],
    found: str,
    expected: str,
    hint: str,
    where: str,
) -> None:
    """Raise if any entry of the (n, d) mask `bad` is set."""
    counts = bad.sum(axis=0)
    columns = np.flatnonzero(counts)
    if not len(columns):
        return
    names = [f"{feature_names[c]!r} ({counts[c]})" for c in columns.tolist()]
    listed = first_of(names, SHOWN, "more columns")
    raise DataError(where, f"{found} in {listed}, of {len(bad)} rows", expected, hint)
