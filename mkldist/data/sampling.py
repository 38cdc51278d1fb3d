"""Random parts of a data set, with equally many points of each class or as many as there are."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counted import counted
from mkldist.errors import DataError


def drawn_per_class(y: Floats, count: int, seed: int, classes: tuple[str, ...], where: str) -> Ints:
    """Return the rows of `count` random points of each class, ascending.

    Parameters
    ----------
    y : (n,) float64
        Labels, one number per class.
    count : int
        Number of points of each class.
    seed : int
        Seed of the sweep.
    classes : tuple of str
        Names of the classes in the order of their numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If a class has fewer points.

    Examples
    --------
    >>> y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    >>> len(drawn_per_class(y, 2, 0, ("no", "yes"), "t.csv"))
    4
    """
    rng = np.random.default_rng([seed, count])
    drawn = []
    for number, name in zip(np.unique(y), classes, strict=True):
        members = np.flatnonzero(y == number)
        if len(members) < count:
            raise DataError(
                f"{where}: per_class",
                f"{counted(len(members), 'point')} of class {name!r}",
                f"at least {count} of each class",
                f"Set per_class to at most {len(members)}, or remove it",
            )
        drawn.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(drawn)).astype(np.intp)


def drawn_points(y: Floats, count: int, seed: int, *, stratified: bool, where: str) -> Ints:
    """Return the rows of `count` random points, ascending.

    Parameters
    ----------
    y : (n,) float64
        Labels, one number per class, or real values.
    count : int
        Number of points.
    seed : int
        Seed of the sweep.
    stratified : bool
        Whether classes keep their proportions, and at least one point each.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If there are fewer points, or fewer are asked for than there are classes.

    Examples
    --------
    >>> y = np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
    >>> y[drawn_points(y, 3, 0, stratified=True, where="t.csv")].sum()
    np.float64(1.0)
    """
    members = np.unique(y, return_inverse=True)[1] if stratified else np.zeros(len(y), np.intp)
    n_classes = int(members.max()) + 1
    if not n_classes <= count <= len(y):
        few = count < n_classes
        raise DataError(
            f"{where}: n_points",
            f"{count} of {counted(len(y), 'point')}",
            f"at least one of each of {n_classes} classes" if few else f"at most {len(y)}",
            "Raise n_points" if few else "Lower n_points, or remove it",
        )
    rng = np.random.default_rng([seed, count])
    order = rng.permutation(len(y))
    # Points of each class stand at equal distances in (0, 1]; the first so many of all are taken.
    places = np.empty(len(y))
    first = np.zeros(len(y), dtype=np.bool_)
    for number in range(n_classes):
        own = order[members[order] == number]
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
        first[own[0]] = True
    ranked = order[np.lexsort((places[order], ~first[order]))]
    return np.sort(ranked[:count]).astype(np.intp)
