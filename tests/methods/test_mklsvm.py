"""MK-LSVM, with `lsvm` and `manifold_svm`: derivatives, shared weights, special cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

import mkldist
from mkldist.bank.requests import Combine, Quadratic
from mkldist.methods.mklsvm import METHOD, MKLSVMParams
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.manifolds import grams_between, manifold
from tests.methods.references import manifold as reference
from tests.methods.references.manifold import heat_laplacian, some_labels

GAMMAS = {"gamma_a": 1e-3, "gamma_i": 0.5, "gamma_sigma": 1e-3}
INTRINSIC = pytest.mark.parametrize("gamma_i", [0.0, 0.5, 50.0])
SHAPES = pytest.mark.parametrize("name", ["moons", "circles"])
every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def solve(shape, method="mklsvm", y=None, grams=None, **params):
    given = shape.y if y is None else y
    kernels = shape.grams if grams is None else grams
    return mkldist.solve(method, kernels, given, laplacian=shape.laplacian, **params)


def combined(shape, d):
    return np.einsum("m,mij->ij", d, shape.grams)[None]


def three_classes(shape, labels=4):
    """Return one-vs-rest labels of three classes, cut from the points by their place."""
    rng = np.random.default_rng(0)
    classes = np.digitize(shape.x[:, 0], np.quantile(shape.x[:, 0], [1 / 3, 2 / 3]))
    y = np.zeros((len(classes), 3))
    for c in range(3):
        kept = rng.choice(np.flatnonzero(classes == c), labels, replace=False)
        y[kept] = np.where(np.arange(3) == c, 1.0, -1.0)
    return y


# Derivatives and the bound that follows from them


@INTRINSIC
def test_derivative_in_the_weights_is_that_of_the_value(gamma_i):
    shape = manifold("moons", n=60, per_class=4)
    norms = {"gamma_a": 1e-3, "gamma_i": gamma_i}
    d = np.array([0.7, 0.2, 1.5, 0.4])

    def J(weights):
        machine = solve(shape, "lsvm", grams=combined(shape, weights), tol=1e-12, **norms)
        return machine.objective + 0.1 * weights @ weights

    at = solve(shape, "lsvm", grams=combined(shape, d), tol=1e-12, **norms)
    q = np.einsum("i,mij,j->m", at.coefficients, shape.grams, at.coefficients)
    expected = -1e-3 * q + 0.2 * d
    step = 1e-5
    slopes = [(J(d + step * unit) - J(d - step * unit)) / (2 * step) for unit in np.eye(4)]
    np.testing.assert_allclose(slopes, expected, rtol=1e-4, atol=1e-7)


@INTRINSIC
def test_at_the_solution_weights_are_multiples_of_the_quadratic_forms(gamma_i):
    shape = manifold("circles", n=60, per_class=4)
    solution = solve(shape, tol=1e-10, **GAMMAS | {"gamma_i": gamma_i})
    a = solution.coefficients
    q = np.einsum("i,mij,j->m", a, shape.grams, a)
    targets = GAMMAS["gamma_a"] * q / (2 * GAMMAS["gamma_sigma"])
    np.testing.assert_allclose(solution.kernel_weights, targets, atol=1e-4 * targets.max())


def test_gap_of_exact_machines_is_the_squared_distance_to_the_targets():
    shape = manifold("moons", n=60, per_class=4)
    first = solve_watched(shape, shape.y, max_iter=1, tol=1e-12, **GAMMAS)[0]
    a, d = first.coefficients, first.kernel_weights
    q = np.einsum("i,mij,j->m", a, shape.grams, a)
    distance = ((d - GAMMAS["gamma_a"] * q / (2 * GAMMAS["gamma_sigma"])) ** 2).sum()
    best = solve(shape, tol=1e-10, **GAMMAS).objective
    strongly_convex = first.objective - GAMMAS["gamma_sigma"] * distance
    assert strongly_convex <= best * (1 + 1e-9)
    # The multiple of the dual variables only makes the bound better.
    assert strongly_convex <= first.dual_objective * (1 + 1e-9)
    assert first.dual_objective <= best


def solve_watched(shape, y, **params):
    """Return the solution, and how many requests of each kind it took."""
    counts = {Combine: 0, Quadratic: 0}

    def watch(request, _):
        counts[type(request)] += 1

    problem = plain_bank.problem(shape.grams, y, shape.laplacian)
    steps = METHOD.solve(problem, MKLSVMParams(**params))
    return plain_bank.run(steps, shape.grams, watch), counts


# Classes that share their weights


@pytest.mark.slow
def test_shared_weights_have_the_independent_optimum():
    shape = manifold("moons", n=45)
    y = three_classes(shape, labels=5)
    y[np.flatnonzero(y[:, 0])[:2], 1] = 0.0  # labelled for two of the classes only
    solution = solve(shape, y=y, tol=1e-8, trace=True, **GAMMAS)
    L = shape.laplacian.toarray()
    expected = reference.mklsvm_optimum(shape.grams, L, y, GAMMAS)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.objective == pytest.approx(expected, rel=1e-6)
    assert solution.dual_objective == pytest.approx(expected, rel=1e-6)
    value = reference.mklsvm_value(shape.grams, L, y, GAMMAS, solution)
    assert solution.objective == pytest.approx(value, rel=1e-10)
    assert solution.coefficients.shape == solution.dual_variables.shape == (45, 3)
    assert solution.bias.shape == (3,)
    assert solution.decision_function(shape.grams).shape == (45, 3)


def test_one_factorisation_serves_all_classes():
    shape = manifold("moons", n=90)
    y = three_classes(shape)
    together, counts = solve_watched(shape, y, tol=1e-6, **GAMMAS)
    iterations = together.counters.outer_iterations
    assert together.extra["factorisations"] == iterations == counts[Combine]
    assert together.counters.svm_solves == 3 * iterations
    assert counts[Quadratic] == iterations + 1
    assert together.counters.passes == 2 * iterations + 1  # no weight is zero


def test_a_single_column_is_the_binary_problem():
    shape = manifold("circles", n=60)
    binary = solve(shape, tol=1e-8, **GAMMAS)
    column, _ = solve_watched(shape, shape.y[:, None], tol=1e-8, **GAMMAS)
    assert column.objective == pytest.approx(binary.objective, rel=1e-12)
    np.testing.assert_allclose(column.coefficients[:, 0], binary.coefficients, atol=1e-9)


def test_classes_of_lsvm_are_machines_of_their_own():
    shape = manifold("moons", n=60)
    y = three_classes(shape)
    norms = {"gamma_a": 1e-3, "gamma_i": 0.5}
    together = solve(shape, "lsvm", y=y, tol=1e-10, **norms)
    alone = [solve(shape, "lsvm", y=column, tol=1e-10, **norms) for column in y.T]
    assert together.objective == pytest.approx(sum(one.objective for one in alone), rel=1e-9)
    for c, one in enumerate(alone):
        np.testing.assert_allclose(
            together.decision_function(shape.grams)[:, c],
            one.decision_function(shape.grams),
            atol=1e-5,
        )


# What the methods equal


@INTRINSIC
def test_at_its_weights_mklsvm_is_lsvm(gamma_i):
    shape = manifold("moons", n=80, per_class=3)
    params = GAMMAS | {"gamma_i": gamma_i}
    solution = solve(shape, tol=1e-10, **params)
    d = solution.kernel_weights
    machine = solve(
        shape, "lsvm", grams=combined(shape, d), tol=1e-10, gamma_a=1e-3, gamma_i=gamma_i
    )
    price = GAMMAS["gamma_sigma"] * d @ d
    assert solution.objective == pytest.approx(machine.objective + price, rel=1e-8)
    np.testing.assert_allclose(
        solution.decision_function(shape.grams),
        machine.decision_function(combined(shape, d)),
        atol=1e-5,
    )


@pytest.mark.parametrize("method", ["lsvm", "mklsvm"])
def test_without_a_graph_and_with_one_kernel_it_is_an_svm(method):
    shape = manifold("circles", n=100, per_class=15)
    gamma_a, kernel = 1e-3, shape.grams[1:2]
    extra = {"gamma_sigma": 1e-2} if method == "mklsvm" else {}
    solution = solve(shape, method, grams=kernel, gamma_a=gamma_a, gamma_i=0.0, tol=1e-10, **extra)
    labelled = np.flatnonzero(shape.y)
    K = solution.kernel_weights[0] * kernel[0]
    svc = SVC(C=1 / (2 * gamma_a * len(labelled)), kernel="precomputed", tol=1e-10)
    svc.fit(K[np.ix_(labelled, labelled)], shape.y[labelled])
    expected = svc.decision_function(K[:, labelled])
    np.testing.assert_allclose(solution.decision_function(kernel), expected, atol=1e-6)
    assert not solution.coefficients[shape.y == 0].any()


def test_weights_of_one_kernel_minimise_the_value_over_the_scale():
    shape = manifold("moons", n=60, per_class=4)
    kernel = shape.grams[2:3]
    solution = solve(shape, grams=kernel, tol=1e-10, **GAMMAS)
    norms = {"gamma_a": GAMMAS["gamma_a"], "gamma_i": GAMMAS["gamma_i"]}
    for factor in (0.8, 0.95, 1.05, 1.3):
        d = factor * solution.kernel_weights[0]
        other = solve(shape, "lsvm", grams=d * kernel, tol=1e-10, **norms).objective
        assert other + GAMMAS["gamma_sigma"] * d**2 > solution.objective


def test_the_objective_depends_on_products_of_scales_only():
    shape = manifold("circles", n=60, per_class=4)
    base = solve(shape, tol=1e-9, **GAMMAS)
    d = base.kernel_weights
    scaled = mkldist.solve(
        "mklsvm",
        7 * shape.grams,
        shape.y,
        laplacian=5 * shape.laplacian,
        tol=1e-9,
        gamma_a=GAMMAS["gamma_a"],
        gamma_i=GAMMAS["gamma_i"] / 5,
        gamma_sigma=49 * GAMMAS["gamma_sigma"],
    )
    assert scaled.objective == pytest.approx(base.objective, rel=1e-8)
    np.testing.assert_allclose(7 * scaled.kernel_weights, d, rtol=1e-3)


def test_only_one_combination_of_the_two_norms_of_kernels_matters():
    shape = manifold("circles", n=60, per_class=4)
    base = solve(shape, tol=1e-9, gamma_a=1e-3, gamma_i=0.5, gamma_sigma=1e-3)
    other = solve(shape, tol=1e-9, gamma_a=1e-1, gamma_i=0.5, gamma_sigma=1e-7)
    assert other.objective == pytest.approx(base.objective, rel=1e-8)
    np.testing.assert_allclose(other.kernel_weights, 100 * base.kernel_weights, rtol=1e-3)
    np.testing.assert_allclose(
        *(solution.decision_function(shape.grams) for solution in (base, other)), atol=1e-3
    )


# Learning


@SHAPES
@pytest.mark.parametrize("method", ["lsvm", "mklsvm"])
def test_two_labels_a_class_are_enough_on_a_manifold(name, method):
    shape = manifold(name, n=200, seed=1)
    extra = {"gamma_sigma": 1e-4} if method == "mklsvm" else {}
    error, plain = (
        (np.sign(solution.decision_function(shape.grams)) != shape.truth).mean()
        for solution in (
            solve(shape, method, gamma_a=1e-5, gamma_i=gamma_i, **extra) for gamma_i in (100.0, 0.0)
        )
    )
    assert error < 0.02 < plain
    solution = solve(shape, method, gamma_a=1e-5, gamma_i=100.0, **extra)
    new = manifold(name, n=100, seed=9)
    decision = solution.decision_function(grams_between(new.x, shape.x))
    assert (np.sign(decision) != new.truth).mean() < 0.03


# Bounds, passes and edges


@pytest.mark.slow
@every_instance
def test_few_iterations_certify_every_setting_of_the_weights(make):
    instance = make()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    sizes = (1e-8, 1e-4, 1.0, 1e8)
    for gamma_a, gamma_i, gamma_sigma in itertools.product(sizes, repeat=3):
        if gamma_i > 1e12 * gamma_a:
            continue  # below the precision of K
        params = MKLSVMParams(gamma_a=gamma_a, gamma_i=gamma_i, gamma_sigma=gamma_sigma)
        problem = plain_bank.problem(instance.grams, y, L)
        solution = plain_bank.run(METHOD.solve(problem, params), instance.grams)
        assert solution.stop_reason is StopReason.CONVERGED
        assert solution.counters.outer_iterations <= 7
        assert (solution.kernel_weights >= 0).all()


def test_where_rounding_hides_the_ambient_norm_the_run_says_so():
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    for gamma_sigma in (1e-8, 1e-15, 1e15):
        params = MKLSVMParams(gamma_a=1e-15, gamma_i=1e15, gamma_sigma=gamma_sigma, max_iter=60)
        problem = plain_bank.problem(instance.grams, y, L)
        solution = plain_bank.run(METHOD.solve(problem, params), instance.grams)
        assert np.isfinite([solution.objective, solution.dual_objective]).all()
        assert np.isfinite(solution.kernel_weights).all()
        assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 0.01)


@pytest.mark.parametrize("edge", ["all labelled", "zero Laplacian", "zero kernels", "dense graph"])
@pytest.mark.parametrize("method", ["lsvm", "mklsvm"])
def test_edges(method, edge):
    shape = manifold("moons", n=50)
    grams, y, L = shape.grams, shape.y, shape.laplacian
    if edge == "all labelled":
        y = shape.truth
    elif edge == "zero Laplacian":
        L = sparse.csr_array((50, 50))
    elif edge == "zero kernels":
        grams = np.zeros((2, 50, 50))
    else:
        L = L.toarray()
    solution = mkldist.solve(method, grams, y, laplacian=L, tol=1e-7, gamma_a=1e-3, gamma_i=0.5)
    assert solution.stop_reason is StopReason.CONVERGED
    assert np.isfinite(solution.coefficients).all()
    if edge == "zero Laplacian":
        plain = mkldist.solve(
            method, grams, y, laplacian=shape.laplacian, tol=1e-7, gamma_a=1e-3, gamma_i=0.0
        )
        assert solution.objective == pytest.approx(plain.objective, rel=1e-6)
    if edge == "zero kernels":
        assert solution.objective == pytest.approx(1.0)


@pytest.mark.parametrize("gamma_a", [1e-15, 1e-8, 1.0])
@pytest.mark.parametrize("scale", [1e-12, 1e10, 1e30])
def test_kernels_of_unlike_scales_keep_their_bounds(scale, gamma_a):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 2)), np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    linear = x @ x.T
    grams = np.array([scale * linear / np.trace(linear), 1e-12 * np.eye(8)])
    problem = plain_bank.problem(grams, y, laplacian=8.0 * np.eye(8) - 1.0)
    params = MKLSVMParams(gamma_a=gamma_a, gamma_i=1e3, max_iter=50)
    solution = plain_bank.run(METHOD.solve(problem, params), grams)
    assert 0.0 <= solution.dual_objective <= solution.objective * (1.0 + 1e-12)
