"""Systems of support vectors against the bordered matrix, with and without all its entries."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.primal_newton import SupportSystem, ThinSupportSystem, support_system

RNG = np.random.default_rng(0)
G = RNG.normal(size=(30, 8))
SV = RNG.random(30) < 0.6
LAM = 0.05


def system(thin: bool) -> SupportSystem | ThinSupportSystem:
    K = FactoredMatrix(np.array([0.5]), [G], (G**2).sum(axis=1)[None], 30)
    return support_system(K if thin else 0.5 * G @ G.T, SV, LAM)


def bordered() -> np.ndarray:
    block = 0.5 * G[SV] @ G[SV].T + LAM * np.eye(SV.sum())
    ones = np.ones((len(block), 1))
    return np.block([[block, ones], [ones.T, np.zeros((1, 1))]])


@pytest.mark.parametrize("thin", [True, False])
def test_the_solution_is_that_of_the_bordered_matrix(thin):
    right = RNG.normal(size=SV.sum())
    x, b = system(thin).solve(right, 0.7)
    expected = np.linalg.solve(bordered(), np.append(right, 0.7))
    np.testing.assert_allclose(np.append(x, b), expected, atol=1e-4 * np.abs(expected).max())
    assert x.sum() == pytest.approx(0.7)


@pytest.mark.parametrize("thin", [True, False])
def test_projected_columns_have_the_products_of_the_inverse(thin):
    columns = RNG.normal(size=(SV.sum(), 3))
    B = system(thin).projected(columns)
    inverse = np.linalg.inv(bordered())[:-1, :-1]
    expected = columns.T @ inverse @ columns
    np.testing.assert_allclose(B.T @ B, expected, atol=1e-4 * np.abs(expected).max())


def test_a_singular_support_system_is_regularised_until_it_factorises():
    singular = SupportSystem(np.ones((4, 4)), 1e-30)
    x, b = singular.solve(np.ones(4), 1.0)
    assert np.isfinite([*x, b]).all()
    assert x.sum() == pytest.approx(1.0)
