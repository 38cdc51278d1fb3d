"""Splits into training, unlabelled and test parts, drawn at random or given with the data."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import pluralize
from mkldist.data.dataset import Dataset, Split
from mkldist.data.nested import cut_splits
from mkldist.data.random_splits import SEEDS, holdouts, repeated_folds
from mkldist.errors import DataError
from mkldist.spec.checks import check_fits
from mkldist.spec.datasets import SplitsSpec

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
    draw = _of_all if spec.labelled is not None else _labelled_of_each_class
    return tuple(_drawn_parts(spec, dataset, rng, draw, where) for _ in range(spec.repeats))


def _drawn_parts(
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
            f"all of {pluralize(len(rows), 'point')} labelled",
            "at least one unlabelled point",
            'Label fewer points, or set kind = "holdout"',
        )
    return Split(labelled, test, unlabelled)


def _labelled_of_each_class(
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
                f"{pluralize(wanted, 'point')} to be labelled of {len(members)} in class {name!r}",
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


ROW_BYTES = 16  # of a row of a split: its number in the draw, and in the split

SHOWN = 10


def make_splits(
    spec: SplitsSpec, dataset: Dataset, seed: int, name: str | None = None
) -> tuple[Split, ...]:
    """Return the splits of a data set.

    ``holdout`` is ``(Stratified)ShuffleSplit`` and ``kfold`` is ``Repeated(Stratified)KFold`` of
    scikit-learn with ``random_state=seed`` (modulo 2³²), folds of one repetition adjacent; indices
    are sorted.  Both are stratified by class unless the sweep file says otherwise, and never in
    regression.  With groups, both draw among groups, as ``GroupShuffleSplit`` and ``GroupKFold``
    with shuffling do.  ``leave-one-group-out`` is ``LeaveOneGroupOut``, and ``time`` is
    ``TimeSeriesSplit``.  ``predefined`` takes the partitions that came with the data unchanged, and
    ``semi-supervised`` is :func:`mkldist.data.splits.draw_splits`.

    Parameters
    ----------
    spec : SplitsSpec
        Kind, number and sizes of the splits; one size of the training parts, if it has a list.
    dataset : Dataset
        Data set, for its labels, number of points and predefined partitions.
    seed : int
        Seed of the sweep.
    name : str, optional
        Name of the data set in the sweep file, for messages; by default its own, which holds the
        size where a list of sizes made it.

    Raises
    ------
    DataError
        If there are too few points, no predefined partitions, fewer splits than `first` or fewer
        training rows than `n_train`; if regression is to be stratified; or if a split has no
        training point, neither test nor unlabelled points, or no training point of some class.
    """
    where = f"splits of data set {(name or dataset.name)!r}"
    if spec.kind not in ("predefined", "time"):
        n_splits = spec.repeats * (spec.folds if spec.kind == "kfold" else 1)
        check_fits(n_splits, ROW_BYTES * dataset.n_points, where, "splits", "Lower repeats")
    if spec.kind == "predefined":
        splits = dataset.predefined
        if not splits:
            raise DataError(
                where,
                "no predefined partitions in the data",
                "row indices in a .npz file: arrays train and test, or idx_labs and idx_unls; or "
                "a column of a table, by column = …",
                'Set kind = "holdout", "kfold" or "semi-supervised"',
            )
    elif spec.kind == "time":
        splits = _in_time(spec, dataset, where)
    elif spec.kind == "semi-supervised":
        splits = draw_splits(spec, dataset, seed, where)
    else:
        splits = _drawn(spec, dataset, seed, where)
    if spec.first is not None:
        if spec.first > len(splits):
            raise DataError(
                f"{where}: first",
                f"{spec.first}",
                f"at most {len(splits)}, all splits",
                "Lower or remove first",
            )
        splits = splits[: spec.first]
    splits = tuple(_weighing(split, dataset) for split in splits)
    if isinstance(spec.n_train, int):
        stratified = spec.stratified is not False
        splits = cut_splits(dataset, splits, spec.n_train, seed, where, stratified=stratified)
    for number, split in enumerate(splits):
        _check(split, number, len(splits), dataset, where, _advice(spec))
    return splits


def _weighing(split: Split, dataset: Dataset) -> Split:
    """Return a split whose training and unlabelled parts have no row of weight zero."""
    if dataset.weights is None:
        return split
    has = dataset.weighing
    train, unlabelled = (part[has[part]] for part in (split.train, split.unlabelled))
    return Split(train, split.test, unlabelled)


def _advice(spec: SplitsSpec) -> str:
    """Return what to do if a split lacks points of a class."""
    if spec.n_train is not None:
        return "Raise n_train"
    if spec.kind == "predefined":
        return "Correct this split in the data"
    if spec.kind == "time":
        return "Set fewer folds, so that the first training part is larger"
    if spec.kind == "leave-one-group-out":
        return 'Merge this group with others, or set kind = "kfold"'
    if spec.groups is not None:
        return "Enlarge the training part, or set another seed"
    return "Set stratified = true, or enlarge the training part"


def _drawn(spec: SplitsSpec, dataset: Dataset, seed: int, where: str) -> tuple[Split, ...]:
    if spec.kind == "leave-one-group-out" and dataset.row_groups is None:
        hint = "Name the column of groups, such as patients or hospitals, by groups"
        raise DataError(where, f'kind = "{spec.kind}" without groups', "groups = ...", hint)
    if dataset.row_groups is not None:
        return _drawn_by_group(spec, dataset.row_groups, seed, where)
    n = dataset.n_points
    stratified = _stratified(spec, dataset, where)
    labels = dataset.y if stratified else None
    if spec.kind == "kfold":
        _check_folds(spec, dataset, where, stratified=stratified)
        folds = repeated_folds(spec.folds, spec.repeats, seed, n, labels)
        return tuple(Split(np.setdiff1d(np.arange(n), test), test) for test in folds)
    n_train = int(spec.train_fraction * n)
    try:
        pairs = list(holdouts(n_train, n - n_train, spec.repeats, seed, labels))
    except ValueError as error:
        raise DataError(
            where,
            f"{n} points, which cannot be divided so ({error})",
            f"at least one point per part{_of_each_class(dataset)}",
            "Change train_fraction" + (", or set stratified = false" if stratified else ""),
        ) from error
    return tuple(Split(*(np.sort(part).astype(np.intp) for part in pair)) for pair in pairs)


def _in_time(spec: SplitsSpec, dataset: Dataset, where: str) -> tuple[Split, ...]:
    """Return folds in the order of time, each with all rows before it as its training part."""
    n, folds = dataset.n_points, spec.folds
    size = n // (folds + 1)
    if not size:
        raise DataError(
            where,
            f"{folds} folds of {n} points in the order of time",
            f"at most {n - 1} folds",
            "Set fewer folds",
        )
    order = np.arange(n) if dataset.row_order is None else dataset.row_order
    starts = range(n - folds * size, n, size)
    return tuple(Split(np.sort(order[:s]), np.sort(order[s : s + size])) for s in starts)


def _drawn_by_group(spec: SplitsSpec, groups: Ints, seed: int, where: str) -> tuple[Split, ...]:
    """Return splits drawn among groups: ``GroupShuffleSplit`` and ``GroupKFold`` with shuffling.

    Where each group is left out, they are in order.
    """
    n_groups = len(np.unique(groups))
    if spec.kind == "leave-one-group-out":
        hint = 'Set kind = "kfold", whose folds hold many groups'
        check_fits(n_groups, ROW_BYTES * len(groups), where, "splits", hint)
        if n_groups < 2:
            raise DataError(where, "one group", "two groups or more", "Choose other groups")
        tests = list(np.unique(groups)[:, None])
    elif spec.kind == "kfold":
        if spec.folds > n_groups:
            raise DataError(
                where,
                f"{spec.folds} folds of {pluralize(n_groups, 'group')}",
                f"at most {pluralize(n_groups, 'fold')}",
                "Set fewer folds",
            )
        tests = list(repeated_folds(spec.folds, spec.repeats, seed, n_groups))
    else:
        n_train = int(spec.train_fraction * n_groups)
        if not n_train:
            raise DataError(
                where,
                f"{pluralize(n_groups, 'group')} in all, none for the training part",
                "at least one group for each part",
                "Raise train_fraction, or choose other groups",
            )
        drawn = holdouts(n_train, n_groups - n_train, spec.repeats, seed)
        tests = [test for _, test in drawn]
    masks = [np.isin(groups, test) for test in tests]
    return tuple(Split(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks)


def _stratified(spec: SplitsSpec, dataset: Dataset, where: str) -> bool:
    """Return True if each class is to be divided in proportion."""
    if dataset.task == "classification":
        return spec.stratified is None or spec.stratified
    if spec.stratified:
        raise DataError(
            where,
            "stratified = true for a data set of regression",
            "classes to stratify by",
            "Remove stratified; data sets of classes are stratified by default",
        )
    return False


def _check_folds(spec: SplitsSpec, dataset: Dataset, where: str, *, stratified: bool) -> None:
    available = dataset.n_points
    if stratified:
        available = int(np.bincount(dataset.class_numbers).min())
    if spec.folds > available:
        raise DataError(
            where,
            f"{spec.folds} folds of {_counts(dataset)}",
            f"at most {available} folds",
            "Set stratified = false or fewer folds" if stratified else "Set fewer folds",
        )


def _check(
    split: Split, number: int, total: int, dataset: Dataset, where: str, advice: str
) -> None:
    place = f"{where}, split {number} of {total} (from 0)"
    scored = len(split.test) + len(split.unlabelled)
    for size, name in ((len(split.train), "training"), (scored, "test or unlabelled")):
        if not size:
            raise DataError(
                place, f"no {name} point", "at least one", "Correct or leave out this split"
            )
    if dataset.classes is None:
        return
    present = {*np.unique(dataset.class_numbers[split.train]).tolist()}
    for number, name in enumerate(dataset.classes):
        if number not in present:
            raise DataError(
                place,
                f"no point of class {name!r} in its training part of {len(split.train)}",
                f"points of {'every class' if dataset.multiclass else 'both classes'}",
                advice,
            )


def _of_each_class(dataset: Dataset) -> str:
    return "" if dataset.classes is None else f", and of each class ({_counts(dataset)})"


def _counts(dataset: Dataset) -> str:
    if dataset.classes is None:
        return f"{dataset.n_points} points"
    counts = np.bincount(dataset.class_numbers, minlength=len(dataset.classes)).tolist()
    pairs = list(zip(counts, map(repr, dataset.classes), strict=True))
    listed = [f"{count} of class {name}" for count, name in pairs[1:SHOWN]]
    more = [f"{len(pairs) - SHOWN} more classes"] * (len(pairs) > SHOWN)
    return ", ".join([f"{pluralize(pairs[0][0], 'point')} of class {pairs[0][1]}", *listed, *more])
