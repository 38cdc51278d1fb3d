"""Smaller training parts, nested in each other, for a search or for a scaling study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import pluralize
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
    if not shares:
        return ()
    ranks = [_ranks(dataset, split.train, seed + number) for number, split in enumerate(splits)]
    found = []
    for share in shares:
        for number, (split, rank) in enumerate(zip(splits, ranks, strict=True)):
            part = split.train[rank < share]
            _check(dataset, part, share, number)
            found.append(Split(part, split.test, split.unlabelled))
    return tuple(found)


def cut_splits(
    dataset: Dataset,
    splits: Sequence[Split],
    n_train: int,
    seed: int,
    where: str,
    *,
    stratified: bool,
) -> tuple[Split, ...]:
    """Return every split with some of its training rows.

    The rows of a smaller number are among those of a larger one.  A grouped data set gives whole
    groups, as many as fit.  Test and unlabelled rows stay.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.
    n_train : int
        Number of training rows.
    seed : int
        Seed of the order in which rows are taken.
    where : str
        Place, for the message.
    stratified : bool
        True to take rows of each class in proportion.

    Raises
    ------
    mkldist.errors.DataError
        If a training part has fewer rows, or no whole group of it fits.
    """
    found = []
    for number, split in enumerate(splits):
        if n_train > len(split.train):
            raise DataError(
                f"{where}: n_train",
                f"{n_train}",
                f"at most {len(split.train)}, the training rows of split {number} (from 0)",
                "Lower it, or enlarge the training parts",
            )
        ranks = _ranks(dataset, split.train, seed + number, stratified=stratified)
        order = np.argsort(ranks, kind="stable")
        size = n_train
        if dataset.row_groups is not None and size < len(order):
            size = int(np.searchsorted(ranks[order], ranks[order[size]]))
            if not size:
                raise _below_first_group(ranks, n_train, number, f"{where}: n_train")
        part = split.train[np.sort(order[:size])]
        found.append(Split(part, split.test, split.unlabelled))
    return tuple(found)


def _ranks(dataset: Dataset, train: Ints, seed: int, *, stratified: bool = True) -> np.ndarray:
    """Return for each training row the share from which on it is taken, below 1."""
    random = np.random.RandomState(seed % SEEDS)
    if dataset.row_groups is not None:
        kinds, of = np.unique(dataset.row_groups[train], return_inverse=True)
        return (random.permutation(len(kinds)) / len(kinds))[of]
    classes = np.zeros(len(train), dtype=np.intp)
    if stratified and dataset.classes is not None:
        classes = dataset.class_numbers[train]
    ranks = np.empty(len(train))
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        ranks[rows] = random.permutation(len(rows)) / len(rows)
    return ranks


def _below_first_group(ranks: Floats, n_train: int, number: int, where: str) -> DataError:
    """Return the error of fewer training rows than the first group in the drawn order has."""
    first = int((ranks == ranks.min()).sum())
    return DataError(
        where,
        f"{n_train}",
        f"at least {first}, the rows of the group that split {number} (from 0) takes first",
        "Raise it, or set another seed: groups are taken whole, in a drawn order",
    )


def _check(dataset: Dataset, part: Ints, share: float, number: int) -> None:
    """Refuse a training part without points of some class; groups may divide so."""
    if dataset.classes is None:
        return
    counts = np.bincount(dataset.class_numbers[part], minlength=len(dataset.classes))
    if not counts.all():
        raise DataError(
            f"search on data set {dataset.name!r}, split {number} (from 0)",
            f"no point of class {dataset.classes[int(counts.argmin())]!r} in a share of "
            f"{share:g} of the training part, {pluralize(len(part), 'row')}",
            "points of every class",
            "Raise first under [search], or set fewer rungs",
        )
