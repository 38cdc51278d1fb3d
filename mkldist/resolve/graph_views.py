"""Views that are graphs: their Gram matrices, made of the points when these are known.

The graphs join all points of a data set, so that every split has to know the features of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mkldist.counted import counted
from mkldist.data.dataset import Dataset, GivenGrams, Split
from mkldist.data.preprocessing import filled, preprocessed
from mkldist.data.raw import check_fits
from mkldist.errors import SpecError
from mkldist.identity import content_id
from mkldist.kernels.graph_kernels import graph_kernels
from mkldist.resolve.graph_check import check_images
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from mkldist.spec.graph import GraphTable
from mkldist.spec.views import ViewSpec


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

    Parameters
    ----------
    entry : DatasetSpec
        The data set's entry.
    dataset : Dataset
        The data set.
    splits : sequence of Split
        Its splits.

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
