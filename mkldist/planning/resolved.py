"""Resolve the words of a sweep: load its data sets, and make splits, kernels and grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank_kernels import BankKernels
from mkldist.core.identity import array_id
from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import Dataset, Split
from mkldist.data.folds import n_inner_folds
from mkldist.data.given import GivenData
from mkldist.data.missing import check_known_rows
from mkldist.data.nested import nested_splits
from mkldist.data.preprocessing import preprocessed
from mkldist.data.splits import make_splits
from mkldist.data.summary_lines import summary_lines
from mkldist.errors import SpecError
from mkldist.kernels.evaluate import check_custom, check_points, check_scale
from mkldist.kernels.kernel_list import KernelList
from mkldist.planning.costs import with_backends
from mkldist.planning.data_checks import (
    check_device,
    check_factors,
    check_figures,
    check_folds,
    check_graph,
    check_graph_views,
    check_kernel_numbers,
    check_labels,
    check_metric,
    check_number_of_runs,
    check_presence,
    check_sharing_has_use,
    check_two_classes,
    check_unlabelled,
    check_unscaled,
    with_graph_views,
)
from mkldist.planning.model import BankFacts, DatasetFacts
from mkldist.planning.spec_checks import (
    check_banks,
    check_graph_has_use,
    check_search,
    n_asked,
    resolve_methods,
    smaller_shares,
)
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.model import SweepSpec

NOTHING: Mapping[str, GivenData] = {}


@dataclass(frozen=True, eq=False)
class Resolved:
    """Sweep with its data at hand, by data set; banks by data set and label, grids by method too.

    After the splits of a data set come those with smaller training parts, for a search.
    """

    datasets: dict[str, tuple[Dataset, tuple[Split, ...]]]
    facts: dict[str, DatasetFacts]
    banks: dict[tuple[str, str], BankFacts]
    grids: dict[str, dict[str, MethodGrid]]
    kernels: dict[tuple[str, str], BankKernels] = field(default_factory=dict)  # but given matrices
    code: str = ""  # folder in which workers find the user's functions; empty without any

    def summary_lines(self, spec: SweepSpec) -> list[str]:
        """Return lines about every data set: what was taken, and how, from its source."""
        return [
            line
            for entry in spec.datasets
            for line in summary_lines(
                replace(self.datasets[spec.sizes_of(entry)[0].name][0], name=entry.name),
                spec.preprocessing_of(entry),
                entry.class_weight,
            )
        ]

    def kernel_names(self, dataset: str, bank: str) -> list[str]:
        """Return the names of a bank's kernels."""
        kernels = self.kernels.get((dataset, bank))
        if kernels is None:
            return [f"gram[{m}]" for m in range(self.banks[dataset, bank].n_kernels)]
        return kernels.names(self.datasets[dataset][0].feature_names)


def resolve(
    spec: SweepSpec,
    data_dirs: Sequence[Path],
    base: Path,
    given: Mapping[str, GivenData] = NOTHING,
) -> Resolved:
    """Load the data of a sweep and check everything that it names.

    Data sets are looked up by name in `given` and `data_dirs`; paths start at `base`.
    """
    check_search(spec)
    of_methods = resolve_methods(spec)
    check_graph_has_use(spec)
    check_banks(spec)
    datasets, facts, banks, grids, kernels = {}, {}, {}, {}, {}
    for written in spec.datasets:
        own_grids = of_methods[written.name]
        read = _read(spec, written, own_grids, data_dirs, base, given.get(written.name))
        lists: dict[str, BankKernels] = {}  # those of all sizes of the training parts
        for entry in spec.sizes_of(written):
            dataset = replace(read, name=entry.name)
            splits = _divided(spec, entry, dataset, own_grids)
            datasets[entry.name], grids[entry.name] = (dataset, splits), own_grids
            facts[entry.name] = _dataset_facts(entry, dataset, splits, spec)
            for bank in spec.sized_banks:
                place = entry.name, bank.label
                if dataset.grams is not None:
                    banks[place] = _given_bank(bank, dataset.name, dataset.grams)
                    continue
                if bank.label not in lists:
                    scaling = spec.preprocessing_of(written)
                    lists[bank.label] = BankKernels.of(bank, dataset, spec.seed, scaling)
                kernels[place] = lists[bank.label]
                check_presence(bank, dataset, kernels[place])
                check_device(bank, kernels[place], dataset)
                own = kernels[place].of_features
                if own is not None:
                    _check_kernels(bank, own, spec.preprocessing_of(entry), dataset, splits)
                of_texts = kernels[place].of_texts
                if of_texts is not None and dataset.texts is not None:
                    check_custom(of_texts, dataset.texts.values[splits[0].known])
                banks[place] = BankFacts(len(kernels[place]), kernels[place].fingerprint)
    check_number_of_runs(spec, facts, grids)
    check_kernel_numbers(spec, grids, banks)
    banks = with_backends(spec, grids, banks, facts)
    check_factors(spec, grids, banks, datasets)
    check_sharing_has_use(spec.methods, [dataset for dataset, _ in datasets.values()])
    return Resolved(datasets, facts, banks, grids, kernels)


def _read(
    spec: SweepSpec,
    entry: DatasetSpec,
    grids: Mapping[str, MethodGrid],
    data_dirs: Sequence[Path],
    base: Path,
    given: GivenData | None,
) -> Dataset:
    """Read a data set, and check that the sweep's methods can learn from it."""
    dataset = load_dataset(entry, data_dirs, base, spec.seed, spec.splits_of(entry), given)
    dataset = with_graph_views(entry, spec.preprocessing_of(entry), dataset)
    check_labels(grids, dataset)
    check_two_classes(grids, dataset)
    check_figures(spec.outputs, dataset)
    check_metric(spec, grids, dataset)
    check_unscaled(spec.preprocessing_of(entry), entry, dataset)
    return dataset


def _divided(
    spec: SweepSpec, entry: DatasetSpec, dataset: Dataset, grids: Mapping[str, MethodGrid]
) -> tuple[Split, ...]:
    """Divide a data set, and check that the sweep's methods can learn from its parts."""
    splits = make_splits(spec.splits_of(entry), dataset, spec.seed, entry.series)
    splits += nested_splits(dataset, splits, smaller_shares(spec.search), spec.seed)
    if spec.preprocessing_of(entry).fit == "train":
        check_known_rows(dataset, splits)
    check_unlabelled(entry, dataset, splits)
    check_folds(grids, dataset, splits)
    check_graph(spec, entry, dataset, splits, grids.values())
    check_graph_views(entry, dataset, splits)
    return splits


def _check_kernels(
    bank: BankSpec,
    kernels: KernelList,
    preprocessing: PreprocessingSpec,
    dataset: Dataset,
    splits: Sequence[Split],
) -> None:
    """Check that kernel functions take the features, and that those of the user work on them."""
    check_scale(bank, kernels, preprocessing.scale)
    if dataset.x is not None:
        names, rows = dataset.feature_names, dataset.row_labels
        check_points(kernels, dataset.x, names, dataset.name, rows)
    if kernels.custom:
        points = preprocessed(preprocessing, dataset, splits[0])
        check_custom(kernels, points[splits[0].known])


def _dataset_facts(
    entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split], spec: SweepSpec
) -> DatasetFacts:
    preprocessing = spec.preprocessing_of(entry)
    as_is = dataset.x is None and (dataset.sparse is None or preprocessing.scale == "none")
    return DatasetFacts(
        fingerprint=dataset.fingerprint,
        n_points=dataset.n_points,
        split_fingerprints=tuple(split.fingerprint for split in splits),
        known_fingerprints=tuple(array_id(split.known) for split in splits),
        known_sizes=tuple(len(split.known) for split in splits),
        train_sizes=tuple(len(split.train) for split in splits),
        precomputed=as_is,
        target=preprocessing.target if dataset.task == "regression" else "none",
        graph=spec.graph_of(entry),
        class_weight=entry.class_weight,
        n_problems=max(1, len(dataset.multiclass)),
        inner_folds=_inner_folds(dataset, splits, spec),
        n_smaller=len(splits) - n_asked(len(splits), spec.search),
        row_bytes=0 if dataset.x is None else dataset.x.itemsize * dataset.n_features,
    )


def _inner_folds(dataset: Dataset, splits: Sequence[Split], spec: SweepSpec) -> tuple[int, ...]:
    selection = spec.inner_folds
    if selection is None:
        return ()
    n_splits, shares = n_asked(len(splits), spec.search), smaller_shares(spec.search)
    found = []
    for number, split in enumerate(splits):
        where = f"selection on data set {dataset.name!r}, split {number % n_splits} (from 0)"
        if number >= n_splits:
            where += f", with {shares[number // n_splits - 1]:g} of its training rows for [search]"
        found.append(n_inner_folds(dataset, split.train, selection, where, spec.seed))
    return tuple(found)


def _given_bank(bank: BankSpec, name: str, grams: npt.NDArray[np.floating]) -> BankFacts:
    """Return the facts of a bank whose Gram matrices, (M, n, n), came with the data set."""
    if bank.family != "precomputed":
        raise SpecError(
            f"banks.{bank.label}",
            f"kernels of features for {name!r}, which holds Gram matrices",
            'family = "precomputed"',
        )
    return BankFacts(len(grams), array_id(np.array(grams.shape)))
