"""Folds within a split that select hyperparameters."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Ints
from mkldist.data.dataset import Dataset
from mkldist.data.random_splits import repeated_folds
from mkldist.errors import DataError
from mkldist.spec.selection import SelectionSpec


def inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, seed: int
) -> tuple[Ints, ...]:
    """Return the held-out rows of each inner fold.

    They are those of :func:`~mkldist.data.random_splits.repeated_folds`, and each class is divided
    in proportion.  There are at least two points of each class and at most as many folds, so that
    the training rows of a fold have points of every class.

    Parameters
    ----------
    dataset : Dataset
        Data set, for its labels.
    labelled : (l,) intp
        Training rows of a split.
    spec : SelectionSpec
        Number of folds, lowered to the size of the smallest class, and of repetitions.
    seed : int
        Seed of the sweep.

    Returns
    -------
    tuple of (h,) intp
        Rows of the data set, ascending, the folds of one repetition adjacent.
    """
    labels = None if dataset.classes is None else dataset.class_numbers[labelled]
    n_folds = min(spec.folds, _most_folds(dataset, labelled))
    folds = repeated_folds(n_folds, spec.repeats, seed, len(labelled), labels)
    return tuple(np.sort(labelled[held_out]) for held_out in folds)


def n_inner_folds(dataset: Dataset, labelled: Ints, spec: SelectionSpec, where: str) -> int:
    """Return the number of folds that :func:`inner_folds` makes, repetitions included.

    Raises
    ------
    DataError
        If a class has fewer than two training points (for regression, if there are fewer than two
        in all), or if the user sets more folds than the smallest class has training points.
    """
    most = _most_folds(dataset, labelled)
    if most < 2:
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
        raise DataError(
            where,
            f"folds = {spec.folds}",
            f"at most {most}, the training points{of}",
            "Lower it, or omit it to use up to 5 folds",
        )
    return min(spec.folds, most) * spec.repeats


def _most_folds(dataset: Dataset, labelled: Ints) -> int:
    """Return the number of training points of the smallest class; of all points in regression."""
    if dataset.classes is None:
        return len(labelled)
    counts = np.bincount(dataset.class_numbers[labelled], minlength=len(dataset.classes))
    return int(counts.min())
