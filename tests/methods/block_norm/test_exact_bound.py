"""Lower bounds with larger kernels than those of the solution, against the best multiple."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.block_norm import dual_value, exact_bound
from mkldist.methods.registry import METHODS
from tests.methods import instances, plain_bank
from tests.methods.references import real_values


@pytest.mark.parametrize("regularizer", ["block1", "elastic-net", "block-q"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared", "epsilon"])
def test_no_multiple_of_the_dual_point_gives_more(loss, regularizer):
    instance = instances.not_normalised()
    y = instance.y if loss in ("logistic", "hinge") else real_values(instance)
    params = METHODS["spicymkl"].params(C=0.5, loss=loss, regularizer=regularizer, tol=1e-6)
    problem = plain_bank.problem(instance.grams, y)
    solution = plain_bank.run(METHODS["spicymkl"].solve(problem, params), instance.grams)
    larger = instance.grams + 0.3 * np.eye(len(y))
    found = plain_bank.run(exact_bound(problem, params, solution), larger).value
    losses, psi, rho = params.make_loss(y), params.make_regularizer(), solution.dual_variables
    norms = np.sqrt(np.einsum("i,mij,j->m", rho, larger, rho))
    values = [dual_value(losses, psi, t * rho, t * norms).value for t in np.linspace(0, 1, 301)]
    assert found >= max(values) - 1e-4 * abs(max(values))
    same = plain_bank.run(exact_bound(problem, params, solution), instance.grams).value
    assert found < same <= solution.objective
    assert same >= solution.objective * (1 - 2e-6)
