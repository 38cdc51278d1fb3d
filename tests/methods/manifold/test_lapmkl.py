"""LapMKL, with `lapmkl` and `lapmkl_deformed`: stationarity, special cases."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import mkldist
from mkldist.bank.requests import Combine, Matvec
from mkldist.methods import lapmkl
from mkldist.methods.lapmkl import METHOD, LapMKLParams
from mkldist.solvers.base import ArrayCache
from mkldist.solvers.progress import StopReason
from tests.methods import instances, plain_bank
from tests.methods.manifolds import EDGES, at_edge, grams_between, manifold, penalised_losses
from tests.methods.references.manifold import heat_laplacian, some_labels

FORMS = pytest.mark.parametrize("form", ["shared", "deformed"])
every_instance = pytest.mark.parametrize("make", instances.INSTANCES, ids=lambda f: f.__name__)
GAMMAS = {"gamma_a": 1e-3, "gamma_i": 1e-3}
MIXED = {"gamma_a": 1.0, "gamma_i": 1e-3}  # several kernels in use on `not_normalised`


def solve(shape, method="lapmkl", **params):
    if method == "lapmkl":
        params.setdefault("form", "shared")
    return mkldist.solve(method, shape.grams, shape.y, laplacian=shape.laplacian, **params)


def solve_instance(instance, watch=None, **params):
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    params.setdefault("form", "shared")
    steps = METHOD.solve(plain_bank.problem(instance.grams, y, L), LapMKLParams(**params))
    return plain_bank.run(steps, instance.grams, watch)


# The shared form: stationarity


@every_instance
@pytest.mark.parametrize(
    ("gamma_a", "gamma_i", "tol"),
    [(1e-2, 0.1, 1e-8), (1.0, 1e-3, 1e-8), (1e-4, 1e-2, 1e-6)],  # rounding allows 1.5e-7 at last
)
def test_shared_form_reaches_a_stationary_point_above_the_convex_bound(make, gamma_a, gamma_i, tol):
    params = {"gamma_a": gamma_a, "gamma_i": gamma_i}
    shared = solve_instance(make(), tol=tol, trace=True, **params)
    deformed = solve_instance(make(), form="deformed", tol=1e-8, **params)
    assert shared.stop_reason is StopReason.CONVERGED
    assert shared.stationarity <= tol
    # Bounds that need not meet give no gap, neither of the solution nor along its trace.
    assert np.isnan(shared.gap)
    assert np.isnan(shared.trace["gap"]).all()
    assert np.isnan(deformed.stationarity)
    assert deformed.gap <= 1e-8
    assert shared.extra["frank_wolfe_gap"] <= tol * shared.objective
    assert shared.extra["z_gradient"] <= 1e-6
    assert shared.dual_objective <= deformed.objective * (1 + 1e-8)
    assert deformed.dual_objective <= shared.objective * (1 + 1e-8)
    assert (np.diff(shared.trace["objective"]) <= 0).all()
    assert len(shared.trace["objective"]) == shared.counters.outer_iterations


def test_shared_form_is_stationary_by_finite_differences_of_the_stated_objective():
    shape = manifold("circles", n=40, per_class=4)
    solution = solve(shape, tol=1e-12, **GAMMAS)
    d, at = solution.kernel_weights, np.append(solution.coefficients, solution.bias)

    def F(z, weights=d):
        return penalised_losses(shape, weights, z[:-1], z[-1], *GAMMAS.values())

    assert solution.objective == pytest.approx(F(at), rel=1e-10)
    step = 1e-4
    slopes = [(F(at + step * unit) - F(at - step * unit)) / (2 * step) for unit in np.eye(41)]
    assert np.abs(slopes).max() < 1e-7
    gradient = np.array(
        [(F(at, d + step * unit) - F(at, d - step * unit)) / (2 * step) for unit in np.eye(len(d))]
    )
    assert gradient @ d - gradient.min() == pytest.approx(0.0, abs=1e-7)


def test_coupled_steps_need_fewer_iterations_than_the_plain_alternation():
    instance = instances.not_normalised()
    coupled = solve_instance(instance, tol=1e-6, **MIXED)
    plain = solve_instance(instance, tol=1e-6, coupled=False, **MIXED)
    assert coupled.stop_reason is plain.stop_reason is StopReason.CONVERGED
    assert coupled.objective == pytest.approx(plain.objective, rel=1e-6)
    assert 2 * coupled.counters.outer_iterations < plain.counters.outer_iterations
    assert (coupled.kernel_weights > 1e-3).sum() > 1


def test_many_kernels_are_taken_in_parts(monkeypatch):
    instance = instances.more_kernels_than_points()
    params = {"gamma_a": 1e-2, "gamma_i": 0.1, "tol": 1e-8}
    whole = solve_instance(instance, **params)
    monkeypatch.setattr(lapmkl, "COLUMNS", 7)
    monkeypatch.setattr(lapmkl, "SECOND_COLUMNS", 3)
    monkeypatch.setattr(lapmkl, "AT_A_TIME", 1)
    sizes = []

    def watch(request, answer):
        sizes.append(len(request.kernels) if isinstance(request, Matvec) else len(request.weights))

    parts = solve_instance(instance, watch, **params)
    assert parts.stop_reason is StopReason.CONVERGED
    assert parts.objective == pytest.approx(whole.objective, rel=1e-3)  # not convex
    assert len(sizes) > 60


class CountedArrays(ArrayCache):
    """Arrays that count how often each was made."""

    def __init__(self, limit):
        super().__init__(limit)
        self.made = Counter()

    def get(self, key, make):
        return super().get(key, lambda: self.made.update([key]) or make())


def test_a_kernel_meets_the_graph_once_for_all_labels_and_gammas():
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    fewer, M = y * (np.arange(len(y)) % 3 > 0), len(instance.grams)
    kept = CountedArrays(2**24)

    def found(grams, labels, laplacian, kernels_id, kept, **gammas):
        problem = plain_bank.problem(grams, labels, laplacian)
        problem = replace(problem, kept=None if kept is None else kept.on(kernels_id))
        params = LapMKLParams(form="shared", tol=1e-8, **gammas)
        return plain_bank.run(METHOD.solve(problem, params), grams)

    n_made = []
    for grams, kernels_id, laplacian in (
        (instance.grams, "these", L), (2.0 * instance.grams, "doubled", L),
        (instance.grams, "these", 2.0 * L),
    ):  # fmt: skip
        for labels, gammas in ((y, GAMMAS), (fewer, GAMMAS), (y, MIXED)):
            own = found(grams, labels, laplacian, kernels_id, None, **gammas)
            shared = found(grams, labels, laplacian, kernels_id, kept, **gammas)
            assert shared.objective == own.objective
            np.testing.assert_array_equal(shared.coefficients, own.coefficients)
            n_made.append(kept.made.total())
    assert n_made == [M, M, M, 2 * M, 2 * M, 2 * M, 3 * M, 3 * M, 3 * M]
    assert own.counters.outer_iterations > 1


def test_the_first_mixture_is_made_once_for_all_labels_and_gammas():
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    M, kept = len(instance.grams), ArrayCache(2**24).on("these")

    def run(labels, kept, **gammas):
        problem = replace(plain_bank.problem(instance.grams, labels, L), kept=kept)
        params = LapMKLParams(form="shared", max_iter=1, **gammas)
        return plain_bank.run(METHOD.solve(problem, params), instance.grams)

    fewer = y * (np.arange(len(y)) % 3 > 0)
    no_graph = {"gamma_a": 1e-3, "gamma_i": 0.0}
    for labels, gammas, n_asked in ((y, GAMMAS, M), (fewer, MIXED, 0), (y, no_graph, M)):
        own, shared = run(labels, None, **gammas), run(labels, kept, **gammas)
        assert shared.objective == own.objective
        np.testing.assert_array_equal(shared.coefficients, own.coefficients)
        assert (own.counters.combines, shared.counters.combines) == (M, n_asked)


@FORMS
def test_no_request_asks_for_more_than_four_matrices(form):
    rows = []

    def watch(request, answer):
        if isinstance(request, Combine):
            rows.append(np.atleast_2d(request.weights))

    solution = solve_instance(
        instances.more_kernels_than_points(), watch, form=form, gamma_a=0.1, gamma_i=0.1
    )
    assert max(len(r) for r in rows) <= 4
    assert sum(len(r) for r in rows) == solution.counters.combines


# What it equals where


@FORMS
@every_instance
def test_without_a_graph_lapmkl_is_primalmkl_on_the_labelled_points(make, form):
    instance = make()
    y = some_labels(instance)
    labelled = np.flatnonzero(y)
    grams = instance.grams[:, labelled][:, :, labelled]
    expected = mkldist.solve("primalmkl", grams, y[labelled], C=5.0, tol=1e-9)
    solution = solve_instance(instance, form=form, gamma_a=0.2, gamma_i=0.0, tol=1e-9)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.objective == pytest.approx(expected.objective, rel=1e-8)
    assert solution.dual_objective == pytest.approx(expected.objective, rel=1e-7)


@FORMS
@pytest.mark.parametrize("kernel", range(4))
def test_one_kernel_is_lapsvm(form, kernel):
    shape = manifold("moons", per_class=5)
    one = {"gamma_a": 1e-2, "gamma_i": 1e-2, "tol": 1e-10}
    grams = shape.grams[[kernel]]
    expected = mkldist.solve("lapsvm", grams, shape.y, laplacian=shape.laplacian, **one)
    solution = mkldist.solve("lapmkl", grams, shape.y, laplacian=shape.laplacian, form=form, **one)
    assert solution.objective == pytest.approx(expected.objective, rel=1e-8)
    decisions = [s.decision_function(grams) for s in (solution, expected)]
    np.testing.assert_allclose(*decisions, atol=1e-4)


@FORMS
def test_dense_and_sparse_laplacians_are_one(form):
    shape = manifold("moons", n=60, per_class=4)
    L = shape.laplacian
    sparse = mkldist.solve("lapmkl", shape.grams, shape.y, laplacian=L, form=form, **GAMMAS)
    dense = mkldist.solve(
        "lapmkl", shape.grams, shape.y, laplacian=L.toarray(), form=form, **GAMMAS
    )
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-9)


@FORMS
def test_order_of_points_and_kernels_does_not_matter(form):
    instance = instances.not_normalised()
    rng = np.random.default_rng(0)
    rows, kernels = rng.permutation(30), rng.permutation(4)
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    plain = mkldist.solve("lapmkl", instance.grams, y, laplacian=L, form=form, tol=1e-9, **MIXED)
    moved = mkldist.solve(
        "lapmkl",
        instance.grams[kernels][:, rows][:, :, rows],
        y[rows],
        laplacian=L[rows][:, rows],
        form=form,
        tol=1e-9,
        **MIXED,
    )
    assert moved.objective == pytest.approx(plain.objective, rel=1e-8)
    np.testing.assert_allclose(moved.kernel_weights, plain.kernel_weights[kernels], atol=1e-3)


@FORMS
def test_the_objective_depends_on_products_of_scales_only(form):
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    base = mkldist.solve("lapmkl", instance.grams, y, laplacian=L, form=form, tol=1e-9, **MIXED)
    scaled = mkldist.solve(
        "lapmkl",
        3 * instance.grams,
        y,
        laplacian=8 * L,
        form=form,
        tol=1e-9,
        gamma_a=3 * MIXED["gamma_a"],
        gamma_i=MIXED["gamma_i"] / 8,
    )
    assert scaled.objective == pytest.approx(base.objective, rel=1e-8)


# What it is for


@FORMS
@pytest.mark.parametrize("name", ["moons", "circles"])
def test_two_labels_a_class_are_enough_on_a_manifold(form, name):
    shape = manifold(name, n=160, seed=1)
    solution = solve(shape, form=form, gamma_a=1e-4, gamma_i=1e-2)
    error = (np.sign(solution.decision_function(shape.grams)) != shape.truth).mean()
    supervised = solve(shape, form=form, gamma_a=1e-4, gamma_i=0.0)
    plain = (np.sign(supervised.decision_function(shape.grams)) != shape.truth).mean()
    assert error < 0.02 < plain
    new = manifold(name, n=100, seed=9)
    decision = solution.decision_function(grams_between(new.x, shape.x))
    assert (np.sign(decision) != new.truth).mean() < 0.03


# Edges


@FORMS
@pytest.mark.parametrize("edge", EDGES)
def test_edges(form, edge):
    grams, y, L = at_edge(edge)
    solution = mkldist.solve("lapmkl", grams, y, laplacian=L, form=form, tol=1e-7, **GAMMAS)
    assert solution.stop_reason is StopReason.CONVERGED
    assert np.isfinite(solution.coefficients).all()
    assert solution.kernel_weights.sum() == pytest.approx(1.0)
    if edge == "zero Laplacian":
        plain = mkldist.solve(
            "lapmkl", grams, y, laplacian=L, form=form, gamma_a=1e-3, gamma_i=0.0, tol=1e-7
        )
        assert solution.objective == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("gamma_a", "gamma_i"), list(itertools.product((1e-8, 1.0, 1e8), (0.0, 1e-8, 1e8)))
)
def test_permitted_extremes_are_finite_and_honest(gamma_a, gamma_i):
    solution = solve_instance(instances.balanced(), gamma_a=gamma_a, gamma_i=gamma_i, tol=1e-3)
    numbers = [solution.objective, solution.dual_objective, solution.bias]
    assert np.isfinite([*numbers, *solution.extra.values()]).all()
    assert np.isfinite(solution.coefficients).all()
    met = solution.extra["stationarity"] <= 1e-3
    assert (solution.stop_reason is StopReason.CONVERGED) == met
    assert 0.0 <= solution.dual_objective <= solution.objective


@FORMS
@pytest.mark.parametrize("limit", [{"max_iter": 2}, {"time_limit": 1e-9}])
def test_limits_are_stated_reasons(form, limit):
    instance = instances.not_normalised()
    optimum = solve_instance(instance, form="deformed", tol=1e-9, **MIXED).objective
    solution = solve_instance(instance, form=form, tol=1e-13, **MIXED, **limit)
    expected = StopReason.MAX_ITER if "max_iter" in limit else StopReason.TIME_LIMIT
    assert solution.stop_reason is expected
    assert solution.counters.outer_iterations <= 2
    assert solution.dual_objective <= optimum <= solution.objective * (1 + 1e-9)
