"""Whether the methods of a sweep can learn the labels of its data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mkldist.data.dataset import Dataset, Split
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import SolverParams
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.targets import LEARNT, losses_by_target
from mkldist.spec.model import DatasetSpec, MethodSpec
from mkldist.target import Target


def check_labels(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse methods that cannot learn the labels of a data set.

    Every method can learn -1 and +1; real values only those whose loss is one of regression.

    Parameters
    ----------
    grids : mapping of str to MethodGrid
        All settings of the sweep's methods by their keys.
    dataset : Dataset
        The data set.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first method and loss that cannot, and what can.
    """
    if dataset.task == "classification":
        return
    for key, grid in grids.items():
        for point in grid.points:
            if point.target is not Target.VALUES:
                raise _mistake(key, grid.method, point, dataset)


def check_unlabelled(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse labels -1, 0 and 1 where 0 may stand for points without a label.

    In a sweep the splits say which points are unlabelled, and their labels score the methods.

    Parameters
    ----------
    entry : DatasetSpec
        The data set's entry, which may name its classes.
    dataset, splits
        What it is.

    Raises
    ------
    mkldist.errors.SpecError
        If there are unlabelled points and nobody says that 0 is a class.
    """
    if set(dataset.classes or ()) != {"-1", "0", "1"} or entry.classes:
        return
    if any(len(split.unlabelled) for split in splits):
        raise SpecError(
            f"datasets.{entry.name}",
            "labels -1, 0 and 1, and unlabelled points by [splits]",
            "the label of every point, by which methods are scored on the unlabelled ones",
            'Set classes = ["-1", "0", "1"] if 0 is a class, or classes = ["-1", "1"] to leave '
            "these points out; mkldist.solve takes points whose label nobody knows",
        )


def check_folds(grids: Mapping[str, MethodGrid], dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse more folds of an inner cross-validation than a class has points to train on.

    Where nobody asked for a number of folds, methods take fewer by themselves.

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
    for key, grid in grids.items():
        for point in grid.points:
            folds = getattr(point, "folds", 0) if "folds" in point.model_fields_set else 0
            if folds > smallest:
                raise SpecError(
                    f"methods.{key}.folds",
                    f"found {folds}",
                    f"at most {smallest}, the labelled points of the smallest class in a training "
                    f"part of {dataset.name!r}",
                    "Lower it, or leave it out",
                )


def check_shares_weights(where: str, entry: MethodSpec) -> None:
    """Refuse shared kernel weights where a method cannot find them.

    Parameters
    ----------
    where : str
        The method's place in the sweep file.
    entry : MethodSpec
        The method, which is registered.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the methods that can.
    """
    if entry.kernel_weights == "shared" and not METHODS[entry.name].joint_classes:
        able = [name for name, method in METHODS.items() if method.joint_classes]
        raise SpecError(
            f"{where}.kernel_weights",
            f'"shared" for {entry.name}, which finds weights for one class at a time',
            f"a method whose classes can share them: {_one_of(able)}",
            'Or remove it: kernel_weights = "per-class" is for every method',
        )


def check_sharing_has_use(methods: Sequence[MethodSpec], datasets: Sequence[Dataset]) -> None:
    """Refuse shared kernel weights where no data set has classes that could share them.

    Parameters
    ----------
    methods : sequence of MethodSpec
        The sweep's methods.
    datasets : sequence of Dataset
        Its data sets; one of more than two classes is enough.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such method.
    """
    if any(dataset.multiclass for dataset in datasets):
        return
    for entry in methods:
        if entry.kernel_weights == "shared":
            raise SpecError(
                f"methods.{entry.key}.kernel_weights",
                '"shared" in a sweep where no data set has more than two classes',
                "classes that share weights: two have one function, and one vector of weights",
                "Remove it",
            )


def _mistake(key: str, name: str, params: SolverParams, dataset: Dataset) -> SpecError:
    loss = getattr(params, "loss", METHODS[name].loss)
    able = losses_by_target(METHODS[name].params).get(Target.VALUES, [])
    if able:
        wanted = "loss = " + _one_of([f'"{word}"' for word in able])
    else:
        others = [
            other
            for other, method in METHODS.items()
            if Target.VALUES in losses_by_target(method.params)
        ]
        wanted = f"a method that learns real values: {_one_of(others)}"
    return SpecError(
        f"methods.{key}",
        f"{name} with loss {loss} learns {LEARNT[params.target]}, "
        f"but data set {dataset.name!r} is one of regression",
        wanted,
        "Or remove the method or the data set",
    )


def _one_of(words: list[str]) -> str:
    *first, last = words or ["none is registered"]
    return f"{', '.join(first)} or {last}" if first else last
