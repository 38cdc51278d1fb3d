"""SKM, SMO-MKL and the dual that they climb."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import mkldist
from mkldist.methods.smooth_dual import (
    DIVERGENCE,
    MOREAU_YOSIDA,
    P_NORM,
    Penalty,
    capacity_within,
    line_maximum,
    mkl_pair_updates,
    rows_held,
)
from tests.methods import instances
from tests.methods.plain_bank import solve


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
def test_loose_tolerances_need_pair_updates_only(name):
    instance = instances.duplicated_kernels()
    solution = solve(name, instance.grams, instance.y, C=instance.C, tol=0.05)
    assert solution.converged
    assert solution.counters.newton_steps == solution.counters.svm_solves == 0


@pytest.mark.slow
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


PENALTIES = (
    Penalty(P_NORM, 21.0, 1.0),
    Penalty(P_NORM, 2.0, 0.3),
    Penalty(P_NORM, 4 / 3, 5.0),
    Penalty(MOREAU_YOSIDA, 0.5),
    Penalty(MOREAU_YOSIDA, 1e-2),
    Penalty(DIVERGENCE, 0.25, 2.0),
)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=str)


@every_penalty
@pytest.mark.parametrize("seed", range(5))
def test_the_line_search_ends_at_the_maximum(penalty, seed):
    rng = np.random.default_rng(seed)
    start, along = rng.normal(size=(2, 4, 6))  # q_m = ||start_m + t along_m||^2
    q, u, c = (start**2).sum(1), (start * along).sum(1), (along**2).sum(1)
    linear = 0.5 * rng.random() + float(penalty.weights(q) @ u)  # the objective rises at t = 0

    def loss(t: float) -> float:
        return penalty.value(q + 2 * u * t + c * t**2) - linear * t

    for room in (0.01, 10.0):
        t = line_maximum(penalty, linear, q, u, c, room)
        search = minimize_scalar(
            loss, bounds=(0.0, room), method="bounded", options={"xatol": 1e-12}
        )
        assert 0.0 < t <= room
        assert loss(t) <= search.fun + 1e-9 * (1.0 + abs(search.fun))


@every_penalty
def test_updates_reach_the_optimality_conditions_and_keep_the_products(penalty):
    instance, C, accuracy = instances.not_normalised(), 1.0, 1e-8
    n, y = len(instance.y), instance.y
    slots = np.random.default_rng(0).permutation(n)
    rows = np.empty((n, len(instance.grams), n))
    rows[slots] = instance.grams.transpose(1, 0, 2)
    beta, q, G = np.zeros(n), np.zeros(len(instance.grams)), np.zeros((len(instance.grams), n))
    lower, upper = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
    updates = mkl_pair_updates(
        penalty, rows, slots, np.arange(n), G, q, beta, y, lower, upper, accuracy, 100_000
    )
    assert 0 < updates < 100_000
    products = instance.grams @ beta
    np.testing.assert_allclose(G, products, atol=1e-9)
    np.testing.assert_allclose(q, products @ beta, atol=1e-9)
    assert beta.sum() == pytest.approx(0.0, abs=1e-12)
    assert ((lower <= beta) & (beta <= upper)).all()
    slack = y - penalty.weights(products @ beta) @ products
    assert slack[beta < upper].max() - slack[beta > lower].min() <= 1e-6


def test_as_many_rows_are_kept_as_the_budget_holds_and_at_least_two_pairs():
    row = 8 * 300
    assert capacity_within(3, 100, 6 * row / 2**20) == 6
    assert capacity_within(3, 100, 1e-9) == 4
    assert capacity_within(3, 5, 100.0) == 5


@pytest.mark.parametrize("rows", [0, 10, 56, 80, 1000])
def test_spare_memory_holds_the_rows_and_an_answer(rows):
    row = 8 * 3 * 100
    kept = capacity_within(3, 100, 1.0, rows * row)
    assert rows_held(kept) <= rows_held(4) + rows
    assert kept == 100 or rows_held(kept + 1) > rows_held(4) + rows


@pytest.mark.parametrize(("offset", "C"), [(30.0, 1e3), (30.0, 1e4), (100.0, 1e2)])
def test_the_objective_is_that_of_the_predictor(offset, C):
    rng = np.random.default_rng(0)
    X = offset + rng.normal(size=(20, 4))
    K = (X @ X.T + 1.0) ** 3  # its entries agree in two digits or more
    y = np.sign(rng.normal(size=20))
    found = mkldist.solve("skm", K[None], y, C=C, tol=1e-2)
    a = found.coefficients
    hinge = np.maximum(0.0, 1.0 - y * (K @ a + found.bias)).sum()
    assert 0.5 * a @ K @ a + C * hinge == pytest.approx(found.objective, rel=1e-3)


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
        column = (penalty.weights(q + change) - penalty.weights(q - change)) / (2 * step)
        expected = kappa * r * r[m]
        expected[m] += h[m]
        np.testing.assert_allclose(column, expected, rtol=1e-5, atol=1e-5 * np.abs(h).max())


def test_hessian_by_finite_differences():
    for penalty in PENALTIES:
        grams, _, beta, G = dual_point(penalty)

        def gradient(x, penalty=penalty, grams=grams):
            products = np.einsum("mij,j->mi", grams, x)
            return penalty.weights(products @ x) @ products

        q = G @ beta
        H = penalty.hessian(np.einsum("m,mij->ij", penalty.weights(q), grams), G, q)
        direction = np.random.default_rng(6).normal(size=len(beta))
        step = 1e-7
        change = (gradient(beta + step * direction) - gradient(beta - step * direction)) / step / 2
        np.testing.assert_allclose(
            change, H @ direction, rtol=1e-4, atol=1e-4 * np.abs(change).max()
        )
