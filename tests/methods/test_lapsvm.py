"""LapSVM: stationarity, its two algorithms, special cases; some tests are for LapRLS too."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.core.arrays import Target
from mkldist.errors import ConvergenceWarning, SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.progress import StopReason
from tests.methods import instances
from tests.methods.manifolds import EDGES, at_edge, grams_between, manifold, single_penalised_losses
from tests.methods.references.manifold import heat_laplacian, primal_optimum, some_labels

GAMMAS = {"gamma_a": 1e-2, "gamma_i": 0.05}


SHAPES = pytest.mark.parametrize("name", ["moons", "circles"])


MACHINES = pytest.mark.parametrize("method", ["lapsvm", "laprls"])


def solve(method, shape, **params):
    given = {} if method in ("rls", "primalmkl") else {"laplacian": shape.laplacian}
    return mkldist.solve(method, shape.grams, shape.y, **given, **params)


@pytest.mark.parametrize("inner", ["newton", "pcg"])
def test_gradient_of_the_stated_objective_vanishes(inner):
    shape = manifold("moons", n=40)
    tol = 1e-12 if inner == "newton" else 1e-9
    solution = solve("lapsvm", shape, inner=inner, tol=tol, max_iter=5000, **GAMMAS)
    at = np.append(solution.coefficients, solution.bias)

    def F(z):
        return single_penalised_losses(shape, z[:-1], z[-1], *GAMMAS.values())

    step = 1e-4
    slopes = [(F(at + step * unit) - F(at - step * unit)) / (2 * step) for unit in np.eye(41)]
    assert np.abs(slopes).max() < (1e-7 if inner == "newton" else 1e-4)
    assert solution.objective == pytest.approx(F(at), rel=1e-10)


@pytest.mark.parametrize("inner", ["newton", "pcg"])
def test_one_kernel_of_many_has_its_own_optimum(inner):
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    gammas = {"gamma_a": 1e-1, "gamma_i": 1e-2}
    solution = mkldist.solve(
        "lapsvm",
        instance.grams,
        y,
        laplacian=L,
        kernel_number=2,
        inner=inner,
        tol=1e-6,
        max_iter=5000,
        **gammas,
    )
    alone = primal_optimum(instance.grams[2:3], L, y, gammas, squared=False)
    assert solution.objective == pytest.approx(alone, rel=2e-6)
    np.testing.assert_array_equal(np.flatnonzero(solution.kernel_weights), [2])


def test_a_kernel_that_is_not_there_is_refused():
    shape = manifold("moons", n=40)
    with pytest.raises(SpecError, match="kernel_number: found 99; expected a number from 0 to"):
        solve("lapsvm", shape, kernel_number=99, **GAMMAS)


@pytest.mark.parametrize("gammas", [(1e-1, 1e-2), (1.0, 0.0), (1e-2, 1.0)])
def test_conjugate_gradients_meet_newton(gammas):
    shape = manifold("circles", n=80, per_class=5)
    params = dict(zip(("gamma_a", "gamma_i"), gammas, strict=True))
    newton = solve("lapsvm", shape, tol=1e-10, **params)
    pcg = solve("lapsvm", shape, inner="pcg", tol=1e-6, max_iter=5000, trace=True, **params)
    assert newton.stop_reason is pcg.stop_reason is StopReason.CONVERGED
    assert newton.objective == pytest.approx(pcg.objective, rel=2e-6)
    assert pcg.dual_objective <= newton.objective * (1 + 1e-10)
    assert len(pcg.trace["objective"]) == pcg.counters.outer_iterations
    assert (pcg.trace["dual_objective"] <= newton.objective * (1 + 1e-10)).all()
    assert (np.diff(pcg.trace["objective"]) <= 0).all()


def test_early_stopping_keeps_the_classes_and_saves_iterations():
    shape = manifold("moons", n=200, per_class=5)
    params = {"inner": "pcg", "max_iter": 5000, "tol": 1e-8, "gamma_a": 1e-3, "gamma_i": 1e-2}
    full = solve("lapsvm", shape, **params)
    early = solve("lapsvm", shape, early_stop=True, **params)
    assert early.extra["early_stopped"] == 1.0
    assert full.extra["early_stopped"] == 0.0
    assert early.stop_reason is StopReason.STALLED
    assert early.counters.outer_iterations < 0.5 * full.counters.outer_iterations
    assert early.dual_objective <= full.objective <= early.objective
    classes = [np.sign(s.decision_function(shape.grams)) for s in (full, early)]
    assert (classes[0] == classes[1]).mean() > 0.95


@pytest.mark.parametrize("limit", [{"max_iter": 3}, {"time_limit": 1e-9}])
def test_conjugate_gradients_respect_limits(limit):
    shape = manifold("moons")
    with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
        solution = solve("lapsvm", shape, inner="pcg", tol=1e-12, **GAMMAS, **limit)
    best = solve("lapsvm", shape, tol=1e-10, **GAMMAS).objective
    expected = StopReason.MAX_ITER if "max_iter" in limit else StopReason.TIME_LIMIT
    assert solution.stop_reason is expected
    assert solution.dual_objective <= best <= solution.objective


@SHAPES
@MACHINES
def test_two_labels_a_class_are_enough_on_a_manifold(name, method):
    shape = manifold(name, n=200, seed=1)
    solution = solve(method, shape, gamma_a=1e-4, gamma_i=1e-2)
    error = (np.sign(solution.decision_function(shape.grams)) != shape.truth).mean()
    supervised = solve(method, shape, gamma_a=1e-4, gamma_i=0.0)
    plain = (np.sign(supervised.decision_function(shape.grams)) != shape.truth).mean()
    assert error < 0.02 < plain
    new = manifold(name, n=100, seed=9)
    decision = solution.decision_function(grams_between(new.x, shape.x))
    assert (np.sign(decision) != new.truth).mean() < 0.03


def test_without_a_graph_lapsvm_is_primalmkl_on_the_labelled_points():
    shape = manifold("moons", per_class=10)
    labelled = np.flatnonzero(shape.y)
    mean = shape.grams.mean(axis=0)[np.ix_(labelled, labelled)][None]
    expected = mkldist.solve("primalmkl", mean, shape.y[labelled], C=1 / 0.3, tol=1e-10)
    solution = solve("lapsvm", shape, gamma_a=0.3, gamma_i=0.0, tol=1e-10)
    assert solution.objective == pytest.approx(expected.objective, rel=1e-9)
    np.testing.assert_allclose(solution.coefficients[labelled], expected.coefficients, atol=1e-6)
    assert not solution.coefficients[shape.y == 0].any()


@MACHINES
def test_the_objective_depends_on_products_of_scales_only(method):
    shape = manifold("circles", n=60, per_class=4)
    L = shape.laplacian
    base = mkldist.solve(method, shape.grams, shape.y, laplacian=L, **GAMMAS)
    scaled = mkldist.solve(
        method, 7 * shape.grams, shape.y, laplacian=5 * L, gamma_a=7e-2, gamma_i=0.01
    )
    assert scaled.objective == pytest.approx(base.objective, rel=1e-8)


@MACHINES
@pytest.mark.parametrize("edge", EDGES)
def test_edges(method, edge):
    grams, y, L = at_edge(edge)
    solution = mkldist.solve(method, grams, y, laplacian=L, tol=1e-8, **GAMMAS)
    assert solution.stop_reason is StopReason.CONVERGED
    assert np.isfinite(solution.coefficients).all()
    if edge == "zero Laplacian":
        plain = mkldist.solve(method, grams, y, laplacian=L, gamma_a=1e-2, gamma_i=0.0, tol=1e-8)
        assert solution.objective == pytest.approx(plain.objective, rel=1e-7)


@pytest.mark.parametrize("method", ["lapsvm", "laprls", "lapmkl"])
def test_without_a_laplacian_the_method_is_refused(method):
    shape = manifold("moons", n=20)
    with pytest.raises(SpecError, match="laplacian"):
        mkldist.solve(method, shape.grams, shape.y)


@pytest.mark.parametrize("method", ["lapsvm", "laprls", "lapmkl", "rls"])
def test_labels_may_be_missing(method):
    assert METHODS[method].params().target is Target.PARTIAL
