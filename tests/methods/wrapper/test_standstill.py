"""Standstill: exact machines where the bounds stand still, and an end where these do not help."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.level import PATIENCE, SHARPEN_AFTER, Standstill
from mkldist.methods.registry import METHODS
from mkldist.solvers.progress import StopReason
from mkldist.solvers.svm import InnerSvm
from tests.methods import plain_bank
from tests.methods.test_awkward_mixtures import mixture


@pytest.fixture
def machine(monkeypatch):
    found = InnerSvm(np.array([1.0, -1.0]), 1.0, 0.01, Counters())
    found.times_sharpened = 0

    def sharpen():
        found.times_sharpened += 1

    monkeypatch.setattr(found, "sharpen", sharpen)
    return found


def test_bounds_that_narrow_never_stand_still(machine):
    standstill = Standstill(machine)
    assert not any(standstill.after(0.99**i) for i in range(5 * PATIENCE))
    assert machine.times_sharpened == 0


def test_machines_are_sharpened_once_before_the_end(machine):
    standstill = Standstill(machine)
    ended = [standstill.after(1.0) for _ in range(PATIENCE + 1)]
    assert ended == [False] * PATIENCE + [True]
    assert machine.times_sharpened == 1


def test_progress_and_kernels_that_join_begin_a_new_count(machine):
    for width in (0.5, 2.0):
        standstill = Standstill(machine)
        for _ in range(PATIENCE):
            standstill.after(1.0)
        assert not standstill.after(width)
        assert not any(standstill.after(width) for _ in range(SHARPEN_AFTER))


@pytest.mark.parametrize("acceleration", ["working-set", "none"])
def test_level_says_that_rounding_allows_no_more(acceleration):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 3)), np.where(np.arange(12) % 2, 1.0, -1.0)
    gram = x @ x.T
    grams = (1e13 / np.trace(gram) * gram)[None]
    params = METHODS["level"].params(C=1e3, tol=1e-9, acceleration=acceleration)
    found = plain_bank.run(METHODS["level"].solve(plain_bank.problem(grams, y), params), grams)
    assert found.stop_reason is StopReason.STALLED
    # rounding narrows the bounds now and then, which begins a new count: 26 to 38 iterations
    assert found.counters.outer_iterations <= 4 * PATIENCE


def test_a_level_near_the_upper_bound_converges_by_exact_machines():
    # The level asks for 1 % of the bounds' distance, less than the gap of machines of a tolerance.
    for seed in (6, 13, 14, 23, 38, 39):  # 500 iterations did not do before
        grams, y, C, _ = mixture(seed)
        params = METHODS["level"].params(C=C, tol=1e-4, near=0.99, acceleration="none")
        found = plain_bank.run(METHODS["level"].solve(plain_bank.problem(grams, y), params), grams)
        assert found.converged, seed
