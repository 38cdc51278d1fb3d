"""Check that the points of a data set have the graph that methods of a sweep need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt

from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import filled, preprocessed
from mkldist.errors import SpecError
from mkldist.kernels.graph import adjacency
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.graph import GraphTable
from mkldist.spec.model import SweepSpec

IMAGE_DISTANCES = ("tangent", "affine")


def check_graph(
    spec: SweepSpec,
    entry: DatasetSpec,
    dataset: Dataset,
    splits: Sequence[Split],
    grids: Iterable[MethodGrid],
) -> None:
    """Refuse a graph that a method needs but that the points of a data set cannot form.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    entry : DatasetSpec
        The data set's entry.
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.
    grids : iterable of MethodGrid
        The sweep's methods.

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

    Parameters
    ----------
    graph : GraphTable
        The graph.
    dataset : Dataset
        The data set.
    where : str
        The place of the graph, for the message.

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
