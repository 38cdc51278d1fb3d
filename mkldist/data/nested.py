"""Smaller training parts, nested in each other, on which a search compares settings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.arrays import Ints
from mkldist.data.dataset import Dataset, Split
from mkldist.data.random_splits import SEEDS
from mkldist.errors import DataError


def nested_splits(
    dataset: Dataset, splits: Sequence[Split], shares: Sequence[float], seed: int
) -> tuple[Split, ...]:
    """Return every split with each of some shares of its training rows.

    The rows of a share are among those of any larger one.  Each class gives its share, rounded up;
    a grouped data set gives whole groups.  Test and unlabelled rows stay.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.
    shares : sequence of float
        Shares, above 0 and at most 1.
    seed : int
        Seed of the order in which rows are taken.

    Returns
    -------
    tuple of Split
        All splits at the first share, then at the next.

    Raises
    ------
    mkldist.errors.DataError
        If a class has no point in a smaller training part.
    """
    ranks = [_ranks(dataset, split.train, seed + number) for number, split in enumerate(splits)]
    found = []
    for share in shares:
        for number, (split, rank) in enumerate(zip(splits, ranks, strict=True)):
            part = split.train[rank < share]
            _check(dataset, part, share, number)
            found.append(Split(part, split.test, split.unlabelled))
    return tuple(found)


def _ranks(dataset: Dataset, train: Ints, seed: int) -> np.ndarray:
    """Return for each training row the share from which on it is taken, below 1."""
    random = np.random.RandomState(seed % SEEDS)
    if dataset.row_groups is not None:
        kinds, of = np.unique(dataset.row_groups[train], return_inverse=True)
        return (random.permutation(len(kinds)) / len(kinds))[of]
    classes = np.zeros(len(train)) if dataset.classes is None else dataset.class_numbers[train]
    ranks = np.empty(len(train))
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        ranks[rows] = random.permutation(len(rows)) / len(rows)
    return ranks


def _check(dataset: Dataset, part: Ints, share: float, number: int) -> None:
    """Refuse a training part without points of some class; groups may divide so."""
    if dataset.classes is None:
        return
    counts = np.bincount(dataset.class_numbers[part], minlength=len(dataset.classes))
    if not counts.all():
        raise DataError(
            f"search on data set {dataset.name!r}, split {number} (from 0)",
            f"no point of class {dataset.classes[int(counts.argmin())]!r} in a share of "
            f"{share:g} of the training part, {len(part)} rows",
            "points of every class",
            "Raise first under [search], or set fewer rungs",
        )
