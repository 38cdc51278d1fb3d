"""Inner folds: training rows of a split that are held out in turn to select hyperparameters."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Ints
from mkldist.data.dataset import Dataset
from mkldist.errors import DataError
from mkldist.spec.selection import SelectionSpec

# scikit-learn takes seeds of 32 bits.
SEEDS = 2**32


def inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, seed: int
) -> tuple[Ints, ...]:
    """Return the rows that are held out, of each fold in turn.

    ``Repeated(Stratified)KFold`` of scikit-learn with ``random_state=seed`` (modulo 2³²); each
    class is divided in proportion, so that every other fold has points of all of them.

    Parameters
    ----------
    dataset : Dataset
        The labels.
    labelled : (l,) intp
        Training rows of a split.
    spec : SelectionSpec
        Folds, at most as many as the smallest class has points, and repetitions.
    seed : int
        Of the sweep.
    """
    from sklearn import model_selection

    classes = dataset.classes is not None
    strata = dataset.class_numbers[labelled] if classes else np.zeros(len(labelled))
    kind = model_selection.RepeatedStratifiedKFold if classes else model_selection.RepeatedKFold
    n_folds = min(spec.folds, _most_folds(dataset, labelled))
    splitter = kind(n_splits=n_folds, n_repeats=spec.repeats, random_state=seed % SEEDS)
    return tuple(
        np.sort(labelled[held_out]) for _, held_out in splitter.split(strata[:, None], strata)
    )


def n_inner_folds(dataset: Dataset, labelled: Ints, spec: SelectionSpec, where: str) -> int:
    """Return how many folds :func:`inner_folds` makes, repetitions included.

    Raises
    ------
    DataError
        If a class has fewer than two training points, or regression as many in all; or if more
        folds were asked for than that.
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
            "Enlarge the training part, or remove [selection].",
        )
    if "folds" in spec.model_fields_set and spec.folds > most:
        of = "" if dataset.classes is None else " of the smallest class"
        raise DataError(
            where,
            f"folds = {spec.folds}",
            f"at most {most}, the training points{of}",
            "Lower it, or leave it out to have as many of 5 as there can be.",
        )
    return min(spec.folds, most) * spec.repeats


def _most_folds(dataset: Dataset, labelled: Ints) -> int:
    if dataset.classes is None:
        return len(labelled)
    counts = np.bincount(dataset.class_numbers[labelled], minlength=len(dataset.classes))
    return int(counts.min())
