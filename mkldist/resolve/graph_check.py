"""Whether the methods of a sweep have the graphs that they need, before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isqrt
from typing import cast

from mkldist.arrays import Floats
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import scaled
from mkldist.errors import SpecError
from mkldist.kernels.graph import adjacency
from mkldist.methods.registry import METHODS
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.graph import GraphTable
from mkldist.spec.model import DatasetSpec, PreprocessingSpec, SweepSpec

IMAGE_DISTANCES = ("tangent", "affine")


def check_has_graph(spec: SweepSpec, where: str, method: str) -> None:
    """Refuse a method that needs a graph in a sweep where a data set has none.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    where : str
        The method's place in the sweep file.
    method : str
        Its name in the registry.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such data set.
    """
    if not METHODS[method].needs_laplacian:
        return
    for entry in spec.datasets:
        if spec.graph_of(entry) is None:
            raise SpecError(
                f"{where}.name",
                f"{method}, which needs a graph, but data set {entry.name!r} has none",
                "a table [graph], or graph = {...} under each data set",
                "An empty [graph] joins each point to its 10 nearest neighbours",
            )


def check_graph_has_use(spec: SweepSpec) -> None:
    """Refuse graphs in a sweep whose methods need none.

    Parameters
    ----------
    spec : SweepSpec
        The sweep, its methods registered.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first graph, and the methods that need one.
    """
    if any(METHODS[entry.name].needs_laplacian for entry in spec.methods):
        return
    given = ["graph"] if spec.graph else []
    given += [f"datasets.{entry.name}.graph" for entry in spec.datasets if entry.graph]
    if given:
        able = ", ".join(name for name, method in METHODS.items() if method.needs_laplacian)
        raise SpecError(
            given[0],
            "a graph, which no method of this sweep uses",
            f"none, or a method on graphs: {able}",
            "Remove it, or add such a method",
        )


def check_graph(
    spec: SweepSpec,
    entry: DatasetSpec,
    dataset: Dataset,
    splits: Sequence[Split],
    grids: Iterable[MethodGrid],
) -> None:
    """Refuse a graph that some method needs and that the points of a data set do not have.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    entry : DatasetSpec
        The data set's entry.
    dataset, splits
        What it is.
    grids : iterable of MethodGrid
        The sweep's methods.

    Raises
    ------
    mkldist.errors.SpecError
        For Gram matrices without features, more neighbours than points, images that are not
        square, or an epsilon that joins no points of the first split.
    """
    graph = spec.graph_of(entry)
    if graph is None or not any(METHODS[grid.method].needs_laplacian for grid in grids):
        return
    where = f"datasets.{entry.name}.graph" if entry.graph else "graph"
    if dataset.x is None:
        raise SpecError(
            where,
            f"a graph over {dataset.name!r}, which holds Gram matrices",
            "features",
            "Remove the methods that need a graph, or the data set",
        )
    fewest = min(len(split.known) for split in splits)
    if graph.kind == "knn" and graph.neighbours >= fewest:
        raise SpecError(
            f"{where}.neighbours",
            f"{graph.neighbours} neighbours among {fewest} points of a split of {dataset.name!r}",
            f"at most {fewest - 1}",
        )
    _check_images(graph, dataset, where)
    if graph.kind == "epsilon" and graph.distance not in IMAGE_DISTANCES:
        _check_edges(graph, spec.preprocessing_of(entry), dataset, splits[0], where)


def _check_images(graph: GraphTable, dataset: Dataset, where: str) -> None:
    side = isqrt(dataset.n_features)
    if graph.distance in IMAGE_DISTANCES and side**2 != dataset.n_features:
        raise SpecError(
            f"{where}.distance",
            f'"{graph.distance}" for the {dataset.n_features} features of {dataset.name!r}',
            "the pixels of square images",
            "Set drop_constant = false under the data set if pixels were dropped",
        )


def _check_edges(
    graph: GraphTable, scale: PreprocessingSpec, dataset: Dataset, split: Split, where: str
) -> None:
    x = cast("Floats", dataset.x)
    points = (x if graph.of_raw_features else scaled(scale, x, split))[split.known]
    if adjacency(points, graph.graph).nnz == 0:
        raise SpecError(
            f"{where}.epsilon",
            f"no two of {len(points)} points of {dataset.name!r} within {graph.epsilon:g}",
            "a distance within which points have neighbours",
            'Raise it, or set kind = "knn"',
        )
