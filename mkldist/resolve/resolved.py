"""From the words of a sweep to what planning needs: data, splits, kernels and grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset, Split
from mkldist.data.folds import n_inner_folds
from mkldist.data.splits import make_splits
from mkldist.errors import SpecError, nearest
from mkldist.identity import array_id
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.methods.registry import METHODS
from mkldist.plan.facts import BankFacts, DatasetFacts, GridFacts
from mkldist.resolve.figure_check import check_figures
from mkldist.resolve.graph_check import check_graph, check_graph_has_use, check_has_graph
from mkldist.resolve.method_check import (
    check_folds,
    check_labels,
    check_shares_weights,
    check_sharing_has_use,
    check_unlabelled,
)
from mkldist.solvers.base import SolverParams
from mkldist.solvers.parameters import MethodGrid, expand
from mkldist.spec.banks import BankSpec
from mkldist.spec.model import DatasetSpec, SweepSpec


@dataclass(frozen=True, eq=False)
class Resolved:
    """A sweep with its data at hand.

    Parameters
    ----------
    datasets : dict of str to (Dataset, tuple of Split)
        Data sets and their splits by name.
    facts : dict of str to DatasetFacts
        What planning needs of them.
    banks : dict of (str, str) to BankFacts
        The same of each bank on each data set.
    grids : dict of str to GridFacts
        The same of each method.
    dims : dict of str to dict of str to list
        Values of the varying parameters by method key and parameter.
    kernels : dict of (str, str) to KernelList
        Kernels of each bank on each data set; none for precomputed matrices.
    """

    datasets: dict[str, tuple[Dataset, tuple[Split, ...]]]
    facts: dict[str, DatasetFacts]
    banks: dict[tuple[str, str], BankFacts]
    grids: dict[str, GridFacts]
    dims: dict[str, dict[str, list[Any]]]
    kernels: dict[tuple[str, str], KernelList] = field(default_factory=dict)

    def kernel_names(self, dataset: str, bank: str) -> list[str]:
        """Return the names of a bank's kernels."""
        kernels = self.kernels.get((dataset, bank))
        if kernels is None:
            return [f"gram[{m}]" for m in range(self.banks[dataset, bank].n_kernels)]
        return kernels.names(self.datasets[dataset][0].feature_names)


def resolve(spec: SweepSpec, data_dirs: Sequence[Path], base: Path) -> Resolved:
    """Load the data of a sweep and check everything that it names.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    data_dirs : sequence of Path
        Folders that are searched for data sets by name.
    base : Path
        Folder that relative paths of the sweep file are relative to.

    Raises
    ------
    mkldist.errors.InputError
        For unknown methods, parameters, data sets or kernels, and data that cannot be used.
    """
    grids = resolve_methods(spec)
    check_graph_has_use(spec)
    datasets, facts, banks, kernels = {}, {}, {}, {}
    for entry in spec.datasets:
        dataset = load_dataset(entry, data_dirs, base, spec.seed)
        check_labels(grids, dataset)
        check_figures(spec.outputs, dataset)
        splits = make_splits(spec.splits_of(entry), dataset, spec.seed)
        check_unlabelled(entry, dataset, splits)
        check_folds(grids, dataset, splits)
        check_graph(spec, entry, dataset, splits, grids.values())
        datasets[entry.name] = dataset, splits
        facts[entry.name] = _dataset_facts(entry, dataset, splits, spec)
        for bank in spec.banks:
            found = _kernels(bank, dataset, spec.seed)
            if isinstance(found, KernelList):
                kernels[entry.name, bank.label] = found
                banks[entry.name, bank.label] = BankFacts(len(found), found.fingerprint)
            else:
                banks[entry.name, bank.label] = found
    check_sharing_has_use(spec.methods, [dataset for dataset, _ in datasets.values()])
    sharing = {entry.key for entry in spec.methods if entry.kernel_weights == "shared"}
    points = {
        key: GridFacts(
            grid.method,
            tuple(run_params(point) for point in grid.points),
            METHODS[grid.method].needs_laplacian,
            shared_weights=key in sharing,
            path=METHODS[grid.method].path,
            typical_passes=METHODS[grid.method].typical_passes,
        )
        for key, grid in grids.items()
    }
    dims = {key: grid.dims for key, grid in grids.items()}
    return Resolved(datasets, facts, banks, points, dims, kernels)


def resolve_methods(spec: SweepSpec) -> dict[str, MethodGrid]:
    """Return the grid of every method of a sweep by its key; no data are read."""
    grids = {}
    for entry in spec.methods:
        where = f"methods.{entry.key}"
        if entry.name not in METHODS:
            raise SpecError(
                f"{where}.name",
                f"unknown method {entry.name!r}",
                f"one of {', '.join(METHODS)}",
                nearest(entry.name, METHODS),
            )
        check_has_graph(spec, where, entry.name)
        check_shares_weights(where, entry)
        grids[entry.key] = expand(METHODS[entry.name], where, entry.settings, spec.tol)
    return grids


def run_params(params: SolverParams) -> dict[str, Any]:
    """Return parameters as they enter a run's identity; a limit of infinity is no limit."""
    values = params.model_dump(mode="json")
    return {name: value for name, value in values.items() if value != math.inf}


def _dataset_facts(
    entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split], spec: SweepSpec
) -> DatasetFacts:
    return DatasetFacts(
        fingerprint=dataset.fingerprint,
        n_points=dataset.n_points,
        split_fingerprints=tuple(split.fingerprint for split in splits),
        known_fingerprints=tuple(array_id(split.known) for split in splits),
        known_sizes=tuple(len(split.known) for split in splits),
        precomputed=dataset.x is None,
        target=spec.preprocessing_of(entry).target if dataset.task == "regression" else "none",
        graph=spec.graph_of(entry),
        n_problems=max(1, len(dataset.multiclass)),
        inner_folds=_inner_folds(dataset, splits, spec),
    )


def _inner_folds(dataset: Dataset, splits: Sequence[Split], spec: SweepSpec) -> tuple[int, ...]:
    if spec.selection is None:
        return ()
    return tuple(
        n_inner_folds(
            dataset,
            split.train,
            spec.selection,
            f"selection on data set {dataset.name!r}, split {number} (from 0)",
        )
        for number, split in enumerate(splits)
    )


def _kernels(bank: BankSpec, dataset: Dataset, seed: int) -> KernelList | BankFacts:
    """Return the kernels of a bank on a data set, or the facts of precomputed matrices."""
    where = f"banks.{bank.label}"
    if dataset.grams is not None:
        if bank.family != "precomputed":
            raise SpecError(
                where,
                f"kernels of features for {dataset.name!r}, which holds Gram matrices",
                'family = "precomputed"',
            )
        return BankFacts(len(dataset.grams), array_id(np.array(dataset.grams.shape)))
    return kernel_list(bank, dataset.n_features, dataset.feature_names, dataset.groups, seed)
