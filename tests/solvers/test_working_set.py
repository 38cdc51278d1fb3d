"""Working sets and screening of kernels."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.requests import Combine, Diagonal, Matvec, Quadratic
from mkldist.solvers.working_set import (
    Candidates,
    WorkingSet,
    distance_to_optimum,
    most_newcomers,
    solved,
)
from tests.methods import instances, plain_bank
from tests.variants import quick

M, N, CLASSES = 60, 8, 3


@pytest.fixture
def grams() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(M, N, 4))
    return x @ x.transpose(0, 2, 1)


def ask(steps, grams: np.ndarray, seen: list | None = None):
    """Return what a generator of requests returns."""
    requests = [] if seen is None else seen
    return plain_bank.run(steps, grams, lambda request, _: requests.append(request))


def answered(steps, grams: np.ndarray):
    """Return the requests of a generator, and what it returns."""
    seen: list = []
    return seen, ask(steps, grams, seen)


def forms(grams: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return ``sum_c v_jc' K_m v_jc`` for points (J, n, k), as (M, J)."""
    return np.einsum("jic,mil,jlc->mj", points, grams, points)


def at_work(*kernels: int) -> WorkingSet:
    chosen = WorkingSet(M, everything=False)
    chosen.take(np.array(kernels))
    return chosen


@pytest.mark.parametrize("n_kernels", [40, 60])
def test_few_kernels_are_all_at_work_from_the_start(n_kernels):
    chosen = WorkingSet(n_kernels, everything=False)
    assert chosen.everything == (n_kernels == 40)
    assert chosen.kernels.tolist() == list(range(40 if n_kernels == 40 else 0))
    assert len(WorkingSet(n_kernels, everything=True)) == n_kernels


def test_weights_and_combinations_are_of_the_kernels_in_their_order():
    chosen, weights = at_work(7, 2), np.array([0.25, 0.75])
    expected = np.zeros(M)
    expected[[7, 2]] = weights
    np.testing.assert_array_equal(chosen.spread(weights), expected)
    request = chosen.combination(weights)
    assert isinstance(request, Combine)
    assert request.kernels.tolist() == [7, 2]
    assert WorkingSet(M, everything=True).combination(expected).kernels is None


@pytest.mark.parametrize("shape", [(N,), (N, CLASSES)])
def test_forms_are_sums_over_the_classes_and_no_pass_on_some_kernels(grams, shape):
    point = np.random.default_rng(1).normal(size=shape)
    expected = forms(grams, point.reshape(1, N, -1))[:, 0]
    some, everything = at_work(7, 2, 30), WorkingSet(M, everything=True)
    seen, q = answered(some.quadratic(point), grams)
    np.testing.assert_allclose(q, expected[[7, 2, 30]])
    assert [request.kernels.tolist() for request in seen] == [[7, 2, 30]]
    seen, q = answered(everything.quadratic(point), grams)
    np.testing.assert_allclose(q, expected)
    assert [request.kernels for request in seen] == [None]


@pytest.mark.parametrize("shape", [(2, N), (2, N, CLASSES)])
def test_one_pass_visits_all_kernels_at_all_points(grams, shape):
    points, chosen = np.random.default_rng(2).normal(size=shape), at_work(7, 2)
    seen, q = answered(chosen.visit_all(points), grams)
    np.testing.assert_allclose(q, forms(grams, points.reshape(2, N, -1)))
    assert [request.kernels for request in seen] == [None]


def test_newcomers_are_the_largest_outside_above_the_threshold():
    chosen, q = at_work(0, 1), np.zeros(M)
    q[[0, 5, 9, 4]] = [9.0, 2.0, 3.0, 1.0]
    assert chosen.newcomers(q, 1.0).tolist() == [9, 5]
    many = np.arange(M, dtype=float)
    assert chosen.newcomers(many, -np.inf).tolist() == list(range(59, 39, -1))  # at most 20


@pytest.mark.parametrize("shape", [(2, N), (2, N, CLASSES)])
def test_kernels_that_join_are_asked_about_the_points_met(grams, shape):
    points, chosen = np.random.default_rng(3).normal(size=shape), at_work(7, 2)
    seen, q = answered(chosen.enlarge(np.array([30, 4]), points), grams)
    np.testing.assert_allclose(q, forms(grams, points.reshape(2, N, -1)).T[:, [30, 4]])
    assert [type(request) for request in seen] == [Quadratic]
    assert chosen.kernels.tolist() == [7, 2, 30, 4]
    assert answered(chosen.enlarge(np.array([5]), points[:0]), grams)[0] == []
    assert len(chosen) == 5


def test_a_working_set_may_double_or_take_a_small_share_of_very_many_kernels():
    assert most_newcomers(1000, 5) == 20
    assert most_newcomers(1000, 50) == 50
    assert most_newcomers(100_000, 30) == 50
    assert most_newcomers(1000, 5, first=40) == 40


def test_a_pass_is_due_at_a_share_of_the_last_gap_but_not_far_below_the_tolerance():
    assert solved(0.01, 1.0) == pytest.approx(0.3)
    assert solved(0.01, 1.0, 0.03) == pytest.approx(0.03)
    assert solved(0.01, 0.02) == pytest.approx(0.007)


def random_instance(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 60 kernels on 30 points: two informative features, and 18 of noise."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    x = rng.normal(size=(30, 20))
    x[:, 0] += 1.5 * y
    x[:, 1] -= y
    grams = [rbf_kernel(x[:, [j]], gamma=g) for j in range(20) for g in (0.1, 0.5, 2.0)]
    return np.array([K / np.trace(K) for K in grams]), y


def simplex_dual(grams: np.ndarray, y: np.ndarray, lam: float) -> tuple[np.ndarray, float]:
    """Maximise ``sum |r| - 1/2 ||r||^2 - 1/(2 lam) max_m r'K_m r``, r = y times r >= 0."""
    size, t = cp.Variable(len(y), nonneg=True), cp.Variable()
    r = cp.multiply(y, size)
    bounds = [cp.sum_squares(root @ r) <= t for root in instances.factors(grams)]
    value = cp.sum(size) - 0.5 * cp.sum_squares(size) - t / (2 * lam)
    problem = cp.Problem(cp.Maximize(value), [*bounds, y @ size == 0])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    return y * size.value, float(problem.value)


@pytest.mark.slow
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


@pytest.mark.slow
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
