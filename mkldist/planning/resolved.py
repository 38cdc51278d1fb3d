"""Resolve the words of a sweep: load its data, make splits, kernels and grids, and check them.

Everything that a sweep names is checked before its first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank_kernels import BankKernels, SayNothing
from mkldist.core.arrays import Floats
from mkldist.core.checksums import array_id, content_id
from mkldist.core.metrics import pooled_words
from mkldist.core.wording import pluralize
from mkldist.data.catalogue import load_dataset, located
from mkldist.data.checks import check_fits as check_array_fits
from mkldist.data.dataset import Dataset, GramView, Split
from mkldist.data.inputs import InputData
from mkldist.data.npz_files import read_npy
from mkldist.data.opening import check_file
from mkldist.data.preprocessing import graph_points
from mkldist.data.splits import make_splits, n_inner_folds
from mkldist.data.validate import check_known_rows, summary_lines
from mkldist.errors import SpecError
from mkldist.kernels.evaluate import check_custom
from mkldist.kernels.graph import checked_distances, graph_kernels
from mkldist.planning.checks import (
    check_banks,
    check_device,
    check_factors,
    check_folds,
    check_graph,
    check_graph_has_use,
    check_graph_views,
    check_joined,
    check_kernel_numbers,
    check_kernels,
    check_labels,
    check_metric,
    check_number_of_runs,
    check_presence,
    check_search,
    check_two_classes,
    check_unlabelled,
    check_unscaled,
    resolve_methods,
)
from mkldist.planning.model import BankFacts, DatasetFacts
from mkldist.planning.planner import with_backends
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import FOLDS, DatasetSpec, GraphTable, PreprocessingSpec, SplitsSpec
from mkldist.spec.model import SweepSpec

NOTHING: Mapping[str, InputData] = {}


@dataclass(frozen=True, eq=False)
class Resolved:
    """Sweep with its data at hand by data set; banks by data set and label, grids by method too."""

    datasets: dict[str, tuple[Dataset, tuple[Split, ...]]]
    facts: dict[str, DatasetFacts]
    banks: dict[tuple[str, str], BankFacts]
    grids: dict[str, dict[str, MethodGrid]]
    kernels: dict[tuple[str, str], BankKernels] = field(default_factory=dict)  # but given matrices
    code: str = ""  # folder in which workers find the user's functions; empty without any
    _silent: dict[str, dict[str, str]] = field(default_factory=dict)

    def silent_kernels(self, spec: SweepSpec) -> Mapping[str, Mapping[str, str]]:
        """Return, by data set and bank, how many kernels say nothing on a training part."""
        for entry in () if self._silent else spec.sized_datasets:
            (dataset, splits), scaling = self.datasets[entry.name], spec.preprocessing_of(entry)
            self._silent[entry.name] = {
                bank.label: SayNothing.in_bank(
                    self.kernels.get((entry.name, bank.label)), dataset, splits[0].train, scaling,
                    cosine="cosine" in bank.normalisations, seed=spec.seed,
                ).words
                for bank in spec.sized_banks
            }  # fmt: skip
        return self._silent

    def summary_lines(self, spec: SweepSpec) -> list[str]:
        """Return lines about every data set: what was taken, and how, from its source."""
        lines = []
        for entry in spec.datasets:
            first = spec.sizes_of(entry)[0].name
            dataset = replace(self.datasets[first][0], name=entry.name)
            lines += summary_lines(dataset, spec.preprocessing_of(entry), entry.class_weight)
            lines += self._split_lines(first)
            for name, words in self.silent_kernels(spec)[first].items():
                of_bank = f"bank {name!r}: " if len(spec.banks) > 1 else ""
                lines += [f"  kernels:   {of_bank}{words}"] * bool(words)
        return lines

    def _split_lines(self, name: str) -> Iterator[str]:
        """Yield lines if splits have the rows of others, and if test parts lack classes."""
        (dataset, splits), count = self.datasets[name], self.facts[name].n_of_few_classes
        again = len(splits) - len({split.fingerprint for split in splits})
        if again:
            yield f"  splits:    {again} of {len(splits)} have the rows of others: nothing new"
        if count:
            yield f"  scores:    {pooled_words(count, dataset.task)}"

    def kernel_names(self, dataset: str, bank: str) -> list[str]:
        """Return the names of a bank's kernels."""
        kernels = self.kernels.get((dataset, bank))
        if kernels is None:
            count = self.banks[dataset, bank].n_kernels
            names = self.datasets[dataset][0].gram_names
            return [f"gram[{one}]" for one in names or range(count)]
        return kernels.names(self.datasets[dataset][0].feature_names)


def resolve(
    spec: SweepSpec, data_dirs: Sequence[Path], base: Path, given: Mapping[str, InputData] = NOTHING
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
                    banks[place] = _given_bank(bank, dataset, dataset.grams)
                    continue
                if bank.label not in lists:
                    scaling = spec.preprocessing_of(written)
                    lists[bank.label] = BankKernels.of(bank, dataset, spec.seed, scaling)
                kernels[place] = lists[bank.label]
                check_presence(bank, dataset, kernels[place])
                check_device(bank, kernels[place], dataset)
                own = kernels[place].of_features
                if own is not None:
                    check_kernels(bank, own, spec.preprocessing_of(entry), dataset, splits)
                of_texts = kernels[place].of_texts
                if of_texts is not None and dataset.texts is not None:
                    check_custom(of_texts, dataset.texts.values[splits[0].known])
                banks[place] = BankFacts(len(kernels[place]), kernels[place].fingerprint)
    check_number_of_runs(spec, facts, grids)
    check_kernel_numbers(spec, grids, banks)
    banks = with_backends(spec, grids, banks, facts)
    check_factors(spec, grids, banks, datasets)
    return Resolved(datasets, facts, banks, grids, kernels)


def _read(
    spec: SweepSpec,
    entry: DatasetSpec,
    grids: Mapping[str, MethodGrid],
    data_dirs: Sequence[Path],
    base: Path,
    given: InputData | None,
) -> Dataset:
    """Read a data set, and check that the sweep's methods can learn from it."""
    dataset = load_dataset(entry, data_dirs, base, spec.seed, spec.splits_of(entry), given)
    graph, where = spec.graph_of(entry), f"datasets.{entry.name}"
    tables = [] if graph is None else [(f"{where}.graph" if entry.graph else "graph", graph)]
    for view in entry.views:
        tables += [(f"{where}.views.{view.name}.graphs", one) for one in view.graphs or ()]
    dataset = _with_distances(tables, dataset, lambda file: located(file, data_dirs, base))
    dataset = with_graph_views(entry, spec.preprocessing_of(entry), dataset)
    check_labels(grids, dataset)
    check_two_classes(grids, dataset)
    check_metric(spec, grids, dataset)
    check_unscaled(spec.preprocessing_of(entry), entry, dataset)
    return dataset


def _with_distances(
    tables: Sequence[tuple[str, GraphTable]], dataset: Dataset, path_of: Callable[[str], Path]
) -> Dataset:
    """Return a data set with the distances that graphs, at their places, take from files."""
    found: dict[str, Floats] = {}
    for where, graph in tables:
        if graph.distances is not None and graph.distances not in found:
            path, n = path_of(graph.distances), dataset.n_points
            place = f"{where}.distances ({path})"
            check_file(path, place)
            check_array_fits(8 * n * n, place, "Use fewer points")
            found[graph.distances] = checked_distances(read_npy(path, place, mapped=True), n, place)
    return replace(dataset, distances=found)


def _divided(
    spec: SweepSpec, entry: DatasetSpec, dataset: Dataset, grids: Mapping[str, MethodGrid]
) -> tuple[Split, ...]:
    """Divide a data set, and check that the sweep's methods can learn from its parts."""
    splits = make_splits(spec.splits_of(entry), dataset, spec.seed, entry.series)
    if spec.preprocessing_of(entry).fit == "train":
        check_known_rows(dataset, splits)
    check_unlabelled(entry, dataset, splits)
    check_folds(grids, dataset, splits)
    check_graph(spec, entry, dataset, splits, grids.values())
    check_graph_views(entry, dataset, splits)
    return splits


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
        row_bytes=0 if dataset.x is None else dataset.x.itemsize * dataset.n_features,
        n_of_few_classes=_n_of_few_classes(dataset, splits, spec.splits_of(entry)),
    )


def _n_of_few_classes(dataset: Dataset, splits: Sequence[Split], spec: SplitsSpec) -> int:
    """Return how many test parts of folds lack a class, or a second value in regression."""
    if spec.kind not in FOLDS:
        return 0
    wanted = len(dataset.classes or (0, 1))
    return sum(len(np.unique(dataset.y[split.test])) < wanted for split in splits)


def _inner_folds(dataset: Dataset, splits: Sequence[Split], spec: SweepSpec) -> tuple[int, ...]:
    if (selection := spec.inner_folds) is None:
        return ()
    where = f"selection on data set {dataset.name!r}, split"
    return tuple(
        n_inner_folds(dataset, split.train, selection, f"{where} {number} (from 0)", spec.seed)
        for number, split in enumerate(splits)
    )


def _given_bank(bank: BankSpec, dataset: Dataset, grams: npt.NDArray[np.floating]) -> BankFacts:
    """Return the facts of a bank whose Gram matrices, (M, n, n), came with the data set."""
    if bank.family != "precomputed":
        raise SpecError(
            f"banks.{bank.label}",
            f"kernels of features for {dataset.name!r}, which holds Gram matrices",
            'family = "precomputed"',
        )
    if dataset.apart and "cosine" in bank.normalisations:
        raise SpecError(
            f"banks.{bank.label}.normalisation",
            f"cosine for {dataset.name!r}, which lacks k(x, x) of test points",
            "another normalisation, or Gram matrices of all points",
        )
    return BankFacts(len(grams), array_id(np.array(grams.shape)))


def with_graph_views(
    entry: DatasetSpec, preprocessing: PreprocessingSpec, dataset: Dataset
) -> Dataset:
    """Return a data set with the Gram matrices, (M, n, n), of its views that are graphs.

    The scaling and imputation of the features are fitted on all points.
    """
    for view in entry.views:
        if view.graphs is not None:
            where = f"datasets.{entry.name}.views.{view.name}.graphs"
            grams = _graph_grams(view.graphs, preprocessing, dataset, where)
            n_grams = pluralize(len(grams.grams), "Gram matrix", "Gram matrices")
            made = f"{view.name}, {n_grams} of graphs"
            dataset = replace(
                dataset,
                given={**dataset.given, view.name: grams},
                summary=replace(dataset.summary, views=(*dataset.summary.views, made)),
            )
    return dataset


def _graph_grams(
    graphs: Sequence[GraphTable], preprocessing: PreprocessingSpec, dataset: Dataset, where: str
) -> GramView:
    """Return the Gram matrices of graphs over all points; refuse points that have no such graph."""
    n = dataset.n_points
    for graph in graphs:
        check_joined(graph, dataset, n, where)
    check_array_fits(8 * len(graphs) * n * n, where, "Give fewer graphs")
    grams = np.empty((len(graphs), n, n))
    sources = [(graph.distances, graph.of_raw_features) for graph in graphs]
    for source in dict.fromkeys(sources):
        own = [place for place, other in enumerate(sources) if other == source]
        points = graph_points(graphs[own[0]], preprocessing, dataset)
        grams[own] = graph_kernels(points, [graphs[place].graph for place in own])
    empty = np.flatnonzero(~grams.any(axis=(1, 2)))
    if len(empty):
        raise SpecError(
            where, f"no edge in graph {empty[0]} (from 0)", "graphs with edges", "Raise epsilon"
        )
    graph_ids = [graph.identity for graph in graphs]
    ids = {file: array_id(distances) for file, distances in dataset.distances.items()}
    given = {} if not ids else {"distances": [ids.get(one.distances or "") for one in graphs]}
    made_of = content_id(
        **given, graphs=graph_ids, preprocessing=preprocessing.model_dump(mode="json")
    )
    return GramView(grams, np.ones(n, dtype=np.bool_), made_of=made_of)
