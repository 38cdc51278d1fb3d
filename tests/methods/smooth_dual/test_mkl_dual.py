"""The smooth duals of SMO-MKL and the support kernel machine, piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.gram.requests import Combine, Matvec, Quadratic
from mkldist.methods.registry import METHODS
from mkldist.methods.smooth_dual.dual_penalties import MOREAU_YOSIDA, P_NORM, Penalty
from mkldist.methods.smooth_dual.mkl_model import SecondOrderModel
from mkldist.methods.smooth_dual.row_cache import RowCache
from tests.methods import instances, plain_bank

PENALTIES = (
    Penalty(P_NORM, 21.0, 1.0),
    Penalty(P_NORM, 2.0, 0.3),
    Penalty(P_NORM, 4 / 3, 5.0),
    Penalty(MOREAU_YOSIDA, 0.5),
    Penalty(MOREAU_YOSIDA, 1e-2),
)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=str)


def solve(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


def dual_point(penalty, seed=3):
    """Return grams, labels, a point and its products, with every kernel of some use."""
    instance = instances.not_normalised()
    n = len(instance.y)
    beta = instance.y * np.random.default_rng(seed).uniform(0.0, 0.5, n)
    beta -= beta.mean()
    return instance.grams, instance.y, beta, np.einsum("mij,j->mi", instance.grams, beta)


@every_penalty
def test_weights_and_their_derivative_by_finite_differences(penalty):
    q = np.array([1.3, 1.1, 0.9, 1.0])
    e, h, r, kappa = penalty.response(q)
    step = 1e-6
    for m in range(len(q)):
        change = np.zeros(len(q))
        change[m] = step
        slope = (penalty.value(q + change) - penalty.value(q - change)) / (2 * step)
        assert e[m] == pytest.approx(2 * slope, rel=1e-6, abs=1e-8)
        column = (penalty.response(q + change)[0] - penalty.response(q - change)[0]) / (2 * step)
        expected = kappa * r * r[m]
        expected[m] += h[m]
        np.testing.assert_allclose(column, expected, rtol=1e-5, atol=1e-5 * np.abs(h).max())


def test_model_curves_like_the_penalty():
    for penalty in PENALTIES:
        grams, _, beta, G = dual_point(penalty)

        def gradient(x, penalty=penalty, grams=grams):
            products = np.einsum("mij,j->mi", grams, x)
            return penalty.response(products @ x)[0] @ products

        q = G @ beta
        K = np.einsum("m,mij->ij", penalty.response(q)[0], grams)
        model = SecondOrderModel(penalty, K, G, q)
        direction = np.random.default_rng(6).normal(size=len(beta))
        step = 1e-7
        change = (gradient(beta + step * direction) - gradient(beta - step * direction)) / step / 2
        np.testing.assert_allclose(
            change, model.H @ direction, rtol=1e-4, atol=1e-4 * np.abs(change).max()
        )


def test_rows_used_longest_ago_make_room():
    cache = RowCache(n_kernels=2, n_points=10, budget_mib=1e-9)
    grams = np.random.default_rng(7).normal(size=(2, 10, 10))
    assert cache.capacity == 4
    first = cache.missing(np.array([1, 2, 3, 4]))
    request = cache.request(first)
    cache.store(first, plain_bank.reply(grams, request))
    assert cache.missing(np.array([1, 5])).tolist() == [5]
    cache.store(np.array([5]), plain_bank.reply(grams, cache.request(np.array([5]))))
    assert sorted(cache.points.tolist()) == [1, 3, 4, 5]
    assert 2 not in cache
    assert len(cache) == 4
    for point, slot in zip(cache.points, cache.slots, strict=True):
        np.testing.assert_array_equal(cache.rows[slot], grams[:, :, point])


def test_cache_never_asks_for_more_than_it_keeps():
    cache = RowCache(n_kernels=3, n_points=100, budget_mib=6 * 8 * 300 / 2**20)
    assert cache.capacity == 6
    assert cache.missing(np.arange(50)).tolist() == [0, 1, 2, 3, 4, 5]
    assert RowCache(n_kernels=3, n_points=5, budget_mib=100.0).capacity == 5


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
def test_a_small_cache_costs_passes_not_accuracy(name):
    instance = instances.more_kernels_than_points()
    settings = {"C": instance.C, "tol": 1e-7}
    roomy = solve(name, instance.grams, instance.y, **settings)
    tight = solve(name, instance.grams, instance.y, cache_mib=0.01, **settings)
    assert tight.converged
    assert tight.objective == pytest.approx(roomy.objective, rel=2e-7)
    assert tight.counters.passes > roomy.counters.passes


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
def test_counters_count_the_requests(name, tol):
    instance = instances.balanced()
    seen = []
    solution = solve(
        name, instance.grams, instance.y, lambda r, _: seen.append(r), C=instance.C, tol=tol
    )
    counters = solution.counters
    assert counters.combines == sum(isinstance(r, Combine) for r in seen)
    assert counters.passes == sum(isinstance(r, Matvec | Quadratic) for r in seen)
    assert all(len(r.kernels) == len(instance.grams) for r in seen if isinstance(r, Matvec))


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
def test_loose_tolerances_need_pair_updates_only(name):
    instance = instances.duplicated_kernels()
    solution = solve(name, instance.grams, instance.y, C=instance.C, tol=0.05)
    assert solution.converged
    assert solution.counters.newton_steps == solution.counters.svm_solves == 0


@pytest.mark.parametrize("name", ["smo_mkl", "skm"])
@pytest.mark.parametrize("C", [1e4, 1e8])
def test_hard_margins_are_certified(name, C):
    for make in (instances.more_kernels_than_points, instances.not_normalised):
        instance = make()
        solution = solve(name, instance.grams, instance.y, C=C, tol=1e-6)
        assert solution.converged
        if name == "skm":
            reference = solve("level", instance.grams, instance.y, C=C, tol=1e-8)
            assert solution.objective == pytest.approx(reference.objective, rel=2e-6)


def test_smo_mkl_weights_are_those_that_q_implies():
    instance = instances.balanced()
    p, lam = 1.5, 0.7
    solution = solve("smo_mkl", instance.grams, instance.y, C=5.0, p=p, lam=lam, tol=1e-10)
    a = solution.coefficients
    q = np.einsum("i,mij,j->m", a, instance.grams, a)
    norm = np.linalg.norm(q, ord=p / (p - 1))
    weights = norm / (2 * lam) * (q / norm) ** (1 / (p - 1))
    np.testing.assert_allclose(solution.kernel_weights, weights, rtol=1e-6)
    assert solution.dual_objective == pytest.approx(
        solution.dual_variables.sum() - norm**2 / (8 * lam), rel=1e-9
    )


def test_smo_mkl_objective_scales_with_kernels_C_and_lam():
    instance = instances.balanced()
    plain = solve("smo_mkl", instance.grams, instance.y, C=10.0, lam=1.0, tol=1e-9)
    # ||f_m||^2 / d_m, C and lam all fall by s, and so does the objective at the same f and d.
    s = 50.0
    scaled = solve("smo_mkl", s * instance.grams, instance.y, C=10.0 / s, lam=1 / s, tol=1e-9)
    assert s * scaled.objective == pytest.approx(plain.objective, rel=1e-7)
