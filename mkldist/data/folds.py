"""Folds: those of cross-validation, and those within a split that select hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from mkldist.arrays import Ints
from mkldist.data.dataset import Dataset
from mkldist.data.sampling import SEEDS
from mkldist.errors import DataError
from mkldist.spec.selection import SelectionSpec


def repeated_folds(n_folds: int, n_repeats: int, seed: int, *, stratified: bool) -> Any:
    """Return ``Repeated(Stratified)KFold`` of scikit-learn, ``random_state=seed`` modulo 2³²."""
    from sklearn import model_selection

    kind = model_selection.RepeatedStratifiedKFold if stratified else model_selection.RepeatedKFold
    return kind(n_splits=n_folds, n_repeats=n_repeats, random_state=seed % SEEDS)


def inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, seed: int
) -> tuple[Ints, ...]:
    """Return the held-out rows of each inner fold.

    :func:`repeated_folds` divides each class in proportion.  There are at least two points of each
    class and at most as many folds, so that the training rows of a fold have points of every class.

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
    classes = dataset.classes is not None
    strata = dataset.class_numbers[labelled] if classes else np.zeros(len(labelled))
    n_folds = min(spec.folds, _most_folds(dataset, labelled))
    splitter = repeated_folds(n_folds, spec.repeats, seed, stratified=classes)
    return tuple(
        np.sort(labelled[held_out]) for _, held_out in splitter.split(strata[:, None], strata)
    )


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
