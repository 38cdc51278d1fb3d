"""Graphs that the points of a data set cannot form; tests/run/test_semi_supervised.py has more."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.errors import SpecError
from mkldist.planning.data_checks import check_graph
from mkldist.planning.spec_checks import resolve_methods
from tests.planning.words import dataset, split, sweep

LAPSVM = '[[methods]]\nname = "lapsvm"\n'
SPLITS = [split(6), split(3, 2, 2)]


def check(graph, given=None, methods=LAPSVM):
    spec = sweep(f"{methods}[graph]\n{graph}\n")
    grids = resolve_methods(spec)[spec.datasets[0].name].values()
    check_graph(spec, spec.datasets[0], given or dataset([-1, 1] * 3 + [1]), SPLITS, grids)


def test_graphs_that_the_points_form_are_taken():
    for graph in ("neighbours = 4", 'kind = "epsilon"\nepsilon = 10.0'):
        check(graph)
    gaps = dataset([-1, 1] * 3 + [1], x=np.where(np.eye(7, 2), np.nan, 1.0), impute="mean")
    for features in ("raw", "preprocessed"):
        check(f'kind = "epsilon"\nepsilon = 10.0\nfeatures = "{features}"', gaps)
    square = dataset([-1, 1] * 3 + [1], x=np.zeros((7, 9)))
    check('distance = "tangent"\nneighbours = 4', square)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ("neighbours = 5", "graph.neighbours: found 5 neighbours among 5 points of a split of 'a'; "
         "expected at most 4"),
        ('distance = "affine"\nneighbours = 2', "graph.distance: found \"affine\" for the 2 "
         "features of "
         "'a'; expected the pixels of square images"),
        ('kind = "epsilon"\nepsilon = 1e-9', "graph.epsilon: found no two of 6 points of 'a' "
         "within "
         "1e-09"),
    ],
)  # fmt: skip
def test_graphs_that_the_points_cannot_form_are_refused(graph, said):
    with pytest.raises(SpecError) as caught:
        check(graph)
    assert str(caught.value).startswith(said)


def test_gram_matrices_have_no_graph():
    grams = dataset([-1, 1] * 3 + [1], x=None, grams=np.zeros((1, 7, 7)))
    with pytest.raises(SpecError, match="graph: found a graph over 'a', which holds Gram matrices"):
        check("neighbours = 4", grams)


def test_methods_without_a_graph_ask_nothing_of_the_points():
    check("neighbours = 400", methods='[[methods]]\nname = "level"\n')
