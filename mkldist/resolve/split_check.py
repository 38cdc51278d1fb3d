"""Check that the splits of a data set have the labels that a sweep asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mkldist.data.dataset import Dataset, Split
from mkldist.errors import SpecError
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.refusals import ProblemFacts
from mkldist.spec.datasets import DatasetSpec


def check_unlabelled(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse labels -1, 0 and 1 where 0 may stand for points without a label.

    In a sweep the splits decide which points are unlabelled, and the labels of these points score
    the methods.

    Parameters
    ----------
    entry : DatasetSpec
        The data set's entry, which may name its classes.
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.

    Raises
    ------
    mkldist.errors.SpecError
        If there are unlabelled points and the entry does not say that 0 is a class.
    """
    if set(dataset.classes or ()) != {"-1", "0", "1"} or entry.classes:
        return
    if any(len(split.unlabelled) for split in splits):
        raise SpecError(
            f"datasets.{entry.name}",
            "labels -1, 0 and 1, and unlabelled points by [splits]",
            "the label of every point, by which methods are scored on the unlabelled ones",
            'Set classes = ["-1", "0", "1"] if 0 is a class, or classes = ["-1", "1"] to leave '
            "these points out; use mkldist.solve for points whose label is unknown",
        )


def check_folds(grids: Mapping[str, MethodGrid], dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse more folds of a method's own cross-validation than a class has labelled points.

    Only a number that the user gave is refused; a method cuts its default to the data.

    Parameters
    ----------
    grids : mapping of str to MethodGrid
        All settings of the sweep's methods by their keys.
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first method that asks for too many.
    """
    if dataset.task != "classification":
        return
    smallest = min(int(np.bincount(dataset.class_numbers[split.train]).min()) for split in splits)
    facts = ProblemFacts(smallest_class=smallest)
    for key, grid in grids.items():
        for params in grid.points:
            if grid.method.refuses(facts, folds=params.chosen_folds) is not None:
                raise SpecError(
                    f"methods.{key}.folds",
                    f"{params.chosen_folds}",
                    f"at most {smallest}, the labelled points of the smallest class in a training "
                    f"part of {dataset.name!r}",
                    "Lower it, or omit it",
                )
