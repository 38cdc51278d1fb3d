"""The cuts of dual points and their multiples, against linear programmes and scikit-learn."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from sklearn.svm import SVC

from mkldist.methods.cut_bundle import DualCuts, highest_bounds
from mkldist.solvers.svm import solve_svm
from tests.variants import quick


def random_cuts(seed: int, n_cuts: int = 7, n_kernels: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 10.0, n_cuts), rng.lognormal(1.0, 2.0, (n_cuts, n_kernels))


def bundle(heights: np.ndarray, q: np.ndarray, *, multiples: bool = True) -> DualCuts:
    cuts = DualCuts(q.shape[1], multiples=multiples)
    for height, row in zip(heights, q, strict=True):
        cuts.add(height, row)
    return cuts


def value(heights: np.ndarray, q: np.ndarray, p: np.ndarray) -> float:
    """Return the largest ``max_{0 <= t <= 1} t h - t^2/2 q'p``."""
    t = np.minimum(1.0, heights / (q @ p))
    return float((t * heights - 0.5 * t**2 * (q @ p)).max())


def needed(heights: np.ndarray, level: float) -> np.ndarray:
    """Return what ``q'p`` must be at least for a cut not to exceed a level."""
    high = level >= heights / 2  # then t = 1 is best there
    return np.where(high, 2 * (heights - level), heights**2 / (2 * level))


def minimum(heights: np.ndarray, q: np.ndarray) -> float:
    """Return the least value on the simplex, by bisection of linear programmes."""
    low, high = 0.0, value(heights, q, np.full(q.shape[1], 1.0 / q.shape[1]))
    ones = np.ones((1, q.shape[1]))
    for _ in range(60):
        level = 0.5 * (low + high)
        right = -needed(heights, level)
        found = linprog(np.zeros(q.shape[1]), A_ub=-q, b_ub=right, A_eq=ones, b_eq=[1.0])
        low, high = (low, level) if found.status == 0 else (level, high)
    return high


@pytest.mark.parametrize("seed", range(5))
def test_minimum_without_multiples_is_that_of_the_points_themselves(seed: int) -> None:
    heights, q = random_cuts(seed)
    n_cuts, n_kernels = q.shape
    programme = linprog(
        np.r_[np.zeros(n_kernels), 1.0],
        A_ub=np.column_stack([heights[:, None] - 0.5 * q, -np.ones(n_cuts)]),
        b_ub=np.zeros(n_cuts),
        A_eq=np.r_[np.ones(n_kernels), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * n_kernels + [(None, None)],
    )
    found = bundle(heights, q, multiples=False).minimum(np.inf)
    assert_allclose(found.bound, programme.fun, rtol=1e-8, atol=1e-8)
    assert (found.multiples == 1.0).all()


@pytest.mark.parametrize("seed", quick(range(20), 6))
def test_minimum_is_that_of_all_multiples(seed: int) -> None:
    heights, q = random_cuts(seed)
    expected = minimum(heights, q)
    found = bundle(heights, q).minimum(expected * (1.0 + 1e-6))
    assert_allclose(found.bound, expected, rtol=1e-5)
    assert_allclose(value(heights, q, found.weights), expected, rtol=1e-4)
    t = found.multiples
    assert ((t > 0.0) & (t <= 1.0)).all()
    # The mixture of the multiples' cuts is linear, and as high at its lowest vertex.
    mixture = found.shares @ (t * heights)[:, None] - found.shares @ (0.5 * (t**2)[:, None] * q)
    assert_allclose(mixture.min(), found.bound, rtol=1e-9)


@pytest.mark.parametrize("seed", quick(range(20), 6))
def test_minimum_after_kernels_came_is_that_of_all(seed: int) -> None:
    heights, q = random_cuts(seed, n_kernels=9)
    cuts = bundle(heights, q[:, :4])
    cuts.minimum(np.inf)
    cuts.widen(q[:, 4:])
    expected = minimum(heights, q)
    assert_allclose(cuts.minimum(expected * (1.0 + 1e-6)).bound, expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_minimum_of_the_points_after_kernels_came_is_that_of_all(seed: int) -> None:
    heights, q = random_cuts(seed, n_kernels=9)
    cuts = bundle(heights, q[:, :4], multiples=False)
    cuts.minimum(np.inf)
    cuts.widen(q[:, 4:])
    expected = bundle(heights, q, multiples=False).minimum(np.inf)
    assert_allclose(cuts.minimum(np.inf).bound, expected.bound, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_projection_is_the_nearest_point_of_the_level_set(seed: int) -> None:
    heights, q = random_cuts(seed)
    rng = np.random.default_rng(100 + seed)
    centre = rng.dirichlet(np.ones(q.shape[1]))
    lowest = minimum(heights, q)
    level = lowest + 0.3 * (value(heights, q, centre) - lowest)
    p = cp.Variable(q.shape[1])
    inside = [p >= 0, cp.sum(p) == 1, q @ p >= needed(heights, level)]
    cp.Problem(cp.Minimize(cp.sum_squares(p - centre)), inside).solve(solver="CLARABEL")
    found = bundle(heights, q).project(centre, level, slack=1e-9 * level)
    assert found is not None
    assert value(heights, q, found) <= level * (1.0 + 1e-6)
    assert_allclose(found, p.value, atol=1e-5)


@pytest.mark.parametrize("C", [0.1, 1.0, 1000.0])
def test_cuts_of_a_machine_lie_below_the_value_of_other_machines(C: float) -> None:
    rng = np.random.default_rng(int(C))
    points = rng.standard_normal((6, 30, 2))
    grams = points @ points.transpose(0, 2, 1) + 0.1 * np.eye(30)
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)

    def machine(p: np.ndarray) -> tuple[float, np.ndarray]:
        K = np.tensordot(p, grams, axes=1)
        svc = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y)
        beta = np.zeros(30)
        beta[svc.support_] = svc.dual_coef_[0]
        return float(np.abs(beta).sum() - 0.5 * beta @ K @ beta), beta

    ours = solve_svm(np.tensordot(np.full(6, 1 / 6), grams, axes=1), y, C, tol=1e-8)
    q = np.einsum("i,mij,j->m", ours.signed, grams, ours.signed)
    height = float(ours.alpha.sum())
    for p in rng.dirichlet(np.full(6, 0.3), 20):
        assert value(np.array([height]), q[None], p) <= machine(p)[0] * (1.0 + 1e-6)
    [bound] = highest_bounds(np.array([height]), q.max(keepdims=True))
    assert bound <= min(machine(p)[0] for p in np.eye(6)) * (1.0 + 1e-6)
