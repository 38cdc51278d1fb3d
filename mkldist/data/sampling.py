"""Random parts of a data set with equally many points of each class."""

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
