"""Graph Laplacians and their kernels."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from mkldist.data.synthetic import generate
from mkldist.errors import DataError, SpecError
from mkldist.kernels.graph import (
    GraphSpec,
    adjacency,
    graph_kernels,
    graph_laplacian,
    graph_laplacians,
    graph_spec,
)
from tests.data.mistakes import mistake

GIVEN = {"distance": "precomputed", "neighbours": 1}
DISTANCES = ("euclidean", "cosine")
GRAPHS: list[dict[str, Any]] = [
    {"neighbours": 4},
    {"neighbours": 4, "weights": "heat"},
    {"neighbours": 1, "weights": "heat", "width": 0.3},
    {"kind": "epsilon", "epsilon": 0.9},
    {"kind": "epsilon", "epsilon": 0.4, "weights": "heat"},
]


def points(seed: int = 0, n: int = 30, d: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def distance(a: np.ndarray, b: np.ndarray, kind: str) -> float:
    if kind == "cosine":
        return 1.0 - float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.sqrt(((a - b) ** 2).sum()))


def written_out(x: np.ndarray, spec: GraphSpec) -> np.ndarray:
    """Return the weights of the edges by the definition of each, in plain loops."""
    n = len(x)
    lengths = [[distance(a, b, spec.distance) for b in x] for a in x]
    near = []
    for i in range(n):
        others = sorted((lengths[i][j], j) for j in range(n) if j != i)
        if spec.kind == "knn":
            near.append({j for _, j in others[: spec.neighbours]})
        else:
            near.append({j for length, j in others if length <= spec.epsilon})
    edges = [lengths[i][j] for i in range(n) for j in near[i]]
    width = spec.width or (sum(edges) / len(edges) if edges else 1.0)
    weights = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if j in near[i] or i in near[j]:
                heat = np.exp(-(lengths[i][j] ** 2) / (2 * width**2))
                weights[i, j] = heat if spec.weights == "heat" else 1.0
    return weights


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
@pytest.mark.parametrize("n_features", [3, 40])
def test_edges_are_those_of_the_definition(kind, graph, n_features):
    spec = GraphSpec(distance=kind, **graph)
    x = points(d=n_features)
    assert_allclose(adjacency(x, spec).toarray(), written_out(x, spec), atol=1e-12)


@pytest.mark.parametrize("kind", DISTANCES)
@pytest.mark.parametrize("graph", GRAPHS, ids=str)
@pytest.mark.parametrize("convert", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_points_give_the_graph_of_dense_ones(kind, graph, convert):
    x = points(1, 40, 60)
    x[np.random.default_rng(2).uniform(size=x.shape) < 0.8] = 0.0
    spec = GraphSpec(distance=kind, **graph)
    assert_allclose(
        adjacency(convert(x), spec).toarray(), written_out(x, spec), rtol=1e-9, atol=1e-12
    )


def test_wide_sparse_text_is_never_made_dense():
    rng = np.random.default_rng(3)
    rows, cols = rng.integers(0, 200, 4000), rng.integers(0, 7511, 4000)
    x = sparse.coo_array((rng.uniform(size=4000), (rows, cols)), shape=(200, 7511))
    x.toarray = x.todense = None  # type: ignore[assignment,method-assign]
    laplacian = graph_laplacian(x, GraphSpec(distance="cosine", laplacian="normalised"))
    assert laplacian.shape == (200, 200)
    assert np.isfinite(laplacian.data).all()


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_combinatorial_laplacian_measures_differences_along_edges(graph):
    x = points(4)
    spec = GraphSpec(**graph)
    weights, laplacian = written_out(x, spec), graph_laplacian(x, spec).toarray()
    f = points(5, len(x), 1)[:, 0]
    expected = 0.5 * sum(
        weights[i, j] * (f[i] - f[j]) ** 2 for i in range(len(x)) for j in range(len(x))
    )
    assert f @ laplacian @ f == pytest.approx(expected, rel=1e-12)
    assert_allclose(laplacian.sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_normalised_laplacian_measures_differences_of_scaled_values(graph):
    x = points(6)
    spec = GraphSpec(laplacian="normalised", **graph)
    weights, laplacian = written_out(x, spec), graph_laplacian(x, spec).toarray()
    degrees = weights.sum(axis=1)
    f = points(7, len(x), 1)[:, 0]
    scaled = np.divide(f, np.sqrt(degrees), out=np.zeros_like(f), where=degrees > 0)
    expected = 0.5 * (weights * (scaled[:, None] - scaled[None]) ** 2).sum()
    assert f @ laplacian @ f == pytest.approx(expected, rel=1e-12)
    assert_allclose(laplacian @ np.sqrt(degrees), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(laplacian)[-1] <= 2.0 + 1e-12


@pytest.mark.parametrize("kind", ["combinatorial", "normalised"])
@pytest.mark.parametrize("power", [2, 3, 5])
def test_powers(kind, power):
    x = points(8)
    once = graph_laplacian(x, GraphSpec(laplacian=kind)).toarray()
    iterated = graph_laplacian(x, GraphSpec(laplacian=kind, power=power)).toarray()
    expected = np.linalg.matrix_power(once, power)
    assert_allclose(iterated, expected, atol=1e-12 * np.abs(expected).max())
    assert_array_equal(iterated, iterated.T)


@settings(deadline=None, max_examples=30)
@given(
    x=arrays(np.float64, (12, 2), elements=st.integers(-2, 2).map(float)),
    graph=st.sampled_from(GRAPHS),
    kind=st.sampled_from(DISTANCES),
    laplacian=st.sampled_from(["combinatorial", "normalised"]),
    power=st.integers(1, 3),
)
def test_always_symmetric_and_positive_semi_definite(x, graph, kind, laplacian, power):
    spec = GraphSpec(distance=kind, laplacian=laplacian, power=power, **graph)
    found = graph_laplacian(x, spec).toarray()
    assert_array_equal(found, found.T)
    eigenvalues = np.linalg.eigvalsh(found)
    assert eigenvalues[0] >= -1e-12 * max(eigenvalues[-1], 1.0)


def test_path():
    laplacian = graph_laplacian([[0.0], [1.0], [2.1]], GraphSpec(kind="epsilon", epsilon=1.5))
    assert_array_equal(laplacian.toarray(), [[1, -1, 0], [-1, 2, -1], [0, -1, 1]])


def test_star_of_a_nearest_neighbour_graph_has_edges_of_either_end():
    leaves = [[1.0, 0.0], [-1.1, 0.0], [0.0, 1.2], [0.0, -1.3]]
    laplacian = graph_laplacian([[0.0, 0.0], *leaves], GraphSpec(neighbours=1)).toarray()
    assert_array_equal(np.diag(laplacian), [4, 1, 1, 1, 1])
    assert_array_equal(laplacian[0, 1:], -np.ones(4))


def test_all_neighbours_give_the_complete_graph():
    laplacian = graph_laplacian(points(n=6), GraphSpec(neighbours=5))
    assert_array_equal(laplacian.toarray(), 6 * np.eye(6) - np.ones((6, 6)))


@pytest.mark.parametrize("kind", ["combinatorial", "normalised"])
@pytest.mark.parametrize("weights", ["binary", "heat"])
def test_isolated_points_have_zero_rows(kind, weights):
    x = np.array([[0.0], [0.5], [9.0]])
    spec = GraphSpec(kind="epsilon", epsilon=1.0, weights=weights, laplacian=kind)
    laplacian = graph_laplacian(x, spec).toarray()
    assert_array_equal(laplacian[2], 0.0)
    assert_array_equal(laplacian[:, 2], 0.0)
    assert laplacian[0, 0] > 0
    assert_array_equal(graph_laplacian(x[[0, 2]], spec).toarray(), np.zeros((2, 2)))


@pytest.mark.parametrize("weights", ["binary", "heat"])
@pytest.mark.parametrize("n_features", [2, 30])
def test_duplicates_are_joined_to_each_other_and_not_to_themselves(weights, n_features):
    x = np.repeat(points(9, 2, n_features), 3, axis=0)
    laplacian = graph_laplacian(x, GraphSpec(neighbours=2, weights=weights)).toarray()
    triangle = 3 * np.eye(3) - np.ones((3, 3))
    assert_allclose(laplacian, np.kron(np.eye(2), triangle), atol=1e-6)


def test_zero_vectors_are_far_from_all_in_cosine_distance():
    x = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 0.0]])
    laplacian = graph_laplacian(x, GraphSpec(distance="cosine", kind="epsilon", epsilon=0.5))
    assert_array_equal(laplacian.toarray(), [[1, -1, 0], [-1, 1, 0], [0, 0, 0]])


def test_order_of_points_does_not_matter():
    x = points(10)
    order = np.random.default_rng(11).permutation(len(x))
    spec = GraphSpec(weights="heat", laplacian="normalised", power=2)
    assert_allclose(
        graph_laplacian(x[order], spec).toarray(),
        graph_laplacian(x, spec).toarray()[np.ix_(order, order)],
        atol=1e-12,
    )


def test_graphs_that_share_a_search_are_those_alone(monkeypatch):
    import sklearn.neighbors

    fits = []
    fit = sklearn.neighbors.NearestNeighbors.fit
    monkeypatch.setattr(
        sklearn.neighbors.NearestNeighbors, "fit", lambda self, x: fits.append(1) or fit(self, x)
    )
    x, specs = points(), [graph_spec(one) for one in GRAPHS]
    together = graph_laplacians(x, specs)
    assert len(fits) == 3  # of one kind and metric, and of two distances epsilon
    for spec, found in zip(specs, together, strict=True):
        assert_array_equal(found.toarray(), graph_laplacian(x, spec).toarray())


def test_two_circles_fall_apart_into_their_classes():
    raw = generate("two_circles", {"n": 600, "noise": 0.02}, 0, "test")
    for spec in (GraphSpec(neighbours=10), GraphSpec(kind="epsilon", epsilon=0.3)):
        laplacian = graph_laplacian(raw.x, spec)
        count, component = connected_components(laplacian, directed=False)
        assert count == 2
        assert len(set(zip(component, raw.labels, strict=True))) == 2
        assert np.linalg.matrix_rank(laplacian.toarray()) == 598


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"distance": "cosinus"}, ("graph.distance", "Did you mean 'cosine'?")),
        ({"neighbors": 3}, ("graph.neighbors", "Did you mean 'neighbours'?")),
        ({"neighbours": 0}, ("graph.neighbours", "at least 1")),
        ({"neighbours": 2.5}, ("graph.neighbours", "whole number")),
        ({"power": 0}, ("graph.power", "at least 1")),
        ({"kind": "epsilon"}, ("no epsilon",)),
        ({"epsilon": 0.1}, ('kind = "epsilon"',)),
        ({"kind": "epsilon", "epsilon": 0.1, "neighbours": 5}, ("found neighbours with", '"knn"')),
        ({"kind": "epsilon", "epsilon": float("inf")}, ("graph.epsilon", "finite")),
        ({"width": 1.0}, ("weights = 'heat'",)),
        ({"weights": "heat", "width": 0.0}, ("graph.width", "above 0")),
    ],
)
def test_mistakes_in_a_graph(options, words):
    with pytest.raises(SpecError) as caught:
        graph_spec(options)
    assert caught.value.expected
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("x", "options", "words"),
    [
        (np.zeros((5, 2)), {}, ("10 neighbours among 5 points", "at most 4")),
        ([[1.0], [np.nan]], {"neighbours": 1}, ("not finite",)),
        (sparse.csr_array([[1.0], [np.inf]]), {"neighbours": 1}, ("not finite",)),
        ([1.0, 2.0], {"neighbours": 1}, ("shape (2,)",)),
        ([["a"], ["b"]], {"neighbours": 1}, ("cannot be read as numbers",)),
        (np.zeros((0, 2)), {"kind": "epsilon", "epsilon": 1}, ("shape (0, 2)",)),
        (np.zeros((20, 2)), GIVEN, ("shape (20, 2)", "(20, 20)")),
        (sparse.csr_array(np.eye(3)), GIVEN, ("sparse",)),
        (np.tril(np.ones((3, 3)), -1), GIVEN, ("entry (0, 1) of 0", "opposite entry")),
        (np.full((3, 3), np.inf), GIVEN, ("not finite", "finite numbers")),
        (np.ones((3, 3)), GIVEN, ("entry (0, 0) of 1", "0 on the diagonal")),
        (np.eye(3) - 1.0, GIVEN, ("entry (0, 1) of -1", "no distance below 0")),
    ],
)
def test_mistakes_in_points(x, options, words):
    with mistake(*words, error=DataError):
        graph_laplacian(x, graph_spec(options))


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_distances_may_be_given(graph):
    x = points(7)
    found = adjacency(cdist(x, x), GraphSpec(distance="precomputed", **graph)).toarray()
    assert_allclose(found, written_out(x, GraphSpec(**graph)))


def test_kernels_are_pseudo_inverses_of_the_laplacians():
    x = np.random.default_rng(0).normal(size=(25, 3))
    specs = [
        graph_spec({"neighbours": 1}),  # of several components
        graph_spec({"neighbours": 4, "weights": "heat"}),
        graph_spec({"distance": "cosine", "neighbours": 3, "laplacian": "normalised"}),
    ]
    kernels = graph_kernels(x, specs)
    assert kernels.shape == (3, 25, 25)
    for G, spec in zip(kernels, specs, strict=True):
        L = graph_laplacian(x, spec).toarray()
        assert_allclose(L @ G @ L, L, atol=1e-10)
        assert_allclose(G @ L @ G, G, atol=1e-10)
        assert_allclose(G @ L, (G @ L).T, atol=1e-10)
        assert np.array_equal(G, G.T)
        assert np.linalg.eigvalsh(G).min() > -1e-12


def test_points_of_different_components_have_nothing_in_common():
    x = np.array([[0.0], [1.0], [2.0], [100.0], [101.0], [102.0]])
    [G] = graph_kernels(x, [graph_spec({"neighbours": 2})])
    assert_allclose(G[:3, 3:], 0.0, atol=1e-12)
    assert_allclose(G.sum(axis=1), 0.0, atol=1e-12)  # constants are free
    assert_allclose(G[0, 0], 2.0 / 9.0)  # of a triangle, L^+ = (I - 11'/3) / 3
