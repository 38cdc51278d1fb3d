"""Check that a graph can be made of the points of a data set, and the views that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isqrt

import numpy as np

from mkldist.counted import counted
from mkldist.data.dataset import Dataset, GivenGrams, Split
from mkldist.data.preprocessing import filled, preprocessed
from mkldist.data.raw import check_fits
from mkldist.errors import SpecError
from mkldist.identity import content_id
from mkldist.kernels.graph import adjacency
from mkldist.kernels.graph_kernels import graph_kernels
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.graph import GraphTable
from mkldist.spec.model import SweepSpec
from mkldist.spec.views import ViewSpec

IMAGE_DISTANCES = ("tangent", "affine")


def check_graph(
    spec: SweepSpec,
    entry: DatasetSpec,
    dataset: Dataset,
    splits: Sequence[Split],
    grids: Iterable[MethodGrid],
) -> None:
    """Refuse a graph that a method needs but that the points of a data set cannot form.

    Raises
    ------
    mkldist.errors.SpecError
        For Gram matrices without features, points that lack a view, more neighbours than points,
        images that are not square, or an epsilon that joins no points of the first split.
    """
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
    """Refuse distances between images where the features are not the pixels of a square.

    Raises
    ------
    mkldist.errors.SpecError
        If they are not.
    """
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
    """Return a data set with the Gram matrices of its views that are graphs.

    Parameters
    ----------
    entry : DatasetSpec
        The data set's entry.
    preprocessing : PreprocessingSpec
        Its scaling and imputation, here fitted on all points.
    dataset : Dataset
        The data set.

    Raises
    ------
    mkldist.errors.SpecError
        For points without features or without a view, as many neighbours as points, images that
        are not square, or a graph without edges.
    mkldist.errors.DataError
        If the matrices do not fit into memory.
    """
    for view in entry.views:
        if view.graphs is not None:
            dataset = _joined(view, view.graphs, preprocessing, dataset, _place(entry, view))
    return dataset


def check_graph_views(entry: DatasetSpec, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse splits that hide the features of points from methods, which the graphs join.

    Raises
    ------
    mkldist.errors.SpecError
        If a split has points that are neither labelled nor unlabelled ones.
    """
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
    check_fits(8 * len(graphs) * n * n, where, "Give fewer graphs")
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
    said = f"{view.name}, {counted(len(graphs), 'Gram matrix', 'Gram matrices')} of graphs"
    return replace(
        dataset,
        given={**dataset.given, view.name: own_grams},
        account=replace(dataset.account, views=(*dataset.account.views, said)),
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
