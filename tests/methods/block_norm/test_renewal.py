"""States of block norms on kernels that have changed, against plain numpy on these."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.methods.block_norm import renewed
from mkldist.solvers.base import Problem
from tests.methods import plain_bank
from tests.methods.test_renewals import GRAMS, GROWN, Y, solution_on


@pytest.mark.parametrize("case", ["spicymkl-logistic", "spicymkl-plain", "elastmkl"])
def test_components_and_bounds_of_block_norms_are_those_of_the_new_kernels(case):
    old = solution_on(case, grown=False).state
    state = plain_bank.run(renewed(Problem(Y, len(GROWN)), old), GROWN)
    before, now = old.iterate, state.iterate
    own, rho = GROWN[now.kernels], now.rho
    lengths = np.sqrt(np.einsum("i,mij,j->m", rho, GRAMS[now.kernels], rho))
    w = before.norms / lengths
    assert_allclose(now.products, own @ rho)
    assert_allclose(now.images, w[:, None] * (own @ rho))
    assert_allclose(now.norms, w * np.sqrt(np.einsum("i,mij,j->m", rho, own, rho)))
    assert (state.candidates is None) == (case == "spicymkl-plain")
    if state.candidates is not None:
        centre = state.candidates.centre
        norms = np.sqrt(np.einsum("i,mij,j->m", centre, GROWN, centre))
        assert (state.candidates.bounds >= norms).all()
        assert_allclose(state.candidates.bounds, norms, rtol=1e-6)
        assert state.candidates.radii is None  # those of the kernels as they were
