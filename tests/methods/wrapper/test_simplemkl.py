"""SimpleMKL's plain algorithm: its first step by the paper's formulas, and its descent.

Its optimum is held to a conic solver in test_simplex_methods.py, with the other methods of the
same problem; its pieces have files by their own names.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from mkldist.bank.requests import Combine, Matvec
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.grids import expand
from tests.methods import instances, plain_bank
from tests.methods.references.recorded import optimum_of

SIMPLEMKL = METHODS["simplemkl"]


def run(instance: instances.Instance, **params):
    """Return the solution and the requests."""
    seen = []
    settings = SIMPLEMKL.params(C=instance.C, **params)
    steps = SIMPLEMKL.solve(plain_bank.problem(instance.grams, instance.y), settings)
    solution = plain_bank.run(steps, instance.grams, lambda request, _: seen.append(request))
    return solution, seen


@pytest.mark.parametrize("make", [instances.balanced, instances.not_normalised])
@pytest.mark.parametrize("curvature", [True, False])
def test_the_first_step_is_along_the_reduced_gradient(make, curvature):
    instance = make()
    M, K = len(instance.grams), instance.grams.mean(axis=0)
    _, seen = run(instance, curvature=curvature, max_iter=2, tol=1e-8)
    np.testing.assert_allclose(seen[0].weights, 1 / M)
    svc = SVC(C=instance.C, kernel="precomputed", tol=1e-10).fit(K, instance.y)
    a = np.zeros(len(K))
    a[svc.support_] = svc.dual_coef_[0]
    gradient = -0.5 * np.einsum("i,mij,j->m", a, instance.grams, a)
    D = gradient[0] - gradient  # all weights are equal, so the first is the largest
    D[0] = -D[1:].sum()
    if not curvature:  # the plain algorithm asks for the weights where the first kernel vanishes
        D *= 1 / M / -D.min()
    asked = seen[2].weights if curvature else seen[2].weights - 1 / M
    np.testing.assert_allclose(asked, D, rtol=1e-3, atol=1e-3 * np.abs(D).max())


def test_plain_descent_lowers_the_value_at_every_iteration_and_needs_no_products():
    instance = instances.more_kernels_than_points()
    solution, seen = run(instance, curvature=False, max_iter=30, tol=1e-8, trace=True)
    assert (np.diff(solution.trace["objective"]) < 0).all()
    assert not any(isinstance(request, Matvec) for request in seen)
    weights = [r.weights for r in seen if isinstance(r, Combine)]
    assert all(d.min() >= 0 for d in weights)
    assert all(d.sum() == pytest.approx(1.0, abs=1e-12) for d in weights)


def test_plain_descent_drops_a_kernel_for_every_machine_while_the_value_falls():
    instance = instances.more_kernels_than_points()
    _, seen = run(instance, curvature=False, max_iter=1, tol=1e-8)
    first = [r.weights for r in seen if isinstance(r, Combine)]
    dropped = [int((d == 0).sum()) for d in first]
    assert dropped == list(range(len(first)))
    assert len(first) > 2


def test_curvature_saves_iterations():
    instance = instances.more_kernels_than_points()
    plain, _ = run(instance, curvature=False, tol=1e-4)
    scaled, _ = run(instance, tol=1e-4)
    assert plain.converged
    assert 2 * scaled.counters.outer_iterations < plain.counters.outer_iterations
    assert scaled.objective == pytest.approx(plain.objective, rel=2e-4)


def test_golden_section_takes_a_kink_at_which_slopes_stall():
    instance = instances.ill_conditioned()
    by_slope, _ = run(instance, curvature=False, tol=1e-4)
    by_value, _ = run(instance, curvature=False, tol=1e-4, line_search="golden-section")
    assert not by_slope.converged
    assert by_value.converged
    assert by_value.objective == pytest.approx(
        optimum_of("simplemkl", instances.ill_conditioned), rel=1e-4
    )


def test_golden_section_is_of_the_plain_algorithm():
    grid = {"C": 1.0, "line_search": "golden-section"}
    with pytest.raises(SpecError, match="curvature = false"):
        expand(SIMPLEMKL, "methods.simplemkl", grid, None)
