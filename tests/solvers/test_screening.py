"""Screening: kernels proven inactive have no weight at the optimum of a conic solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.requests import Diagonal, Matvec, Quadratic
from mkldist.solvers.working_set import Candidates, distance_to_optimum
from tests.methods import instances, plain_bank
from tests.variants import quick


def random_instance(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 60 kernels on 30 points: two informative features, and 18 of noise."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    x = rng.normal(size=(30, 20))
    x[:, 0] += 1.5 * y
    x[:, 1] -= y
    grams = [rbf_kernel(x[:, [j]], gamma=g) for j in range(20) for g in (0.1, 0.5, 2.0)]
    return np.array([K / np.trace(K) for K in grams]), y


def ask(steps, grams: np.ndarray, seen: list | None = None):
    """Return what a generator of requests returns."""
    reply = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            return end.value
        if seen is not None:
            seen.append(request)
        reply = plain_bank.reply(grams, request)


def simplex_dual(grams: np.ndarray, y: np.ndarray, lam: float) -> tuple[np.ndarray, float]:
    """Maximise ``sum |r| - 1/2 ||r||^2 - 1/(2 lam) max_m r'K_m r``, r = y times r >= 0."""
    size, t = cp.Variable(len(y), nonneg=True), cp.Variable()
    r = cp.multiply(y, size)
    bounds = [cp.sum_squares(root @ r) <= t for root in instances.factors(grams)]
    value = cp.sum(size) - 0.5 * cp.sum_squares(size) - t / (2 * lam)
    problem = cp.Problem(cp.Maximize(value), [*bounds, y @ size == 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    return y * size.value, float(problem.value)


@pytest.mark.parametrize("seed", quick(range(6), 2))
@pytest.mark.parametrize("away", [1e-4, 1e-2])
def test_screened_kernels_are_not_those_of_the_conic_optimum(seed, away):
    grams, y = random_instance(seed)
    lam = 0.02
    best, optimum = simplex_dual(grams, y, lam)
    norms = np.sqrt(np.einsum("i,mij,j->m", best, grams, best))
    active = norms >= norms.max() * (1 - 1e-5)
    rng = np.random.default_rng(seed)
    step = rng.normal(size=len(y))
    step -= step.mean()
    r = best + away * step / np.linalg.norm(step)
    r = y * np.maximum(y * r, 0.0)
    r[y > 0] *= -r[y < 0].sum() / r[y > 0].sum()
    forms = np.einsum("i,mij,j->m", r, grams, r)
    value = np.abs(r).sum() - 0.5 * r @ r - forms.max() / (2 * lam)
    distance = distance_to_optimum(optimum + 1e-7, value, 1.0)
    assert np.linalg.norm(r - best) <= distance
    candidates = Candidates(len(grams))
    candidates.visited(r, np.sqrt(forms))
    candidates.radii = np.sqrt(np.trace(grams, axis1=1, axis2=2))
    ask(candidates.screen(distance), grams)
    assert candidates.may_be_active[active].all()
    if away == 1e-4:
        assert candidates.report["screened"] > len(grams) / 4


def test_radii_are_asked_for_once_and_only_where_they_may_help():
    grams, y = random_instance(0)
    r, _ = simplex_dual(grams, y, 0.02)
    norms = np.sqrt(np.einsum("i,mij,j->m", r, grams, r))
    candidates, seen = Candidates(len(grams)), []
    candidates.visited(r, norms)
    ask(candidates.screen(np.inf), grams, seen)
    ask(candidates.screen(10.0), grams, seen)
    assert not seen
    ask(candidates.screen(1e-4), grams, seen)
    ask(candidates.screen(1e-5), grams, seen)
    assert [type(request) for request in seen] == [Quadratic, Diagonal]
    H = np.eye(len(y)) - 1 / len(y)
    centred = np.einsum("mij,ij->m", grams, H)
    np.testing.assert_allclose(candidates.radii**2, centred)


def test_passes_visit_the_candidates_alone_once_they_are_few():
    grams, y = random_instance(1)
    candidates, vectors = Candidates(len(grams)), np.stack([y, y**2], axis=1)
    expected = np.einsum("ir,mij,jr->mr", vectors, grams, vectors)
    candidates.may_be_active[:20] = False
    seen = []
    q = ask(candidates.quadratic(vectors), grams, seen)
    candidates.may_be_active[:50] = False
    few = ask(candidates.quadratic(vectors), grams, seen)
    np.testing.assert_allclose(q[20:], expected[20:])
    np.testing.assert_allclose(few[50:], expected[50:])
    assert not q[:20].any()
    assert not few[:50].any()
    assert [type(request) for request in seen] == [Quadratic, Matvec]
    assert candidates.report["partial_passes"] == 1
    np.testing.assert_array_equal(seen[1].kernels, np.arange(50, 60))


def test_bounds_of_kernels_that_are_not_visited_hold_wherever_the_point_moves():
    grams, y = random_instance(2)
    rng = np.random.default_rng(0)
    candidates, point = Candidates(len(grams)), y.copy()
    candidates.radii = np.sqrt(np.einsum("mij,ij->m", grams, np.eye(len(y)) - 1 / len(y)))
    for screened in (0, 20, 40):
        candidates.may_be_active[:screened] = False
        step = 0.1 * rng.normal(size=len(y))
        point = point + step - step.mean()
        norms = np.sqrt(np.einsum("i,mij,j->m", point, grams, point))
        candidates.visited(point, np.where(candidates.may_be_active, norms, 0.0))
        assert (candidates.bounds >= norms * (1 - 1e-12)).all()
        np.testing.assert_array_equal(candidates.bounds[screened:], norms[screened:])
    later = Candidates(len(grams))
    later.go_on(candidates)
    later.shrink(0.5)
    assert later.may_be_active.all()
    assert (later.bounds >= 0.5 * norms * (1 - 1e-12)).all()


def test_a_dual_without_curvature_has_no_ball():
    assert distance_to_optimum(1.0, 0.9, 0.0) == np.inf
    assert distance_to_optimum(2.0, 0.0, 4.0) == pytest.approx(1.0)
