"""Train/test partitions that come with the data, as arrays of row indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.data.dataset import Ints, Split
from mkldist.errors import DataError

# What the arrays are called: by mkldist, and in files of semi-supervised benchmarks.
ARRAY_NAMES = (("train", "test"), ("idx_labs", "idx_unls"))


def partitions_of(
    arrays: Mapping[str, npt.NDArray[Any]], n_points: int, where: str
) -> tuple[Split, ...]:
    """Return the partitions among the arrays of a file; none if it has none.

    Parameters
    ----------
    arrays : mapping of str to array
        ``train`` (R, n_train) and ``test`` (R, n_test) indices from 0, one row a partition, or
        one-dimensional for a single one; or ``idx_labs`` and ``idx_unls`` in their place.
    n_points : int
        Number of points n.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If only one of the two arrays is there, they do not fit each other, an index is not an
        integer in 0…n-1, stands twice, or is in both parts.
    """
    for train_name, test_name in ARRAY_NAMES:
        pair = [name for name in (train_name, test_name) if name in arrays]
        if len(pair) == 1:
            other = test_name if pair[0] == train_name else train_name
            raise DataError(
                where,
                f"an array {pair[0]!r} without {other!r}",
                "both, with one row of indices a partition",
                f"Add {other!r} or remove {pair[0]!r}.",
            )
        if pair:
            train = _rows(arrays[train_name], f"{where}, array {train_name!r}")
            test = _rows(arrays[test_name], f"{where}, array {test_name!r}")
            names = (train_name, test_name)
            return _paired(train, test, names, n_points, where)
    return ()


def restricted(partitions: Sequence[Split], rows: Ints, n_points: int) -> tuple[Split, ...]:
    """Return partitions of `rows` alone, numbered by their places in `rows`."""
    if len(rows) == n_points:
        return tuple(partitions)
    place = np.full(n_points, -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))

    def kept(indices: Ints) -> Ints:
        moved = place[indices]
        return moved[moved >= 0]

    return tuple(Split(kept(split.train), kept(split.test)) for split in partitions)


def _rows(array: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    if array.dtype.kind not in "iu":
        raise DataError(
            where,
            f"an array of {array.dtype}",
            "integers: indices of rows from 0",
            "np.flatnonzero turns a mask into indices."
            if array.dtype.kind == "b"
            else "Save them as integers: indices.astype(int).",
        )
    if array.ndim not in (1, 2):
        raise DataError(
            where, f"shape {array.shape}", "one row of indices a partition", "Reshape it."
        )
    return np.atleast_2d(array)


def _paired(
    train: npt.NDArray[Any],
    test: npt.NDArray[Any],
    names: tuple[str, str],
    n_points: int,
    where: str,
) -> tuple[Split, ...]:
    if len(train) != len(test):
        raise DataError(
            where,
            f"{len(train)} rows in {names[0]!r} but {len(test)} in {names[1]!r}",
            "one row of each a partition",
            "Add the rows that are missing.",
        )
    for number, (one, other) in enumerate(zip(train, test, strict=True)):
        for name, part in zip(names, (one, other), strict=True):
            _check_indices(part, n_points, f"{where}, array {name!r}, row {number}")
        common = np.intersect1d(one, other)
        if len(common):
            raise DataError(
                f"{where}, row {number} of {names[0]!r} and {names[1]!r}",
                f"{len(common)} points in both, such as {common[0]}",
                "training and test parts without a common point",
                "Take them out of one of the parts.",
            )
    return tuple(
        Split(one.astype(np.intp), other.astype(np.intp))
        for one, other in zip(train, test, strict=True)
    )


def _check_indices(part: npt.NDArray[Any], n_points: int, where: str) -> None:
    outside = part[(part < 0) | (part >= n_points)]
    if len(outside):
        raise DataError(
            where,
            f"index {outside[0]} in a data set of {n_points} points",
            f"indices from 0 to {n_points - 1}",
            "Indices start at 0: subtract 1."
            if outside[0] == n_points
            else "Check that they belong to these data.",
        )
    values, counts = np.unique(part, return_counts=True)
    if len(values) < len(part):
        raise DataError(
            where, f"index {values[counts > 1][0]} twice", "every index once", "Remove it."
        )
