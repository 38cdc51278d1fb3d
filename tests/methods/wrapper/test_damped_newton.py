"""Damped Newton steps: the minimiser of their model by a conic solver, and their lengths."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.weight_newton import ORTHANT, SIMPLEX, DampedNewton, Damping, Iterate, Segment
from mkldist.solvers.svm import InnerSvm
from tests.methods import instances


def newton(domain, n_kernels: int, svm_at=None) -> DampedNewton:
    return DampedNewton(domain, n_kernels, 1e-6, svm_at)


@pytest.mark.parametrize("domain", [SIMPLEX, ORTHANT], ids=["simplex", "orthant"])
@pytest.mark.parametrize("seed", range(5))
def test_the_minimiser_is_that_of_a_conic_solver(domain, seed):
    rng = np.random.default_rng(seed)
    d = rng.dirichlet(np.ones(9))
    working = np.flatnonzero(rng.random(9) < 0.8)
    d[np.setdiff1d(np.arange(9), working)] = 0.0
    d /= d.sum()
    root, gradient = rng.normal(size=(12, len(working))), rng.normal(size=len(working))
    end = newton(domain, 9).minimiser(d, working, gradient, root, size=1.0)
    x = cp.Variable(len(working))
    step = x - d[working]
    constraints = [x >= 0, cp.sum(x) == 1] if domain is SIMPLEX else [x >= 0]
    steepest = np.abs(gradient - (d[working] @ gradient if domain is SIMPLEX else 0.0)).max()
    ridge = max(1e-10 * (root**2).sum(axis=0).max(), steepest / 10)  # of a model not yet damped
    model = gradient @ step + 0.5 * cp.sum_squares(root @ step) + 0.5 * ridge * cp.sum_squares(step)
    cp.Problem(cp.Minimize(model), constraints).solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(end[working], x.value, atol=1e-6)
    assert not end[np.setdiff1d(np.arange(9), working)].any()


def line(reach: float):
    """Return Newton steps, and a segment from equal weights towards one kernel by a share."""
    instance = instances.balanced()
    svm_at = InnerSvm(instance.y, 10.0, 1e-6, Counters())
    d = np.full(7, 1 / 7)
    best = min(
        range(7),
        key=lambda m: InnerSvm(instance.y, 10.0, 1e-6, Counters())(instance.grams[m]).objective,
    )
    d_end = (1 - reach) * d + reach * np.eye(7)[best]
    start, end = (np.einsum("m,mij->ij", w, instance.grams) for w in (d, d_end))
    segment = Segment(svm_at, Iterate.solved(d, start, svm_at), d_end, end)
    return newton(SIMPLEX, 7, svm_at), segment


def test_a_slope_within_the_error_of_machines_is_not_tested_and_five_of_them_end_the_method():
    steps, segment = line(1e-13)
    for _ in range(5):
        assert not steps.stuck
        moved = steps.search(segment, 1e3)
        assert moved.step == 1.0
    assert steps.stuck
    assert moved.svm.gap < 1e-12  # machines are as exact as rounding permits from then on


def test_a_tested_step_forgives_the_untested_ones():
    steps, drowned = line(1e-13)
    for _ in range(5):
        steps.search(drowned, 1e3)
    _, clear = line(0.1)
    assert clear.slope < 0
    steps.search(clear, 1.0)
    assert not steps.stuck


def test_damping_grows_after_short_steps_and_fades_after_full_ones():
    damping, root, none = Damping(), np.array([[2.0, 1.0]]), np.zeros(2)
    first = damping.ridge(root, none, size=1.0)
    damping.adapt(0.01)
    assert damping.ridge(root, none, size=1.0) == pytest.approx(100 * first)
    for _ in range(5):
        damping.adapt(1.0)
    assert damping.ridge(root, none, size=1.0) == pytest.approx(first)
    assert damping.ridge(root, np.array([0.0, -7.0]), size=0.5) > first
