"""Random divisions of points, the same draws as scikit-learn's from the same seed.

A sweep finds its recorded runs by the content of their splits, and every command draws the splits
anew.  They are drawn here, because scikit-learn takes a second to import, and because no later
version of it can then change the splits of a sweep.

The labels of a stratified division are those of classes; each part gets its share of every class.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Ints

SEEDS = 2**32  # seeds of numpy's RandomState have 32 bits

Labels = npt.NDArray[np.generic]


def holdouts(
    n_train: int, n_test: int, n_repeats: int, seed: int, labels: Labels | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test rows: scikit-learn's ``(Stratified)ShuffleSplit``.

    Parameters
    ----------
    n_train, n_test : int
        Sizes of the parts; together they are all points.
    n_repeats : int
        Number of divisions.
    seed : int
        ``random_state``, modulo 2³².
    labels : (n,) array, optional
        Class of each point, for stratified divisions.

    Yields
    ------
    train, test : (n_train,) and (n_test,) int
        In random order.

    Raises
    ------
    ValueError
        If there is no training point or, in stratified divisions, a class has a single point or a
        part has fewer points than there are classes.

    Examples
    --------
    >>> [(train, test)] = holdouts(2, 2, 1, seed=0, labels=np.array(["a", "b", "a", "b"]))
    >>> np.sort(train), np.sort(test)
    (array([1, 2]), array([0, 3]))
    """
    if not n_train:
        raise ValueError("no training point")
    random = np.random.RandomState(seed % SEEDS)
    if labels is None:
        for _ in range(n_repeats):
            order = random.permutation(n_test + n_train)
            yield order[n_test:], order[:n_test]
        return
    _, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if counts.min() < 2:
        raise ValueError("a class of a single point")
    if min(n_train, n_test) < len(counts):
        raise ValueError(f"parts of {n_train} and {n_test} points, and {len(counts)} classes")
    members = np.split(np.argsort(numbers, kind="stable"), np.cumsum(counts)[:-1])
    for _ in range(n_repeats):
        of_train = _shares(counts, n_train, random)
        of_test = _shares(counts - of_train, n_test, random)
        drawn = [random.permutation(len(rows)) for rows in members]
        train = [rows[o[:a]] for rows, o, a in zip(members, drawn, of_train, strict=True)]
        test = [
            rows[o[a : a + b]]
            for rows, o, a, b in zip(members, drawn, of_train, of_test, strict=True)
        ]
        yield random.permutation(np.concatenate(train)), random.permutation(np.concatenate(test))


def _shares(counts: Ints, n_drawn: int, random: np.random.RandomState) -> Ints:
    """Return how many of `n_drawn` points each class gives: its share, rounded down or up.

    The largest remainders are rounded up, equal ones in random order.
    """
    exact = counts / counts.sum() * n_drawn
    shares = np.floor(exact)
    left = int(n_drawn - shares.sum())
    remainders = exact - shares
    for remainder in sorted({*remainders.tolist()}, reverse=True):
        if left <= 0:
            break
        tied = np.flatnonzero(remainders == remainder)
        chosen = random.choice(tied, size=min(len(tied), left), replace=False)
        shares[chosen] += 1
        left -= len(chosen)
    whole: Ints = shares.astype(np.intp)
    return whole


def repeated_folds(
    n_folds: int, n_repeats: int, seed: int, n_points: int, labels: Labels | None = None
) -> Iterator[Ints]:
    """Yield the rows of each fold: scikit-learn's ``Repeated(Stratified)KFold``.

    Parameters
    ----------
    n_folds : int
        Number of folds; at most `n_points` and, if stratified, the points of the smallest class.
    n_repeats : int
        Number of repetitions.
    seed : int
        ``random_state``, modulo 2³².
    n_points : int
        Number of points.
    labels : (n_points,) array, optional
        Class of each point, for stratified folds.

    Yields
    ------
    (h,) int
        Ascending rows of one fold, the folds of one repetition adjacent.

    Examples
    --------
    >>> [len(rows) for rows in repeated_folds(3, 2, seed=0, n_points=7)]
    [3, 2, 2, 3, 2, 2]
    """
    random = np.random.RandomState(seed % SEEDS)
    for _ in range(n_repeats):
        if labels is None:
            order = random.permutation(n_points)
            yield from (np.sort(rows) for rows in np.array_split(order, n_folds))
        else:
            folds = _stratified_folds(labels, n_folds, random)
            yield from (np.flatnonzero(folds == number) for number in range(n_folds))


def _stratified_folds(labels: Labels, n_folds: int, random: np.random.RandomState) -> Ints:
    """Return the fold of each point.

    Folds take turns at the points sorted by class, the classes in the order of their first points.
    This fixes how many points of a class each fold gets; which ones is random.
    """
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    turns = np.arange(len(labels)) % n_folds
    folds = np.empty(len(labels), dtype=np.intp)
    begin = 0
    for number in np.argsort(first):
        members = np.flatnonzero(numbers == number)
        of_class = np.sort(turns[begin : begin + len(members)])
        random.shuffle(of_class)
        folds[members] = of_class
        begin += len(members)
    return folds
