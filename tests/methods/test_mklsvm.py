"""MK-LSVM, with `lsvm` and `manifold_svm`: derivatives, shared weights, special cases."""

import itertools

import numpy as np
import pytest

import mkldist
from mkldist.bank.requests import Combine, Quadratic
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.manifolds import manifold
from tests.methods.references import manifold as reference
from tests.methods.references.manifold import heat_laplacian, some_labels

GAMMAS = {"gamma_a": 1e-3, "gamma_i": 0.5, "gamma_sigma": 1e-3}


def solve(shape, method="mklsvm", y=None, grams=None, **params):
    given = shape.y if y is None else y
    kernels = shape.grams if grams is None else grams
    return mkldist.solve(method, kernels, given, laplacian=shape.laplacian, **params)


def three_classes(shape, labels=4):
    """Return one-vs-rest labels of three classes, cut from the points by their place."""
    rng = np.random.default_rng(0)
    classes = np.digitize(shape.x[:, 0], np.quantile(shape.x[:, 0], [1 / 3, 2 / 3]))
    y = np.zeros((len(classes), 3))
    for c in range(3):
        kept = rng.choice(np.flatnonzero(classes == c), labels, replace=False)
        y[kept] = np.where(np.arange(3) == c, 1.0, -1.0)
    return y


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

    params["laplacian"] = shape.laplacian
    return plain_bank.solve("mklsvm", shape.grams, y, watch, **params), counts


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


@pytest.mark.slow
@instances.every_instance
def test_few_iterations_certify_every_setting_of_the_weights(make):
    instance = make()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    sizes = (1e-8, 1e-4, 1.0, 1e8)
    for gamma_a, gamma_i, gamma_sigma in itertools.product(sizes, repeat=3):
        if gamma_i > 1e12 * gamma_a:
            continue  # below the precision of K
        params = {"gamma_a": gamma_a, "gamma_i": gamma_i, "gamma_sigma": gamma_sigma}
        solution = plain_bank.solve("mklsvm", instance.grams, y, laplacian=L, **params)
        assert solution.stop_reason is StopReason.CONVERGED
        assert solution.counters.outer_iterations <= 7
        assert (solution.kernel_weights >= 0).all()


def test_where_rounding_hides_the_ambient_norm_the_run_says_so():
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    for gamma_sigma in (1e-8, 1e-15, 1e15):
        params = {"gamma_a": 1e-15, "gamma_i": 1e15, "gamma_sigma": gamma_sigma, "max_iter": 60}
        solution = plain_bank.solve("mklsvm", instance.grams, y, laplacian=L, **params)
        assert np.isfinite([solution.objective, solution.dual_objective]).all()
        assert np.isfinite(solution.kernel_weights).all()
        assert (solution.stop_reason is StopReason.CONVERGED) == (solution.gap <= 0.01)


@pytest.mark.parametrize("gamma_a", [1e-15, 1e-8, 1.0])
@pytest.mark.parametrize("scale", [1e-12, 1e10, 1e30])
def test_kernels_of_unlike_scales_keep_their_bounds(scale, gamma_a):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(8, 2)), np.array([1.0, -1.0, 1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    linear = x @ x.T
    grams = np.array([scale * linear / np.trace(linear), 1e-12 * np.eye(8)])
    params = {"laplacian": 8.0 * np.eye(8) - 1.0, "gamma_a": gamma_a, "gamma_i": 1e3}
    solution = plain_bank.solve("mklsvm", grams, y, max_iter=50, **params)
    assert 0.0 <= solution.dual_objective <= solution.objective * (1.0 + 1e-12)
