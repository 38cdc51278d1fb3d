"""Partitions that come with the data as arrays of row indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.dataset import Split
from mkldist.data.labels import MISSING_LABELS
from mkldist.errors import DataError

# The names of mkldist, and those in files of semi-supervised benchmarks.
ARRAY_NAMES = (("train", "unlabelled", "test"), ("idx_labs", "idx_unls", "idx_test"))
PART_WORDS = ("train", "test", "unlabelled")
NO_GROUP = MISSING_LABELS  # "none" may be the name of a group
SHOWN = 8
INDEX_ARRAYS = tuple(name for names in ARRAY_NAMES for name in names)


def partitions_of(
    arrays: Mapping[str, npt.NDArray[Any]],
    n_points: int,
    where: str,
    row_labels: RowLabels = FROM_ZERO,
) -> tuple[Split, ...]:
    """Return the partitions among the arrays of a file, if it has any.

    Parameters
    ----------
    arrays : mapping of str to array
        ``train`` (R, n_train) and at least one of ``test`` (R, n_test) and ``unlabelled``
        (R, n_unlabelled), or ``idx_labs``, ``idx_test`` and ``idx_unls`` instead.  They hold
        indices from 0, one row per partition; arrays of one dimension make a single partition.
    n_points : int
        Number of points n.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row of the arrays.

    Raises
    ------
    DataError
        If an array lacks its partner, both sets of names occur, the numbers of rows differ, or an
        index is not an integer in 0…n-1, occurs twice, or is in several parts.
    """
    trains = [names[0] for names in ARRAY_NAMES if names[0] in arrays]
    if len(trains) > 1:
        raise DataError(
            where,
            f"arrays {trains[0]!r} and {trains[1]!r}",
            "one set of partitions: train, unlabelled and test, or idx_labs, idx_unls and idx_test",
            "Save one of the sets to another file",
        )
    for names in ARRAY_NAMES:
        given = {name: arrays[name] for name in names if name in arrays}
        if given:
            _check_names(given, names, where)
            rows = {name: _rows(array, f"{where}, array {name!r}") for name, array in given.items()}
            return _partitions(rows, names, n_points, where, row_labels)
    return ()


def partition_of_column(column: npt.NDArray[np.str_], where: str) -> Split:
    """Return the partition that a column of a table gives, a word in each row.

    Parameters
    ----------
    column : (n,) array of str
        ``train``, ``test`` or ``unlabelled``, in any case.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        For another word, or if no row is for training or none is for scores.

    Examples
    --------
    >>> partition_of_column(np.array(["train", "Test", "train"]), "t.csv").train
    array([0, 2])
    """
    words, numbers = np.unique(column, return_inverse=True)
    parts = {str(word).strip().casefold(): np.zeros(0, dtype=np.intp) for word in words}
    unknown = [str(word) for word in words if str(word).strip().casefold() not in PART_WORDS]
    if unknown or "train" not in parts or len(parts) < 2:
        raise DataError(
            where,
            f"the word{'s' * (len(words) > 1)} {truncate([repr(str(w)) for w in words], SHOWN)}",
            "'train' in some rows, 'test' or 'unlabelled' in the others",
            "Correct this column, or set another kind of splits",
        )
    for number, word in enumerate(words):
        part = str(word).strip().casefold()
        parts[part] = np.union1d(parts[part], np.flatnonzero(numbers == number))
    none = np.zeros(0, dtype=np.intp)
    return Split(*(parts.get(word, none) for word in PART_WORDS))


def group_numbers(
    column: npt.NDArray[np.str_], where: str, row_labels: RowLabels = FROM_ZERO
) -> Ints:
    """Return the number of each row's group, (n,), groups in alphabetical order.

    Parameters
    ----------
    column : (n,) array of str
        The group of each row.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        If rows have no group: they would otherwise all be one.

    Examples
    --------
    >>> group_numbers(np.array(["p2", "p1", "p2"]), "t.csv")
    array([1, 0, 1])
    """
    names, numbers = np.unique(column, return_inverse=True)
    missing = np.array([name.strip().casefold() in NO_GROUP for name in names.tolist()])
    rows = np.flatnonzero(missing[numbers])
    if len(rows):
        raise DataError(
            where,
            f"no group in {len(rows)} of {pluralize(len(column), 'row')}, the first is "
            f"{row_labels.of(rows[0])}",
            "a group in every row",
            "Write the group there; give a row that belongs to no other a group of its own",
        )
    return numbers


def restricted(partitions: Sequence[Split], rows: Ints, n_points: int) -> tuple[Split, ...]:
    """Return partitions without the points that are not in `rows`, as positions in `rows`."""
    if len(rows) == n_points:
        return tuple(partitions)
    place = np.full(n_points, -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))

    def kept(indices: Ints) -> Ints:
        moved = place[indices]
        return moved[moved >= 0]

    return tuple(
        Split(kept(split.train), kept(split.test), kept(split.unlabelled)) for split in partitions
    )


def _check_names(given: Mapping[str, object], names: tuple[str, str, str], where: str) -> None:
    train, unlabelled, test = names
    others = [name for name in (test, unlabelled) if name in given]
    if train in given and others:
        return
    alone = others[0] if others else train
    wanted = repr(train) if others else f"{test!r} or {unlabelled!r}"
    raise DataError(
        where,
        f"an array {alone!r} without {wanted}",
        "both, with one row of indices per partition",
        f"Add {wanted} or remove {alone!r}",
    )


def _rows(array: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    if array.dtype.kind not in "iu":
        raise DataError(
            where,
            f"an array of {array.dtype}",
            "integers: indices of rows from 0",
            "np.flatnonzero turns a mask into indices"
            if array.dtype.kind == "b"
            else "Save them as integers: indices.astype(int)",
        )
    if array.ndim not in (1, 2):
        raise DataError(
            where, f"shape {array.shape}", "one row of indices per partition", "Reshape it"
        )
    return np.atleast_2d(array)


def _partitions(
    rows: Mapping[str, npt.NDArray[Any]],
    names: tuple[str, str, str],
    n_points: int,
    where: str,
    row_labels: RowLabels,
) -> tuple[Split, ...]:
    train, unlabelled, test = names
    n_partitions = len(rows[train])
    for name, array in rows.items():
        if len(array) != n_partitions:
            raise DataError(
                where,
                f"{pluralize(n_partitions, 'row')} in {train!r} but {len(array)} in {name!r}",
                "one row of each per partition",
                "Add the missing rows",
            )
    splits = []
    for number in range(n_partitions):
        parts = {name: array[number] for name, array in rows.items()}
        for name, part in parts.items():
            _check_indices(part, n_points, f"{where}, array {name!r}, {row_labels.of(number)}")
        _check_disjoint(parts, f"{where}, {row_labels.of(number)}")
        kept = {name: part.astype(np.intp) for name, part in parts.items()}
        none = np.zeros(0, dtype=np.intp)
        splits.append(Split(kept[train], kept.get(test, none), kept.get(unlabelled, none)))
    return tuple(splits)


def _check_disjoint(parts: Mapping[str, npt.NDArray[Any]], where: str) -> None:
    for (name, part), (other_name, other) in combinations(parts.items(), 2):
        common = np.intersect1d(part, other)
        if len(common):
            raise DataError(
                f"{where} of {name!r} and {other_name!r}",
                f"{pluralize(len(common), 'point')} in both, such as {common[0]}",
                "parts without a common point",
                "Remove them from one of the parts",
            )


def _check_indices(part: npt.NDArray[Any], n_points: int, where: str) -> None:
    outside = part[(part < 0) | (part >= n_points)]
    if len(outside):
        raise DataError(
            where,
            f"index {outside[0]} in a data set of {n_points} points",
            f"indices from 0 to {n_points - 1}",
            "Subtract 1, for indices start at 0"
            if outside[0] == n_points and part.min() > 0
            else "Check that the indices belong to these data",
        )
    values, counts = np.unique(part, return_counts=True)
    if len(values) < len(part):
        raise DataError(
            where, f"index {values[counts > 1][0]} twice", "every index once", "Remove one of them"
        )
