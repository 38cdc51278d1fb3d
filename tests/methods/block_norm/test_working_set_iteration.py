"""When block-norm methods visit all kernels: `working_set_iteration`."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.block_norm import (
    LEAST_LEFT,
    MOST_LEFT,
    BlockNormBounds,
    _Bank,
)
from mkldist.methods.block_norm_dual import Iterate
from mkldist.methods.block_norm_losses import Hinge, Logistic
from mkldist.methods.regularizers import ElasticNet

TOL = 1e-6


def share_left(n_kernels, n_at_hand, *, screened=0, of=Logistic):
    """Return the share of a pass's gap at which the next one is due."""
    y = np.array([1.0, -1.0])
    loss, psi = of(y), ElasticNet(1.0, 0.0)
    bank = _Bank(n_kernels, TOL, loss, psi, BlockNormBounds(loss, psi, np.ones(n_kernels)))
    bank._gap_of_pass = 1.0
    bank.candidates.may_be_active[:screened] = False
    nothing, kernels = np.empty((n_at_hand, 2)), np.arange(n_at_hand)
    iterate = Iterate(y, y, kernels, nothing, nothing, np.zeros(n_at_hand))
    return bank.gap_for_pass(iterate)


def test_the_dearer_a_pass_the_more_exactly_the_working_set_is_solved_before():
    shares = [share_left(n, 40) for n in (50, 400, 1000, 3000, 10**6)]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (MOST_LEFT, LEAST_LEFT)
    assert shares[2] == pytest.approx(0.2)


def test_a_polyhedral_loss_has_passes_sooner():
    for n_kernels in (50, 500, 1000):
        assert share_left(n_kernels, 40, of=Hinge) > share_left(n_kernels, 40, of=Logistic)
    assert share_left(10**6, 40, of=Hinge) == LEAST_LEFT


def test_a_pass_over_few_kernels_is_cheap_however_many_are_screened():
    assert share_left(10_000, 40, screened=9_000) == pytest.approx(share_left(1_000, 40))


def test_all_kernels_at_hand_are_solved_to_the_tolerance():
    assert share_left(40, 40) == TOL
