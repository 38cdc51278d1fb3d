"""SILP, and what the methods with weights in the simplex have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from mkldist.bank.requests import Combine, Quadratic
from mkldist.methods.registry import METHODS
from mkldist.optim import cutting_planes
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import Clock, StopReason
from tests.methods import instances, plain_bank
from tests.methods.references.recorded import optimum_of


def solve(grams, y, watch=None, **params):
    method = METHODS["silp"]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


@pytest.mark.parametrize("iterations", [1, 4, 12])
def test_bound_is_the_programme_of_the_machines_met(iterations):
    instance = instances.more_kernels_than_points()
    M, cuts = len(instance.grams), []

    def watch(request, answer):
        if isinstance(request, Quadratic):
            cuts.append(np.abs(request.vectors).sum() - 0.5 * answer[:, 0])

    settings = {"C": instance.C, "tol": 1e-9, "max_iter": iterations, "acceleration": "none"}
    solution = solve(instance.grams, instance.y, watch, **settings)
    # min theta  s.t.  every cut'beta <= theta, beta in the simplex
    programme = linprog(
        np.r_[np.zeros(M), 1.0],
        A_ub=np.column_stack([np.array(cuts), -np.ones(len(cuts))]),
        b_ub=np.zeros(len(cuts)),
        A_eq=np.r_[np.ones(M), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * M + [(None, None)],
    )
    assert len(cuts) == iterations
    assert solution.dual_objective == pytest.approx(programme.fun, rel=1e-8)


def test_weights_are_vertices_of_the_model():
    instance = instances.more_kernels_than_points()
    supports = []

    def watch(request, answer):
        if isinstance(request, Combine):
            supports.append(np.count_nonzero(request.weights))

    settings = {"C": instance.C, "tol": 1e-6, "acceleration": "none"}
    solve(instance.grams, instance.y, watch, **settings)
    # A basic solution over j cuts has at most j positive weights.
    assert all(support <= max(j, 1) for j, support in enumerate(supports[1:], start=1))


@pytest.mark.slow
def test_hundreds_of_cuts_leave_bounds_that_only_tighten():
    instance = instances.more_kernels_than_points()
    solution = solve(instance.grams, instance.y, C=instance.C, tol=1e-10, trace=True)
    assert solution.converged
    assert solution.counters.outer_iterations > 100
    assert (np.diff(solution.trace["dual_objective"]) >= 0).all()
    assert (np.diff(solution.trace["objective"]) <= 0).all()


def thousand_kernels():
    """Return 1,200 Gaussian kernels of unit trace on single features and pairs, and labels."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    x = rng.normal(size=(40, 30)) + 0.5 * y[:, None] * (np.arange(30) < 4)
    grams = []
    for _ in range(1200):
        chosen = x[:, rng.choice(30, size=2, replace=False)] / rng.uniform(0.5, 4.0)
        distances = ((chosen[:, None] - chosen[None]) ** 2).sum(axis=2)
        grams.append(np.exp(-distances) / len(y))
    return np.array(grams), y


@pytest.mark.slow
def test_the_working_set_leaves_the_optimum_where_it_is_in_fewer_passes():
    grams, y = thousand_kernels()
    plain, fast = (
        solve(grams, y, C=100.0, tol=1e-4, acceleration=acceleration)
        for acceleration in ("none", "working-set")
    )
    assert plain.converged
    assert fast.converged
    assert max(plain.dual_objective, fast.dual_objective) <= min(plain.objective, fast.objective)
    assert plain.counters.passes == plain.counters.outer_iterations + 1  # the first weights too
    assert fast.counters.passes < plain.counters.passes / 5


def family_of_many_features():
    """Return 403 kernels of unit trace, 13 on all of 30 features and on each, and labels."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(60) < 30, 1.0, -1.0)
    x = rng.normal(size=(60, 30)) + 0.4 * y[:, None] * (np.arange(30) < 10)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    grams = []
    for part in (x, *x.T[:, :, None]):
        distances, products = ((part[:, None] - part) ** 2).sum(axis=2), part @ part.T
        grams += [np.exp(-0.5 * distances / w**2) for w in (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20)]
        grams += [(products + 1.0) ** degree for degree in (1, 2, 3)]
    return np.array([K / np.trace(K) for K in grams]), y


@pytest.mark.slow
def test_a_programme_goes_on_from_its_basis_when_kernels_join(monkeypatch):
    """Each programme once began anew then, gave up, and left the next one no basis either.

    On these kernels, as on half of sonar, a machine then took 287 pivots on average in place of 13,
    and every fourth one a call of a general solver.
    """
    pivots, given_up = [], []
    exchanged, by_general_solver = (
        cutting_planes._exchanged,
        cutting_planes._solve_by_general_solver,
    )
    monkeypatch.setattr(
        cutting_planes, "_exchanged", lambda *given: pivots.append(1) or exchanged(*given)
    )
    monkeypatch.setattr(
        cutting_planes,
        "_solve_by_general_solver",
        lambda *given: given_up.append(1) or by_general_solver(*given),
    )
    grams, y = family_of_many_features()
    fast = solve(grams, y, C=1000.0, tol=0.01, max_iter=1500)
    n_pivots, n_given_up = len(pivots), len(given_up)
    plain = solve(grams, y, C=1000.0, tol=0.01, acceleration="none")
    assert fast.converged
    assert plain.converged
    assert n_given_up == 0
    assert n_pivots < 40 * fast.counters.svm_solves
    assert fast.counters.svm_solves < 2 * plain.counters.svm_solves
    assert fast.counters.passes < plain.counters.passes / 20


def own_gap(solution, grams):
    """Return the relative gap of the machine that a solution returns."""
    beta = solution.coefficients
    q = np.einsum("i,mij,j->m", beta, grams, beta)
    return (solution.objective - (np.abs(beta).sum() - 0.5 * q.max())) / solution.objective


@pytest.mark.parametrize("acceleration", ["none", "working-set"])
def test_by_point_it_ends_at_an_iterate_whose_own_gap_is_within_the_tolerance(acceleration):
    instance, tol = instances.duplicated_kernels(), 0.05
    settings = {"C": instance.C, "tol": tol, "acceleration": acceleration, "stop": "point"}
    solution = solve(instance.grams, instance.y, **settings)
    assert solution.converged
    assert own_gap(solution, instance.grams) <= tol
    assert solution.gap > tol / 10  # the bounds alone would not have ended the search


def test_much_tighter_bounds_end_the_working_set_and_not_the_papers_algorithm():
    instance, tol = instances.more_kernels_than_points(), 0.01
    settings = {"C": instance.C, "tol": tol}
    for acceleration in ("working-set", "none"):
        by_bounds = solve(instance.grams, instance.y, acceleration=acceleration, **settings)
        by_point = solve(
            instance.grams, instance.y, acceleration=acceleration, stop="point", **settings
        )
        assert by_point.converged
        assert by_point.gap <= tol / 10
        assert (own_gap(by_point, instance.grams) <= tol) == (acceleration == "none")
        assert by_point.counters.outer_iterations > by_bounds.counters.outer_iterations


SIMPLEX_METHODS = ("level", "simplemkl", "silp", "hessianmkl")


every_method = pytest.mark.parametrize("name", SIMPLEX_METHODS)


every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)


def solve_simplex_methods(name, grams, y, watch=None, **params):
    method = METHODS[name]
    steps = method.solve(plain_bank.problem(grams, y), method.params(**params))
    return plain_bank.run(steps, grams, watch)


@every_method
@every_instance
def test_bounds_enclose_the_optimum_at_every_iteration(name, make):
    instance = make()
    optimum = optimum_of("level", make)
    solution = solve_simplex_methods(
        name, instance.grams, instance.y, C=instance.C, tol=1e-7, trace=True
    )
    upper, lower = solution.trace["objective"], solution.trace["dual_objective"]
    assert len(upper) == solution.counters.outer_iterations
    assert (upper >= optimum * (1 - 1e-7)).all()
    assert (lower <= optimum * (1 + 1e-7)).all()
    assert (np.diff(upper) <= 0).all()
    assert (np.diff(lower) >= 0).all()


@every_method
def test_scaling_kernels_up_and_C_down_scales_the_objective(name):
    instance = instances.balanced()
    plain = solve_simplex_methods(name, instance.grams, instance.y, C=100.0, tol=1e-9)
    scaled = solve_simplex_methods(name, 100.0 * instance.grams, instance.y, C=1.0, tol=1e-9)
    assert 100.0 * scaled.objective == pytest.approx(plain.objective, rel=1e-7)


def test_simplemkl_trains_more_machines_than_level():
    instance = instances.more_kernels_than_points()
    level = solve_simplex_methods("level", instance.grams, instance.y, C=instance.C, tol=0.01)
    simple = solve_simplex_methods("simplemkl", instance.grams, instance.y, C=instance.C, tol=0.01)
    assert simple.counters.svm_solves > 2 * level.counters.svm_solves


def test_plain_reduced_gradient_reaches_the_same_optimum_within_the_papers_tolerance():
    make = instances.balanced
    instance = make()
    plain = solve_simplex_methods(
        "simplemkl", instance.grams, instance.y, C=instance.C, curvature=False
    )
    assert plain.converged
    assert plain.objective == pytest.approx(optimum_of("level", make), rel=0.01)


class HurriedClock(Clock):
    """A clock that advances by half an hour each time it is read."""

    looks = 0

    @property
    def elapsed(self) -> float:
        self.looks += 1
        return 1800.0 * self.looks


def test_time_limit_ends_a_search_that_drops_one_kernel_after_another():
    instance = instances.more_kernels_than_points()
    method = METHODS["simplemkl"]
    problem = Problem(instance.y, len(instance.grams), HurriedClock())
    settings = {"tol": 1e-12, "time_limit": 3601.0, "acceleration": "none"}
    params = method.params(C=instance.C, **settings)
    solution = plain_bank.run(method.solve(problem, params), instance.grams)
    assert solution.stop_reason is StopReason.TIME_LIMIT
    assert solution.counters.outer_iterations == 2
    assert solution.counters.svm_solves < 10


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("level", {"acceleration": "none"}),
        ("silp", {"acceleration": "none"}),
        ("simplemkl", {"curvature": False}),
        ("hessianmkl", {}),
    ],
)
def test_a_trace_tells_the_iterates_from_the_best_so_far(name, settings):
    instance = instances.balanced()
    words = {"C": instance.C, "tol": 1e-3, "trace": True, **settings}
    trace = solve_simplex_methods(name, instance.grams, instance.y, **words).trace
    own, best = trace["iterate_objective"], trace["objective"]
    np.testing.assert_allclose(np.minimum.accumulate(own), best, rtol=1e-12)
    assert (trace["iterate_gap"] >= (own - trace["dual_objective"]) / own - 1e-12).all()
    assert (own > best).any() == (name in ("level", "silp"))  # these two do not descend


@pytest.mark.parametrize("classes", [1, 2])
def test_a_state_is_renewed_on_kernels_that_have_changed(classes):
    instance = instances.INSTANCES[0]()
    y = instance.y if classes == 1 else np.column_stack([instance.y, np.roll(instance.y, 3)])
    method = METHODS["level"]
    state = solve_simplex_methods("level", instance.grams, y, C=instance.C).state
    grown = instance.grams + 0.5 * np.roll(instance.grams, 1, axis=0)
    steps = method.renewal.renewed(plain_bank.problem(grown, y), state)
    renewed = plain_bank.run(steps, grown)
    assert len(renewed.binding) == len(state.binding) > 0
    for point, before in zip(renewed.binding, state.binding, strict=True):
        signed = (before.alpha * y).reshape(len(y), -1)
        q = np.einsum("nk,mnl,lk->m", signed, grown[state.kernels], signed)
        np.testing.assert_allclose(point.q, q)
        np.testing.assert_array_equal(point.alpha, before.alpha)
    np.testing.assert_array_equal(renewed.weights, state.weights)
