"""Views that are graphs: which Gram matrices they are, and points that cannot have them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.data.preprocessing import scaled
from mkldist.errors import SpecError
from mkldist.kernels.graph import graph_kernels, graph_spec
from mkldist.planning.data_checks import check_graph_views, with_graph_views
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from tests.planning.words import dataset, split

Y = [-1, 1] * 3 + [1]
X = np.random.default_rng(0).normal(size=(7, 4)) * [1.0, 10.0, 1.0, 1.0]
ZSCORE = PreprocessingSpec(scale="zscore")


def entry(*graphs):
    return DatasetSpec.model_validate(
        {"name": "a", "views": [{"name": "near", "graphs": list(graphs)}]}
    )


def test_matrices_are_those_of_the_graphs_in_their_order():
    asked = entry(
        {"neighbours": [1, 3]},
        {"neighbours": 2, "features": "raw"},
        {"distance": "tangent", "neighbours": 2},  # of raw features by default
    )
    found = with_graph_views(asked, ZSCORE, dataset(Y, x=X))
    points = scaled(ZSCORE, X)
    two = graph_spec({"neighbours": 2})
    tangent = graph_spec({"distance": "tangent", "neighbours": 2})
    expected = [
        *graph_kernels(points, [graph_spec({"neighbours": k}) for k in (1, 3)]),
        *graph_kernels(X, [two, tangent]),
    ]
    assert_array_equal(found.given["near"].grams, expected)
    assert found.given["near"].present.all()
    assert found.summary.views == ("near, 4 Gram matrices of graphs",)


def test_the_data_set_is_told_by_its_points_and_graphs_not_by_the_last_bits(monkeypatch):
    def found(*graphs):
        return with_graph_views(entry(*graphs), ZSCORE, dataset(Y, x=X)).fingerprint

    one, two = found({"neighbours": 2}), found({"neighbours": 3})
    assert len({one, two, dataset(Y, x=X).fingerprint}) == 3
    monkeypatch.setattr(
        "mkldist.planning.data_checks.graph_kernels",
        lambda x, specs: graph_kernels(x, specs) * (1.0 + 1e-15),
    )
    assert found({"neighbours": 2}) == one


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        ({"neighbours": [2, 7]}, "found 7 neighbours among the 7 points of 'a'; expected at most"),
        ({"kind": "epsilon", "epsilon": 1e-9}, "found no edge in graph 0"),
    ],
)
def test_graphs_that_the_points_cannot_form_are_refused(graph, said):
    with pytest.raises(SpecError) as caught:
        with_graph_views(entry(graph), ZSCORE, dataset(Y, x=X))
    assert str(caught.value).startswith("datasets.a.views.near.graphs")
    assert said in str(caught.value)


def test_images_have_to_be_square():
    with pytest.raises(SpecError, match="the pixels of square images"):
        with_graph_views(entry({"distance": "affine"}), ZSCORE, dataset(Y, x=X[:, :3]))


def test_points_need_features():
    grams = dataset(Y, x=None, grams=np.zeros((1, 7, 7)))
    with pytest.raises(SpecError, match="found no features in 'a'"):
        with_graph_views(entry({"neighbours": 2}), ZSCORE, grams)


def test_splits_may_not_hide_points():
    asked, points = entry({"neighbours": 2}), dataset(Y, x=X)
    check_graph_views(asked, points, [split(3, 4, 0)])
    check_graph_views(DatasetSpec(name="a"), points, [split(3, 2, 2)])
    with pytest.raises(SpecError, match="of which a split tests 2; expected splits without a test"):
        check_graph_views(asked, points, [split(3, 2, 2)])
