"""Resolve the words of a sweep: load its data, make splits, kernels and grids, and check them.

Everything that a sweep names is checked before its first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank_kernels import BankKernels, SayNothing
from mkldist.bank.device import device_for
from mkldist.bank.view import check_uncentred
from mkldist.core.arrays import Floats, Target
from mkldist.core.checksums import array_id, content_id
from mkldist.core.devices import CPU
from mkldist.core.memory import readable_bytes
from mkldist.core.metrics import default_metric, metrics_of, pooled_words
from mkldist.core.wording import pluralize
from mkldist.data.catalogue import load_dataset, located
from mkldist.data.checks import check_fits as check_array_fits
from mkldist.data.dataset import Dataset, GramView, Split
from mkldist.data.inputs import InputData
from mkldist.data.npz_files import read_npy
from mkldist.data.opening import check_file
from mkldist.data.preprocessing import graph_points, preprocessed
from mkldist.data.splits import make_splits, n_inner_folds
from mkldist.data.validate import check_known_rows, summary_lines
from mkldist.errors import SpecError
from mkldist.kernels.evaluate import check_custom, check_points, check_scale
from mkldist.kernels.graph import adjacency, checked_distances, graph_kernels
from mkldist.kernels.kernel_list import KernelList
from mkldist.methods.registry import METHODS, methods_for
from mkldist.planning.model import BankFacts, DatasetFacts
from mkldist.planning.planner import memory_of, most_points_of, with_backends
from mkldist.planning.spec_checks import (
    check_banks,
    check_graph_has_use,
    check_search,
    resolve_methods,
)
from mkldist.solvers.base import Part, ProblemFacts, losses_by_target, one_of
from mkldist.solvers.grids import MethodGrid
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.datasets import (
    FOLDS,
    DatasetSpec,
    GraphTable,
    PreprocessingSpec,
    SplitsSpec,
)
from mkldist.spec.kinds import LINKED, check_fits
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
                    _check_kernels(bank, own, spec.preprocessing_of(entry), dataset, splits)
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


def check_graph(
    spec: SweepSpec,
    entry: DatasetSpec,
    dataset: Dataset,
    splits: Sequence[Split],
    grids: Iterable[MethodGrid],
) -> None:
    """Refuse a graph that a method needs but that the points of a data set cannot form."""
    graph = spec.graph_of(entry)
    if graph is None or not any(grid.method.needs_laplacian for grid in grids):
        return
    where = f"datasets.{entry.name}.graph" if entry.graph else "graph"
    _check_joined(graph, dataset, min(len(split.known) for split in splits), where)
    if graph.kind == "epsilon":
        points = graph_points(graph, spec.preprocessing_of(entry), dataset, splits[0])
        if adjacency(points, graph.graph).nnz == 0:
            raise SpecError(
                f"{where}.epsilon",
                f"no two of {len(points)} points of {dataset.name!r} within {graph.epsilon:g}",
                "a distance within which points have neighbours",
                'Raise it, or set kind = "knn"',
            )


def _check_joined(graph: GraphTable, dataset: Dataset, n_points: int, where: str) -> None:
    """Refuse a graph that so many points of a data set cannot form, by features and number."""
    if graph.distances is None and (dataset.x is None or dataset.absent is not None):
        found, hint = "points that lack a view", 'Set missing = "impute" for the view'
        if dataset.x is None:
            found = "Gram matrices" if dataset.sparse is None else "sparse features"
            hint = "Give distances = FILE.npy to the graph"
        raise SpecError(
            where,
            f"a graph over {dataset.name!r}, which has {found}",
            "dense features of all points",
            f"{hint}, or remove the graph and the methods that need one",
        )
    if graph.kind == "knn" and graph.neighbours >= n_points:
        raise SpecError(
            f"{where}.neighbours",
            f"{graph.neighbours} neighbours among {n_points} points of {dataset.name!r}",
            f"at most {n_points - 1}",
        )


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


def check_graph_views(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse splits that hide the features of points from methods, which the graphs join."""
    hidden = max((dataset.n_points - len(split.known) for split in splits), default=0)
    for view in entry.views:
        if view.graphs is not None and hidden:
            raise SpecError(
                f"datasets.{entry.name}.views.{view.name}.graphs",
                f"graphs over all points of {dataset.name!r}, of which a split tests {hidden}",
                "splits without a test part",
                'Set kind = "semi-supervised" and test_fraction = 0 under [splits]',
            )


def _graph_grams(
    graphs: Sequence[GraphTable], preprocessing: PreprocessingSpec, dataset: Dataset, where: str
) -> GramView:
    """Return the Gram matrices of graphs over all points; refuse points that have no such graph."""
    n = dataset.n_points
    for graph in graphs:
        _check_joined(graph, dataset, n, where)
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


def check_device(bank: BankSpec, kernels: BankKernels, dataset: Dataset) -> None:
    """Refuse a device that is not there, or that does not compute the kernels of a bank."""
    if bank.device == CPU:
        return
    own = kernels.of_features
    alone = own is not None and dataset.x is not None and len(own) == len(kernels)
    device_for(own if alone else None, bank.device, f"banks.{bank.label}.device")


UNFILLED = ("none", "tfidf")


def check_unscaled(preprocessing: PreprocessingSpec, entry: DatasetSpec, dataset: Dataset) -> None:
    """Refuse to scale sparse features, but for counts of terms, whose zeros stay zero."""
    if dataset.sparse is None or preprocessing.scale in UNFILLED:
        return
    own = entry.preprocessing is not None
    n_bytes = 8 * dataset.n_points * dataset.n_features
    raise SpecError(
        f"datasets.{entry.name}.preprocessing.scale" if own else "preprocessing.scale",
        f'"{preprocessing.scale}" for the sparse features of {dataset.name!r}, which would take '
        f"{readable_bytes(n_bytes)} as dense ones",
        '"none", or "tfidf" for counts of terms: they leave zeros as they are',
        'Set preprocessing = { scale = "none" } under the data set, or remove sparse = true',
    )


def check_presence(bank: BankSpec, dataset: Dataset, kernels: BankKernels) -> None:
    """Refuse to centre kernels that some points of a data set lack."""
    some_absent = any(not dataset.given[one.view].present.all() for one in kernels.given)
    texts = None if dataset.texts is None else dataset.texts.absent
    for absent, own in ((dataset.absent, kernels.of_features), (texts, kernels.of_texts)):
        if absent is not None and own is not None:
            some_absent |= bool(absent[:, own.subset_indices].any())
    if some_absent:
        check_uncentred(bank.normalisations, f"banks.{bank.label}.normalisation")


RUN_BYTES = 2000  # of a run in a plan, while the plan is made


def check_number_of_runs(
    spec: SweepSpec,
    facts: Mapping[str, DatasetFacts],
    grids: Mapping[str, Mapping[str, MethodGrid]],
) -> None:
    """Refuse more runs than a plan can hold in half of this machine's memory."""
    n_settings = {
        dataset: sum(
            len(own[method.key].points)
            for method in spec.methods
            for bank in spec.sized_banks
            if method.runs_on(bank) and not own[method.key].is_open
        )
        for dataset, own in grids.items()
    }
    n_runs = sum(facts[dataset].n_splits * n_settings[dataset] for dataset in facts)
    check_fits(n_runs, RUN_BYTES, "methods", "runs", "Lower splits.repeats, or give fewer values")


def check_metric(spec: SweepSpec, grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse a metric of another task, and one of probabilities where a method has none."""
    metric = spec.metric_of(dataset.task)
    if metric.task != dataset.task:
        kind = "values of regression" if dataset.task == "regression" else "classes"
        raise SpecError(
            "selection.metric",
            f'"{metric.name}" for {dataset.name!r}, which has {kind}',
            ", ".join(one.name for one in metrics_of(dataset.task)),
            "Data sets of classes and of regression need sweeps of their own if metric is set",
        )
    if not metric.probabilities or spec.inner_folds:
        return
    for key, grid in grids.items():
        if dataset.multiclass or not all(params.gives_log_odds for params in grid.points):
            raise SpecError(
                "selection.metric",
                f'"{metric.name}" without inner folds, which fit the probabilities of {key}',
                "folds of 2 or more, or another metric",
                f'Remove folds = 0, or set metric = "{default_metric(dataset.task).name}"',
            )


def check_unlabelled(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse labels -1, 0 and 1 where 0 may stand for points without a label.

    In a sweep the splits decide which points are unlabelled, and the labels of these points score
    the methods.
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


def check_factors(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
    datasets: Mapping[str, tuple[Dataset, Sequence[Split]]],
) -> None:
    """Refuse methods that cannot solve on a bank of factors, and unlabelled rows in such a bank."""
    for bank in (one for one in spec.sized_banks if one.may_be_factors):
        thin = [name for name in datasets if banks[name, bank.label].on_factors]
        for entry in (one for one in spec.methods if thin and one.runs_on(bank)):
            problem = ProblemFacts(factors=True, rounded=bank.dtype == "float32")
            refusal = METHODS[entry.name].refuses(problem)
            if refusal is None:
                continue
            found = f"{entry.name} on bank {bank.label!r} of factors, but it {refusal.reason}"
            if refusal.part is not Part.ROUNDED:
                n_bytes = memory_of(spec)
                n_kernels = max(banks[name, bank.label].n_kernels for name in thin)
                most = most_points_of(grids[thin[0]][entry.key], n_kernels, n_bytes)
                found += f", which {n_bytes / 2**30:.1f} GiB of a solver hold up to {most:,} points"
            raise SpecError(
                f"methods.{entry.key}",
                found,
                f"{refusal.others}: {one_of(methods_for(problem))}",
                f"Or give the bank {refusal.expected}, or the method another by banks = [...]",
            )
        for name in thin:
            if any(len(split.unlabelled) for split in datasets[name][1]):
                raise SpecError(
                    f"banks.{bank.label}.backend",
                    f'"{FACTORS}" for data set {name!r}, which has unlabelled rows',
                    "labelled rows alone, among which the pivots of factors are",
                    "Choose another backend, or remove the unlabelled rows",
                )


def check_two_classes(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse a C from another method for more than two classes: each would need its own."""
    for key, grid in grids.items():
        if grid.source and dataset.multiclass:
            raise SpecError(
                f"methods.{key}.{LINKED}",
                f"C from {grid.source} for the {len(dataset.multiclass)} classes of data set "
                f"{dataset.name!r}",
                "a data set of two classes",
                "Name two of them by classes = [...], or give values of C",
            )


def check_kernel_numbers(
    spec: SweepSpec,
    grids: Mapping[str, Mapping[str, MethodGrid]],
    banks: Mapping[tuple[str, str], BankFacts],
) -> None:
    """Refuse the number of a kernel that a bank does not have."""
    keys = {
        bank.label: [entry.key for entry in spec.methods if entry.runs_on(bank)]
        for bank in spec.sized_banks
    }
    for (dataset, bank), facts in banks.items():
        for key in keys[bank]:
            grid = grids[dataset][key]
            highest = max((point.chosen_kernel or 0 for point in grid.points), default=0)
            if highest >= facts.n_kernels:
                raise SpecError(
                    f"methods.{key}.kernel_number",
                    f"{highest}",
                    f"a number from 0 to {facts.n_kernels - 1}: bank {bank!r} of data set "
                    f"{dataset!r} has {pluralize(facts.n_kernels, 'kernel')}",
                )


def check_labels(grids: Mapping[str, MethodGrid], dataset: Dataset) -> None:
    """Refuse methods that cannot learn the labels of a data set."""
    targets = tuple(Target) if dataset.task == "classification" else (Target.VALUES,)
    problem = ProblemFacts(targets=targets)
    for key, grid in grids.items():
        for params in grid.points:
            refusal = grid.method.refuses(problem, params.target)
            if refusal is None:
                continue
            loss = getattr(params, "loss", grid.method.loss)
            losses = losses_by_target(grid.method.params).get(Target.VALUES, [])
            others = methods_for(ProblemFacts(targets=(Target.VALUES,)))
            raise SpecError(
                f"methods.{key}",
                f"{grid.method.name} with loss {loss}, which {refusal.reason}, but data set "
                f"{dataset.name!r} is one of regression",
                "loss = " + one_of([f'"{one}"' for one in losses])
                if losses
                else f"{refusal.others}: {one_of(others)}",
                "Or remove the method or the data set",
            )
