"""Facts of data, splits and kernels that the tree of results shows as coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from mkldist.arrays import Array, Ints
from mkldist.data.dataset import Split
from mkldist.resolve.resolved import Resolved
from mkldist.results.coordinates import kernel_coordinates
from mkldist.results.layout import TreeFacts
from mkldist.search.rounds import Rounds
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.splits import SplitsSpec

T = TypeVar("T")


def tree_facts(rounds: Rounds) -> TreeFacts:
    """Return the facts that the layout of a sweep's tree needs beside the plan."""
    spec, resolved = rounds.spec, rounds.resolved
    data = {name: dataset for name, (dataset, _) in resolved.datasets.items()}
    splits = {
        name: own[: resolved.facts[name].n_splits] for name, (_, own) in resolved.datasets.items()
    }
    entries = {entry.name: entry for entry in spec.sized_datasets}
    rows_kept = spec.outputs.predictions or spec.outputs.coefficients
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
        tasks={name: dataset.task for name, dataset in data.items()},
        unlabelled={name for name, own in splits.items() if any(len(s.unlabelled) for s in own)},
        classes={name: dataset.classes for name, dataset in data.items() if dataset.classes},
        splits={
            name: split_coordinates(spec.splits_of(entries[name]), own)
            for name, own in splits.items()
        },
        n_features={name: dataset.n_features for name, dataset in data.items()},
        most_runs=rounds.most_runs,
    )


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
    return {
        "repeat": repeat,
        "fold": fold,
        "n_train": np.array([len(split.train) for split in splits]),
        "n_test": np.array([len(split.test) for split in splits]),
        "n_unlabelled": np.array([len(split.unlabelled) for split in splits]),
    }
