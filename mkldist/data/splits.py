"""Training and test parts, by scikit-learn's splitters or as they came with the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from mkldist.data.dataset import Dataset, Floats, Split
from mkldist.errors import DataError
from mkldist.spec.model import SplitsSpec

# scikit-learn takes seeds of 32 bits.
SEEDS = 2**32


def make_splits(spec: SplitsSpec, dataset: Dataset, seed: int) -> tuple[Split, ...]:
    """Divide a data set as asked.

    ``holdout`` is ``(Stratified)ShuffleSplit`` and ``kfold`` is ``Repeated(Stratified)KFold`` of
    scikit-learn with ``random_state=seed`` (modulo 2³²), folds of one repetition adjacent; their
    indices are sorted.  ``predefined`` takes the partitions that came with the data, as they are.

    Parameters
    ----------
    spec : SplitsSpec
        What was asked for.
    dataset : Dataset
        Of which labels, number of points and predefined partitions matter.
    seed : int
        Of the sweep.

    Raises
    ------
    DataError
        If there are too few points for it, no predefined partitions, or a split leaves a class
        out of its training part or has no test point.
    """
    where = f"splits of data set {dataset.name!r}"
    if spec.kind == "predefined":
        splits = dataset.predefined
        if not splits:
            raise DataError(
                where,
                "no predefined partitions in the data",
                "arrays train and test of row indices in a .npz file",
                'Or set kind = "holdout" or "kfold".',
            )
    else:
        splits = _drawn(spec, dataset, seed, where)
    if spec.first is not None:
        if spec.first > len(splits):
            raise DataError(
                f"{where}: first",
                f"{spec.first}",
                f"at most {len(splits)}, all splits",
                "Lower or remove it.",
            )
        splits = splits[: spec.first]
    for number, split in enumerate(splits):
        _check(split, number, len(splits), dataset, where)
    return splits


def _drawn(spec: SplitsSpec, dataset: Dataset, seed: int, where: str) -> tuple[Split, ...]:
    y, rows = dataset.y, np.zeros((dataset.n_points, 1))
    splitter = _splitter(spec, seed % SEEDS)
    if spec.kind == "kfold":
        _check_folds(spec, y, dataset.classes, where)
    try:
        pairs = list(splitter.split(rows, y))
    except ValueError as error:
        raise DataError(
            where,
            f"{dataset.n_points} points cannot be divided so ({error})",
            f"at least one point a part, and of each class ({_counts(y, dataset.classes)})",
            "Change train_fraction, or set stratified = false.",
        ) from error
    return tuple(Split(*(np.sort(part).astype(np.intp) for part in pair)) for pair in pairs)


def _splitter(spec: SplitsSpec, seed: int) -> Any:
    from sklearn import model_selection

    if spec.kind == "holdout":
        shuffle = (
            model_selection.StratifiedShuffleSplit
            if spec.stratified
            else model_selection.ShuffleSplit
        )
        return shuffle(spec.repeats, train_size=spec.train_fraction, random_state=seed)
    folds = (
        model_selection.RepeatedStratifiedKFold
        if spec.stratified
        else model_selection.RepeatedKFold
    )
    return folds(n_splits=spec.folds, n_repeats=spec.repeats, random_state=seed)


def _check_folds(spec: SplitsSpec, y: Floats, classes: tuple[str, str], where: str) -> None:
    smallest = min(np.count_nonzero(y < 0), np.count_nonzero(y > 0))
    available = smallest if spec.stratified else len(y)
    if spec.folds > available:
        raise DataError(
            where,
            f"{spec.folds} folds of {_counts(y, classes)}",
            f"at most {available} folds",
            "Set stratified = false or fewer folds." if spec.stratified else "Set fewer folds.",
        )


def _check(split: Split, number: int, total: int, dataset: Dataset, where: str) -> None:
    place = f"{where}, split {number} of {total} (from 0)"
    if not len(split.test):
        raise DataError(place, "no test point", "at least one", "Correct or leave out this split.")
    labels = dataset.y[split.train]
    for sign, name in zip((-1.0, 1.0), dataset.classes, strict=True):
        if not np.any(labels == sign):
            raise DataError(
                place,
                f"no point of class {name!r} in its training part of {len(labels)}",
                "points of both classes",
                "Set stratified = true, or raise train_fraction.",
            )


def _counts(y: Floats, classes: tuple[str, str]) -> str:
    low, high = np.count_nonzero(y < 0), np.count_nonzero(y > 0)
    return f"{low} points of class {classes[0]!r}, {high} of class {classes[1]!r}"
