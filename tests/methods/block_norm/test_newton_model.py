"""Models by a Hessian of thin factors against those by all its entries."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.passes import answered
from mkldist.methods import block_norm_dual as newton_model
from mkldist.methods.block_norm_dual import DenseModel, InnerPoint, ThinHessian, ThinModel
from mkldist.methods.regularizers import BlockQ, ElasticNet, block1
from mkldist.optim import factored_matrix
from tests.methods import plain_bank
from tests.methods.block_norm.test_inner_objective import example
from tests.methods.test_on_factors import factors_of, products_of


@pytest.fixture
def never_multiplied_out(monkeypatch):
    monkeypatch.setattr(factored_matrix, "FEW_POINTS", 0)


def hessians(regularizer) -> tuple[FactorBank, InnerPoint, np.ndarray, ThinHessian]:
    """Return factors, a point of phi on their products, and both forms of the Hessian there."""
    grams, _, phi = example(regularizer)
    factors = factors_of(grams, rank=9)
    grams = products_of(factors)
    point = phi.at(phi.anchor.rho, grams @ phi.anchor.rho)
    thin = answered(factors, phi.hessian(point))
    return factors, point, plain_bank.run(phi.hessian(point), grams), thin


@pytest.mark.parametrize("regularizer", [block1(0.05), ElasticNet(0.05, 0.4), BlockQ(0.05, 1.5)])
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.usefixtures("never_multiplied_out")
def test_the_direction_is_that_of_the_hessian_with_all_entries(monkeypatch, regularizer, bounded):
    monkeypatch.setattr(newton_model, "RESIDUAL", 1e-10)
    _, point, dense, thin = hessians(regularizer)
    assert isinstance(thin, ThinHessian)
    found = ThinModel.of(thin, point.gradient, bounded)
    expected = DenseModel.of(dense, point.gradient, bounded)
    assert_allclose(found.direction, expected.direction, atol=1e-8)
    near = point.gradient + 1e-3 * found.direction
    gain = expected.left_to_gain(near)
    assert found.left_to_gain(near) == pytest.approx(gain, rel=1e-6)


@pytest.mark.usefixtures("never_multiplied_out")
def test_a_rough_solution_descends():
    _, point, _, thin = hessians(block1(0.05))
    model = ThinModel.of(thin, point.gradient, bounded=False)
    assert model.direction @ point.gradient < 0.0
    assert model.direction.sum() == pytest.approx(0.0, abs=1e-12)


def test_a_hessian_of_as_many_columns_as_few_points_is_multiplied_out():
    _, _, dense, thin = hessians(block1(0.05))
    assert_allclose(thin, dense, atol=1e-12)
