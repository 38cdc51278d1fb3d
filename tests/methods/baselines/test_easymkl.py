"""EasyMKL: its geometry, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from mkldist.bank.requests import Combine, Quadratic
from mkldist.methods.registry import METHODS
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.references.easymkl import weights

METHOD = METHODS["easymkl"]


def solve(grams, y, watch=None, **params):
    steps = METHOD.solve(plain_bank.problem(grams, y), METHOD.params(**params))
    return plain_bank.run(steps, grams, watch)


@pytest.mark.parametrize("lam", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)
def test_weights_are_shares_of_the_squared_distance(make, lam):
    instance = make()
    solution = solve(instance.grams, instance.y, lam=lam)
    expected = weights(instance.grams, instance.y, lam)
    np.testing.assert_allclose(solution.kernel_weights, expected, atol=1e-6)
    assert solution.kernel_weights.sum() == pytest.approx(1.0)


def test_with_lam_1_the_weights_are_distances_of_class_means():
    instance = instances.not_normalised()
    y = instance.y
    means = np.where(y > 0, 1 / (y > 0).sum(), -1 / (y < 0).sum())
    distances = np.einsum("i,mij,j->m", means, instance.grams, means)
    solution = solve(instance.grams, y, lam=1.0)
    np.testing.assert_allclose(solution.kernel_weights, distances / distances.sum())
    np.testing.assert_allclose(solution.coefficients, means)
    assert solution.gap <= 1e-12


def test_with_lam_0_the_machine_is_the_hard_margin_machine():
    rng = np.random.default_rng(0)
    y = np.repeat([1.0, -1.0], 20)
    x = rng.normal(size=(40, 3)) + 4 * y[:, None]
    K = x @ x.T
    solution = solve(np.array([K, 2 * K]), y, lam=0.0, tol=1e-6)
    combined = np.einsum("m,mij->ij", solution.kernel_weights, [K, 2 * K])
    reference = SVC(C=1e10, kernel="precomputed", tol=1e-10).fit(combined, y)
    f, g = solution.decision_function(np.array([K, 2 * K])), reference.decision_function(combined)
    # The hulls' points lie at f = -Q/2 and Q/2, the margins at g = -1 and 1.
    np.testing.assert_allclose(f, g * solution.objective / 2, rtol=1e-5, atol=1e-7)
    beta = reference.dual_coef_.ravel()
    norm = beta @ combined[np.ix_(reference.support_, reference.support_)] @ beta
    assert solution.objective == pytest.approx(4 / norm, rel=1e-6)
    assert solution.stop_reason is StopReason.CONVERGED
    np.testing.assert_allclose(solution.kernel_weights, [1 / 3, 2 / 3])


def test_hulls_that_meet_are_told_to_have_no_distance():
    rng = np.random.default_rng(1)
    y = np.repeat([1.0, -1.0], 20)
    x = rng.normal(size=(40, 2))
    solution = solve(np.array([x @ x.T]), y, lam=0.0)
    assert 0.0 <= solution.dual_objective <= solution.objective < 1e-6
    assert np.isfinite(solution.coefficients).all()


def test_zero_is_midway_between_the_points_of_the_hulls():
    instance = instances.balanced()
    y = instance.y
    solution = solve(instance.grams, y, lam=0.2, tol=1e-8)
    f = solution.decision_function(instance.grams)
    gamma = solution.dual_variables
    assert gamma[y > 0] @ f[y > 0] == pytest.approx(-gamma[y < 0] @ f[y < 0])
    assert gamma[y > 0].sum() == pytest.approx(1.0)
    assert gamma[y < 0].sum() == pytest.approx(1.0)
    assert gamma.min() >= 0.0


def test_scaling_the_kernels_is_scaling_lam():
    instance = instances.balanced()
    lam, c = 0.3, 50.0
    scaled = lam * c / (1 - lam + lam * c)
    one = solve(instance.grams, instance.y, lam=lam, tol=1e-9)
    other = solve(c * instance.grams, instance.y, lam=scaled, tol=1e-9)
    np.testing.assert_allclose(other.kernel_weights, one.kernel_weights, atol=1e-9)
    assert other.objective / scaled == pytest.approx(one.objective / lam)


def test_three_passes_are_enough():
    instance, asked = instances.balanced(), []
    solution = solve(instance.grams, instance.y, lambda request, _: asked.append(type(request)))
    assert asked == [Combine, Quadratic, Combine]
    assert (solution.counters.passes, solution.counters.combines) == (3, 2)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e5, 1e7, 1e8])
@pytest.mark.parametrize("lam", [0.5, 0.01, 1e-4])
def test_bounds_enclose_the_optimum_where_rounding_exceeds_the_margins(scale, lam):
    # Both classes have the same points: Q = lam ||gamma||^2, at best lam (1/5 + 1/5).
    grams, y = np.full((1, 10, 10), scale), np.repeat([1.0, -1.0], 5)
    solution = solve(grams, y, lam=lam, tol=1e-7)
    optimum = lam * 0.4
    assert solution.dual_objective <= optimum * (1 + 1e-15)
    assert solution.objective >= optimum * (1 - 1e-15)
    assert solution.converged == (solution.gap <= 1e-7)
