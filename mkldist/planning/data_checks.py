"""Checks of a sweep's data, banks, splits, figures and graphs before the first run.

Views that are made of graphs are joined to their data sets here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import isqrt

import numpy as np

from mkldist.bank.bank_kernels import BankKernels
from mkldist.bank.device import device_for
from mkldist.bank.view import check_uncentred
from mkldist.core.devices import CPU
from mkldist.core.identity import content_id
from mkldist.core.memory import readable_bytes
from mkldist.core.metrics import default_metric, metrics_of
from mkldist.core.wording import pluralize
from mkldist.data.dataset import Dataset, GivenGrams, Split
from mkldist.data.preprocessing import filled, preprocessed
from mkldist.data.raw import check_fits as check_array_fits
from mkldist.errors import SpecError
from mkldist.kernels.graph import adjacency, graph_kernels
from mkldist.methods.registry import METHODS, methods_for
from mkldist.planning.costs import memory_of, most_points_of
from mkldist.planning.model import BankFacts, DatasetFacts
from mkldist.solvers.grids import MethodGrid
from mkldist.solvers.refusals import Part, ProblemFacts, Refusal, one_of
from mkldist.spec.banks import FACTORS, BankSpec
from mkldist.spec.checks import check_fits
from mkldist.spec.datasets import DatasetSpec, GraphTable, PreprocessingSpec, ViewSpec
from mkldist.spec.model import MethodSpec, OutputsSpec, SweepSpec

IMAGE_DISTANCES = ("tangent", "affine")


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
    if dataset.x is None:
        kind = "Gram matrices" if dataset.sparse is None else "sparse features"
        raise SpecError(
            where,
            f"a graph over {dataset.name!r}, which holds {kind}",
            "features" if dataset.sparse is None else "dense features",
            "Remove the methods that need a graph, or the data set",
        )
    if dataset.absent is not None:
        raise SpecError(
            where,
            f"a graph over {dataset.name!r}, in which points lack a view",
            "all features of all points",
            'Set missing = "impute" for the view, or remove the methods that need a graph',
        )
    fewest = min(len(split.known) for split in splits)
    if graph.kind == "knn" and graph.neighbours >= fewest:
        raise SpecError(
            f"{where}.neighbours",
            f"{graph.neighbours} neighbours among {fewest} points of a split of {dataset.name!r}",
            f"at most {fewest - 1}",
        )
    check_images(graph, dataset, where)
    if graph.kind == "epsilon" and graph.distance not in IMAGE_DISTANCES:
        _check_edges(graph, spec.preprocessing_of(entry), dataset, splits[0], where)


def check_images(graph: GraphTable, dataset: Dataset, where: str) -> None:
    """Refuse distances between images where the features are not the pixels of a square."""
    side = isqrt(dataset.n_features)
    if graph.distance in IMAGE_DISTANCES and side**2 != dataset.n_features:
        raise SpecError(
            f"{where}.distance",
            f'"{graph.distance}" for the {dataset.n_features} features of {dataset.name!r}',
            "the pixels of square images",
            "Set drop_constant = false under the data set if pixels were dropped",
        )


def _check_edges(
    graph: GraphTable, spec: PreprocessingSpec, dataset: Dataset, split: Split, where: str
) -> None:
    """Refuse an epsilon within which no two known points of a split lie."""
    prepared = filled if graph.of_raw_features else preprocessed
    points = prepared(spec, dataset, split)[split.known]
    if adjacency(points, graph.graph).nnz == 0:
        raise SpecError(
            f"{where}.epsilon",
            f"no two of {len(points)} points of {dataset.name!r} within {graph.epsilon:g}",
            "a distance within which points have neighbours",
            'Raise it, or set kind = "knn"',
        )


def with_graph_views(
    entry: DatasetSpec, preprocessing: PreprocessingSpec, dataset: Dataset
) -> Dataset:
    """Return a data set with the Gram matrices of its views that are graphs."""
    for view in entry.views:
        if view.graphs is not None:
            dataset = _joined(view, view.graphs, preprocessing, dataset, _place(entry, view))
    return dataset


def check_graph_views(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse splits that hide the features of points from methods, which the graphs join."""
    hidden = max((dataset.n_points - len(split.known) for split in splits), default=0)
    for view in entry.views:
        if view.graphs is not None and hidden:
            raise SpecError(
                _place(entry, view),
                f"graphs over all points of {dataset.name!r}, of which a split tests {hidden}",
                "splits without a test part",
                'Set kind = "semi-supervised" and test_fraction = 0 under [splits]',
            )


def _place(entry: DatasetSpec, view: ViewSpec) -> str:
    return f"datasets.{entry.name}.views.{view.name}.graphs"


def _joined(
    view: ViewSpec,
    graphs: Sequence[GraphTable],
    preprocessing: PreprocessingSpec,
    dataset: Dataset,
    where: str,
) -> Dataset:
    """Return the data set with the Gram matrices of a view's graphs."""
    _check(graphs, dataset, where)
    n = dataset.n_points
    check_array_fits(8 * len(graphs) * n * n, where, "Give fewer graphs")
    grams = np.empty((len(graphs), n, n))
    for raw, prepared in ((True, filled), (False, preprocessed)):
        own = [place for place, graph in enumerate(graphs) if graph.of_raw_features == raw]
        if own:
            points = prepared(preprocessing, dataset)
            grams[own] = graph_kernels(points, [graphs[place].graph for place in own])
    empty = np.flatnonzero(~grams.any(axis=(1, 2)))
    if len(empty):
        raise SpecError(
            where, f"no edge in graph {empty[0]} (from 0)", "graphs with edges", "Raise epsilon"
        )
    graph_ids = [graph.identity for graph in graphs]
    made_of = content_id(graphs=graph_ids, preprocessing=preprocessing.model_dump(mode="json"))
    own_grams = GivenGrams(grams, np.ones(n, dtype=np.bool_), made_of=made_of)
    said = f"{view.name}, {pluralize(len(graphs), 'Gram matrix', 'Gram matrices')} of graphs"
    return replace(
        dataset,
        given={**dataset.given, view.name: own_grams},
        summary=replace(dataset.summary, views=(*dataset.summary.views, said)),
    )


def _check(graphs: Sequence[GraphTable], dataset: Dataset, where: str) -> None:
    """Refuse points that have no such graphs."""
    if dataset.x is None or dataset.absent is not None:
        found = "no features" if dataset.x is None else "points that lack a view"
        raise SpecError(where, f"{found} in {dataset.name!r}", "all features of all points")
    for graph in graphs:
        check_images(graph, dataset, where)
        if graph.kind == "knn" and graph.neighbours >= dataset.n_points:
            raise SpecError(
                where,
                f"{graph.neighbours} neighbours among the {dataset.n_points} points of "
                f"{dataset.name!r}",
                f"at most {dataset.n_points - 1}",
            )


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
    if _some_lacking(dataset, kernels):
        check_uncentred(bank.normalisations, f"banks.{bank.label}.normalisation")


def _some_lacking(dataset: Dataset, kernels: BankKernels) -> bool:
    """Return True if a point lacks one of the kernels."""
    given = {kernel.view for kernel in kernels.given}
    if any(not dataset.given[view].present.all() for view in given):
        return True
    texts = None if dataset.texts is None else dataset.texts.absent
    return any(
        absent is not None
        and functions is not None
        and bool(absent[:, functions.subset_indices].any())
        for absent, functions in (
            (dataset.absent, kernels.of_features),
            (texts, kernels.of_texts),
        )
    )


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


BOUNDARY = "decision-boundary"


def check_figures(outputs: OutputsSpec, dataset: Dataset) -> None:
    """Refuse figures without matplotlib, and decision boundaries unless points lie in a plane."""
    if BOUNDARY not in outputs.figures:
        return
    if find_spec("matplotlib") is None:
        raise SpecError(
            "outputs.figures",
            f'"{BOUNDARY}" without matplotlib',
            "the package matplotlib",
            "pip install 'mkldist[figures]' installs it",
        )
    if dataset.x is None:
        kind = "Gram matrices" if dataset.sparse is None else "sparse features"
        found = f"{dataset.name!r}, which holds {kind}"
    elif dataset.classes is None:
        found = f"{dataset.name!r}, a data set of regression"
    elif dataset.n_features != 2:
        found = f"{dataset.name!r}, which has {dataset.n_features} features"
    elif dataset.given or dataset.texts is not None or dataset.absent is not None:
        found = f"{dataset.name!r}, which has more than two features for each point"
    else:
        return
    raise SpecError(
        "outputs.figures",
        f'"{BOUNDARY}" of {found}',
        "classes and two features in every data set",
        "Remove it, or the data set",
    )


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
            refusal = METHODS[entry.name].refuses(_facts_of_factors(bank))
            if refusal is not None:
                most = max(banks[name, bank.label].n_kernels for name in thin)
                raise _no_factors(spec, bank, entry, refusal, grids[thin[0]][entry.key], most)
        for name in thin:
            if any(len(split.unlabelled) for split in datasets[name][1]):
                raise SpecError(
                    f"banks.{bank.label}.backend",
                    f'"{FACTORS}" for data set {name!r}, which has unlabelled rows',
                    "labelled rows alone, among which the pivots of factors are",
                    "Choose another backend, or remove the unlabelled rows",
                )


def _facts_of_factors(bank: BankSpec) -> ProblemFacts:
    """Return the facts of a bank of factors by which methods take it or refuse."""
    return ProblemFacts(factors=True, rounded=bank.dtype == "float32")


def _no_factors(
    spec: SweepSpec,
    bank: BankSpec,
    entry: MethodSpec,
    refusal: Refusal,
    grid: MethodGrid,
    n_kernels: int,
) -> SpecError:
    """Return the error of a method that cannot solve on a bank of factors."""
    others = f"{refusal.others}: {one_of(methods_for(_facts_of_factors(bank)))}"
    if refusal.part is Part.ROUNDED:
        return SpecError(
            f"methods.{entry.key}",
            f"{entry.name} on bank {bank.label!r} of factors in float32, but it {refusal.reason}",
            others,
            f"Or give the bank {refusal.expected}",
        )
    n_bytes = memory_of(spec)
    most = most_points_of(grid, n_kernels, n_bytes)
    return SpecError(
        f"methods.{entry.key}",
        f"{entry.name} on bank {bank.label!r} of factors, but it {refusal.reason}, which "
        f"the {n_bytes / 2**30:.1f} GiB of a solver hold up to {most:,} points",
        others,
        "Or give it a bank with another backend by banks = [...]",
    )
