"""Facts of data, splits and kernels that the tree of results shows as coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from mkldist.core.arrays import Array, Ints
from mkldist.data.dataset import Dataset, Split
from mkldist.data.row_weights import ClassWeight
from mkldist.planning.resolved import Resolved
from mkldist.results.coordinates import kernel_coordinates
from mkldist.results.layout import TreeFacts
from mkldist.run.rounds import Rounds
from mkldist.scores import constant_answers, constant_score
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.datasets import SplitsSpec

T = TypeVar("T")


def tree_facts(rounds: Rounds) -> TreeFacts:
    """Return the facts that the layout of a sweep's tree needs beside the plan."""
    spec, resolved = rounds.spec, rounds.resolved
    data = {name: dataset for name, (dataset, _) in resolved.datasets.items()}
    splits = {
        name: own[: resolved.facts[name].n_splits] for name, (_, own) in resolved.datasets.items()
    }
    entries = {entry.name: entry for entry in spec.sized_datasets}
    rows_kept = rounds.keeps_predictions or spec.outputs.coefficients
    banks = {bank.label: bank for bank in spec.sized_banks}
    return TreeFacts(
        dims=_by_method(resolved, lambda grid: grid.dims),
        run_parameters=_by_method(resolved, lambda grid: grid.run_parameters),
        kernels={
            (name, label): kernel_coordinates(
                banks[label],
                resolved.kernel_names(name, label),
                resolved.kernels.get((name, label)),
                data[name].feature_names,
                {view: one.columns for view, one in data[name].views.items()},
            )
            for name, label in (resolved.banks if spec.outputs.weights else ())
        },
        labels={name: dataset.y for name, dataset in data.items()} if rows_kept else {},
        predictions=rounds.keeps_predictions,
        data={name: described(one, entries[name].class_weight) for name, one in data.items()},
        tasks={name: dataset.task for name, dataset in data.items()},
        unlabelled={name for name, own in splits.items() if any(len(s.unlabelled) for s in own)},
        classes={name: dataset.classes for name, dataset in data.items() if dataset.classes},
        splits={
            name: split_coordinates(spec.splits_of(entries[name]), own)
            | scored_rows(data[name], own, spec.metric_of(data[name].task).name)
            for name, own in splits.items()
        },
        n_features={name: dataset.n_features for name, dataset in data.items()},
        most_runs=rounds.most_runs,
    )


def described(dataset: Dataset, class_weight: ClassWeight | None = None) -> dict[str, Any]:
    """Return what a reader of results needs to know of a data set."""
    found: dict[str, Any] = {"rows": dataset.n_points, "features": dataset.n_features}
    if dataset.x is not None:
        absent = 0 if dataset.absent is None else int(dataset.absent.sum())
        found["missing"] = int(np.isnan(dataset.x).sum()) - absent
    if dataset.classes is not None:
        counts = np.bincount(dataset.class_numbers, minlength=len(dataset.classes)).tolist()
        found["classes"] = dict(zip(dataset.classes, counts, strict=True))
    if dataset.views or dataset.given:
        found["views"] = {name: len(view.columns) for name, view in dataset.views.items()}
        found["matrices"] = {name: len(one.grams) for name, one in dataset.given.items()}
    if dataset.row_groups is not None:
        found["groups"] = len(np.unique(dataset.row_groups))
    weights = [] if class_weight is None else [_in_words(class_weight)]
    weights += [] if dataset.weights is None else ["rows by a column"]
    if weights:
        found["weights"] = ", ".join(weights)
    return found


def _in_words(class_weight: ClassWeight) -> str:
    """Return how classes weigh, in words."""
    if class_weight == "balanced":
        return "balanced classes"
    return "classes " + ", ".join(f"{name} {weight:g}" for name, weight in class_weight.items())


def _by_method(resolved: Resolved, of_grid: Callable[[MethodGrid], T]) -> dict[str, dict[str, T]]:
    """Return something of every grid, by data set and the method's key."""
    return {
        name: {key: of_grid(grid) for key, grid in grids.items()}
        for name, grids in resolved.grids.items()
    }


def split_coordinates(spec: SplitsSpec, splits: tuple[Split, ...]) -> dict[str, Array]:
    """Return repetition, fold and sizes of every split.

    Folds of one repetition are adjacent.  Splits that are not folds are repetitions of fold 0.
    """
    number: Ints = np.arange(len(splits))
    repeat, fold = number, np.zeros_like(number)
    if spec.kind in ("kfold", "time"):
        repeat, fold = np.divmod(number, spec.folds)
    elif spec.kind == "leave-one-group-out":
        repeat, fold = fold, number
    return {
        "repeat": repeat,
        "fold": fold,
        "n_train": np.array([len(split.train) for split in splits]),
        "n_test": np.array([len(split.test) for split in splits]),
        "n_unlabelled": np.array([len(split.unlabelled) for split in splits]),
    }


def scored_rows(dataset: Dataset, splits: Sequence[Split], metric: str) -> dict[str, Array]:
    """Return how many rows tell the scores of every split, and what a constant prediction scores.

    The rows are those of the test part, or the unlabelled ones where no split has a test part.

    Parameters
    ----------
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.
    metric : str
        Name of the metric that ranks its results.
    """
    labels = dataset.y if dataset.classes is None else dataset.class_numbers.astype(np.float64)
    k = len(dataset.classes or ())
    unlabelled = not any(len(split.test) for split in splits)
    parts = [split.unlabelled if unlabelled else split.test for split in splits]
    seen = np.zeros(dataset.n_points, dtype=np.bool_)
    new, rarest, scores = [], [], []
    for split, rows in zip(splits, parts, strict=True):
        new.append(int((~seen[rows]).sum()))
        seen[rows] = True
        answers, tested = constant_answers(labels[split.train], k), labels[rows]
        counts = np.bincount(tested.astype(np.intp), minlength=k) if k else [len(rows)]
        rarest.append(int(min(counts)))
        scores.append(constant_score(metric, answers, tested, k) if len(rows) else np.nan)
    return {
        "n_new": np.array(new),
        "n_rarest": np.array(rarest),
        "constant_score": np.array(scores),
    }
