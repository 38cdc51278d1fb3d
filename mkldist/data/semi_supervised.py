"""Random splits into a few labelled points, unlabelled points, and optional test points."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counted import counted
from mkldist.data.dataset import Dataset, Split
from mkldist.data.random_splits import SEEDS, holdouts
from mkldist.errors import DataError
from mkldist.spec.splits import SplitsSpec

MAX_DRAWS = 1000


def draw_splits(spec: SplitsSpec, dataset: Dataset, seed: int, where: str) -> tuple[Split, ...]:
    """Draw splits in which few points have labels.

    The test part is drawn first, in proportion to the classes; then the labelled points among the
    others; the rest is unlabelled.  One ``numpy.random.default_rng(seed)`` makes all draws, so that
    a larger number of repeats begins with the same splits.

    Parameters
    ----------
    spec : SplitsSpec
        Splits of kind ``semi-supervised``.  Fractions refer to all points, or to all points of a
        class.
    dataset : Dataset
        Data set; its labels are used only to draw from each class.
    seed : int
        Seed of the sweep.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        For regression, and if there are too few points.
    """
    if dataset.task == "regression":
        raise DataError(
            where,
            'kind = "semi-supervised" for a data set of regression',
            "classes",
            "Set splits = {...} of another kind under this data set",
        )
    rng = np.random.default_rng(seed)
    draw = _of_all if spec.labelled is not None else _of_each_class
    return tuple(_drawn(spec, dataset, rng, draw, where) for _ in range(spec.repeats))


def _drawn(
    spec: SplitsSpec,
    dataset: Dataset,
    rng: np.random.Generator,
    draw: Callable[[SplitsSpec, Dataset, Ints, np.random.Generator, str], Ints],
    where: str,
) -> Split:
    """Return one split."""
    y, rows, test = dataset.y, np.arange(dataset.n_points), np.zeros(0, dtype=np.intp)
    if spec.test_fraction:
        rows, test = _divided(rows, y, spec.test_fraction, rng, f"{where}: test_fraction")
    labelled = np.sort(draw(spec, dataset, rows, rng, where))
    unlabelled = np.setdiff1d(rows, labelled)
    if not len(unlabelled):
        raise DataError(
            where,
            f"all of {counted(len(rows), 'point')} labelled",
            "at least one unlabelled point",
            'Label fewer points, or set kind = "holdout"',
        )
    return Split(labelled, test, unlabelled)


def _of_each_class(
    spec: SplitsSpec, dataset: Dataset, rows: Ints, rng: np.random.Generator, where: str
) -> Ints:
    """Draw the labelled rows, class by class."""
    y, drawn = dataset.y, []
    for name, label in zip(dataset.classes or (), np.unique(y), strict=True):
        members = rows[y[rows] == label]
        wanted = spec.labelled_per_class or 0
        if spec.labelled_fraction is not None:
            wanted = max(1, round(spec.labelled_fraction * np.count_nonzero(y == label)))
        if wanted > len(members):
            raise DataError(
                where,
                f"{counted(wanted, 'point')} to be labelled of {len(members)} in class {name!r}",
                f"at most {len(members)}",
                "Label fewer, or lower test_fraction",
            )
        drawn.append(rng.choice(members, wanted, replace=False))
    return np.concatenate(drawn)


def _of_all(
    spec: SplitsSpec, dataset: Dataset, rows: Ints, rng: np.random.Generator, where: str
) -> Ints:
    """Draw labelled rows in proportion to the classes, or at random until every class has one."""
    y, wanted = dataset.y, spec.labelled or 0
    n_classes = len(np.unique(y[rows]))
    if not n_classes <= wanted < len(rows):
        raise DataError(
            f"{where}: labelled",
            f"{wanted} of {len(rows)} points, of {n_classes} classes",
            f"a number from {n_classes} to {len(rows) - 1}",
            "Change labelled",
        )
    if spec.stratified is not False:
        drawn = _divided(rows, y, wanted, rng, f"{where}: labelled")[1]
        for label in np.setdiff1d(y[rows], y[drawn]):  # a share below one that was rounded down
            known, counts = np.unique(y[drawn], return_counts=True)
            often = np.flatnonzero(y[drawn] == known[counts.argmax()])
            drawn[rng.choice(often)] = rng.choice(rows[y[rows] == label])
        return drawn
    for _ in range(MAX_DRAWS):
        drawn = rng.choice(rows, wanted, replace=False)
        if len(np.unique(y[drawn])) == n_classes:
            return drawn
    raise DataError(
        f"{where}: labelled",
        f"a class without a point in each of {MAX_DRAWS} draws of {wanted}",
        "points of every class",
        "Remove stratified = false, or set labelled_per_class instead",
    )


def _divided(
    rows: Ints, y: Floats, size: float, rng: np.random.Generator, where: str
) -> tuple[Ints, Ints]:
    """Return the rows that are left and those taken, in proportion to the classes.

    A `size` of type int is the number of rows to take, one of type float their share.
    """
    wanted, seed = size if isinstance(size, int) else ceil(size * len(rows)), rng.integers(SEEDS)
    try:
        [(left, taken)] = holdouts(len(rows) - wanted, wanted, 1, int(seed), y[rows])
    except ValueError as error:
        _, counts = np.unique(y[rows], return_counts=True)
        raise DataError(
            where,
            f"{wanted} of {len(rows)} points, of {len(counts)} classes, the smallest of "
            f"{counts.min()}, which cannot be divided so",
            f"a part of {len(counts)} to {len(rows) - len(counts)} points, and two points or more "
            "of each class",
            "Change this number",
        ) from error
    return np.sort(rows[left]), np.sort(rows[taken])
