"""Features and labels as they come out of a file or generator, before labels become ±1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mkldist.errors import DataError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

NAMED_AT_MOST = 8


@dataclass(frozen=True, eq=False)
class Table:
    """A data set of any number of classes.

    Parameters
    ----------
    x : (n, d) float64
        Features; NaN where a value is missing.
    labels : (n,) str
        Labels as text; whole numbers without a decimal point.
    feature_names : tuple of str
        d names.
    train, test : tuple of (k,) intp
        Predefined partitions, equally many of both.
    origin : str
        Where the data came from.
    """

    x: Floats
    labels: npt.NDArray[np.str_]
    feature_names: tuple[str, ...]
    train: tuple[Ints, ...] = ()
    test: tuple[Ints, ...] = ()
    origin: str = ""


def as_text(labels: npt.ArrayLike) -> npt.NDArray[np.str_]:
    """Return labels as text, whole numbers without a decimal point.

    Examples
    --------
    >>> as_text([1.0, -1.0, 0.5]).tolist(), as_text(["a", "b"]).tolist()
    (['1', '-1', '0.5'], ['a', 'b'])
    """
    values = np.asarray(labels)
    if values.dtype.kind == "f":
        return np.array([f"{value:g}" for value in values.ravel()], dtype=np.str_)
    return np.array([str(value) for value in values.ravel()], dtype=np.str_)


def checked(table: Table, where: str, *, impute: bool) -> Table:
    """Return the table without missing values.

    Parameters
    ----------
    table : Table
        Data that may hold NaN.
    where : str
        The data set, for messages.
    impute : bool
        Replace missing values by the median of their column over all rows.

    Raises
    ------
    mkldist.errors.DataError
        For infinite values, missing values without `impute`, or a column without any value.
    """
    infinite = np.isinf(table.x).sum(axis=0)
    if infinite.any():
        raise DataError(where, f"infinite values in {_columns(table, infinite)}", "finite numbers")
    missing = np.isnan(table.x).sum(axis=0)
    if not missing.any():
        return table
    if not impute:
        raise DataError(
            where,
            f"missing values in {_columns(table, missing)}",
            "a value in every cell",
            'Set impute = "median" or remove these rows or columns',
        )
    empty = missing == len(table.x)
    if empty.any():
        raise DataError(where, f"no value at all in {_columns(table, empty)}", "some values")
    filled = np.where(np.isnan(table.x), np.nanmedian(table.x, axis=0), table.x)
    return Table(filled, table.labels, table.feature_names, table.train, table.test, table.origin)


def _columns(table: Table, counts: npt.NDArray[np.integer] | npt.NDArray[np.bool_]) -> str:
    """Name the columns with a positive count, and how many."""
    found = np.flatnonzero(counts)
    named = [f"{table.feature_names[j]} ({int(counts[j])})" for j in found[:NAMED_AT_MOST]]
    more = len(found) - len(named)
    return f"column {', '.join(named)}" + (f" and {more} more" if more > 0 else "")
