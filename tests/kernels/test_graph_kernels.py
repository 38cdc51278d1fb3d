"""Kernels of graphs against the definition of a pseudo-inverse, and functions of small norm."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from mkldist.kernels.graph import graph_kernels, graph_laplacian, graph_spec


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
