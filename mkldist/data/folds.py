"""Folds within a split that select hyperparameters."""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Ints
from mkldist.data.dataset import Dataset
from mkldist.data.random_splits import repeated_folds
from mkldist.errors import DataError
from mkldist.spec.model import SelectionSpec


def inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, seed: int
) -> tuple[Ints, ...]:
    """Return the held-out rows of each inner fold.

    They are those of :func:`~mkldist.data.random_splits.repeated_folds`, and each class is divided
    in proportion.  There are at least two points of each class and at most as many folds, so that
    the training rows of a fold have points of every class.  The folds of a grouped data set are
    drawn among its groups instead.

    Parameters
    ----------
    dataset : Dataset
        Data set, for its labels.
    labelled : (l,) intp
        Training rows of a split.
    spec : SelectionSpec
        Number of folds, lowered to the size of the smallest class or to the number of groups, and
        of repetitions.
    seed : int
        Seed of the sweep.

    Returns
    -------
    tuple of (h,) intp
        Rows of the data set, ascending, the folds of one repetition adjacent.
    """
    n_folds = min(spec.folds, _most_folds(dataset, labelled))
    if dataset.row_groups is not None:
        present, groups = np.unique(dataset.row_groups[labelled], return_inverse=True)
        of_groups = repeated_folds(n_folds, spec.repeats, seed, len(present))
        return tuple(np.sort(labelled[np.isin(groups, held_out)]) for held_out in of_groups)
    labels = None if dataset.classes is None else dataset.class_numbers[labelled]
    folds = repeated_folds(n_folds, spec.repeats, seed, len(labelled), labels)
    return tuple(np.sort(labelled[held_out]) for held_out in folds)


def n_inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, where: str, seed: int = 0
) -> int:
    """Return the number of folds that :func:`inner_folds` makes, repetitions included.

    Parameters
    ----------
    dataset, labelled, spec, seed
        As for :func:`inner_folds`.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If a class has fewer than two training points (for regression, if there are fewer than two
        in all), or if the user sets more folds than the smallest class has training points.  With
        groups, if there are fewer than two or fewer than folds, or if all points of a class are in
        one fold.
    """
    most = _most_folds(dataset, labelled)
    if most < 2:
        if dataset.row_groups is not None:
            raise DataError(
                where,
                f"{len(labelled)} training points of one group",
                "at least two groups, for the folds of [selection]",
                "Enlarge the training part, or remove [selection]",
            )
        found = f"{len(labelled)} training point"
        if dataset.classes is not None:
            counts = np.bincount(dataset.class_numbers[labelled], minlength=len(dataset.classes))
            found += f"s, {counts.min()} of class {dataset.classes[counts.argmin()]!r}"
        raise DataError(
            where,
            found,
            "at least two of each class, for the folds of [selection]",
            "Enlarge the training part, or remove [selection]",
        )
    if "folds" in spec.model_fields_set and spec.folds > most:
        of = "" if dataset.classes is None else " of the smallest class"
        counted = f"the training points{of}"
        if dataset.row_groups is not None:
            counted = "the groups of the training part"
        raise DataError(
            where,
            f"folds = {spec.folds}",
            f"at most {most}, {counted}",
            "Lower it, or omit it to use up to 5 folds",
        )
    if dataset.row_groups is not None and dataset.classes is not None:
        _check_classes(dataset, labelled, inner_folds(dataset, labelled, spec, seed), where)
    return min(spec.folds, most) * spec.repeats


def _check_classes(dataset: Dataset, labelled: Ints, folds: tuple[Ints, ...], where: str) -> None:
    """Refuse folds of groups that hold all training points of a class."""
    names = dataset.classes or ()
    totals = np.bincount(dataset.class_numbers[labelled], minlength=len(names))
    for number, held_out in enumerate(folds):
        left = totals - np.bincount(dataset.class_numbers[held_out], minlength=len(names))
        if not left.all():
            raise DataError(
                f"{where}, inner fold {number} (from 0)",
                f"all {totals[left.argmin()]} training points of class {names[left.argmin()]!r}",
                "points of every class outside each fold of groups",
                "Set more folds or another seed, or enlarge the training part",
            )


def _most_folds(dataset: Dataset, labelled: Ints) -> int:
    """Return the number of training points of the smallest class; of all points in regression.

    In a grouped data set it is the number of groups.
    """
    if dataset.row_groups is not None:
        return len(np.unique(dataset.row_groups[labelled]))
    if dataset.classes is None:
        return len(labelled)
    counts = np.bincount(dataset.class_numbers[labelled], minlength=len(dataset.classes))
    return int(counts.min())
