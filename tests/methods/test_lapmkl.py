"""LapMKL: stationarity, special cases, steps."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import mkldist
from mkldist.bank.requests import Combine, Matvec
from mkldist.errors import ConvergenceWarning, SpecError
from mkldist.methods import lapmkl
from mkldist.methods.deformed import Deformation
from mkldist.methods.lapmkl import METHOD, LapMKLParams, SharedMachine, kernel_forms, value_model
from mkldist.solvers.base import ArrayCache, Counters
from mkldist.solvers.progress import StopReason
from mkldist.solvers.squared_losses import squared_hinge
from tests.methods import instances, plain_bank
from tests.methods.manifolds import manifold, penalised_losses
from tests.methods.references.manifold import heat_laplacian, some_labels

FORMS = pytest.mark.parametrize("form", ["shared", "deformed"])
GAMMAS = {"gamma_a": 1e-3, "gamma_i": 1e-3}
MIXED = {"gamma_a": 1.0, "gamma_i": 1e-3}  # several kernels in use on `not_normalised`


def solve(shape, method="lapmkl", **params):
    if method == "lapmkl":
        params.setdefault("form", "shared")
    return mkldist.solve(method, shape.grams, shape.y, laplacian=shape.laplacian, **params)


def solve_instance(instance, watch=None, **params):
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    params = {"form": "shared", "laplacian": L, **params}
    return plain_bank.solve("lapmkl", instance.grams, y, watch, **params)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "gamma_a", "gamma_i", "tol"),
    [
        *((make, 1.0, 1e-3, 1e-8) for make in instances.INSTANCES),
        (instances.balanced, 1e-2, 0.1, 1e-8),
        (instances.ill_conditioned, 1e-4, 1e-2, 1e-6),  # rounding allows 1.5e-7 at last
    ],
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


PRINTED = {"form": "shared", "coupled": False, "machine": "one-step"}
GAMMAS_LAPMKL_STEPS = [(0.1, 1.0), (1e-2, 1e-2), (1.0, 0.0)]


def solve_lapmkl_steps(shape, gammas, steps=PRINTED, **params):
    norms = dict(zip(("gamma_a", "gamma_i"), gammas, strict=True))
    given = {**steps, **norms, **params}
    return mkldist.solve("lapmkl", shape.grams, shape.y, laplacian=shape.laplacian, **given)


def gradient(shape, solution, gammas):
    """Return dF/dz by central differences of F as it is stated."""
    d, at = solution.kernel_weights, np.append(solution.coefficients, solution.bias)

    def F(z):
        return penalised_losses(shape, d, z[:-1], z[-1], *gammas)

    step = 1e-4
    units = step * np.eye(len(at))
    return np.array([(F(at + unit) - F(at - unit)) / (2 * step) for unit in units])


@pytest.mark.slow
@pytest.mark.parametrize("gammas", GAMMAS_LAPMKL_STEPS)
def test_it_ends_where_the_machine_that_is_minimised_ends(gammas):
    shape = manifold("moons", n=60, per_class=6)
    printed = solve_lapmkl_steps(shape, gammas, tol=1e-4, max_iter=5000)
    minimised = solve_lapmkl_steps(shape, gammas, tol=1e-4, max_iter=5000, machine="minimum")
    assert printed.stop_reason is minimised.stop_reason is StopReason.CONVERGED
    assert printed.objective == pytest.approx(minimised.objective, rel=5e-3)
    assert printed.counters.newton_steps == printed.counters.outer_iterations
    assert printed.counters.cg_steps >= printed.counters.newton_steps
    at = np.append(printed.coefficients, printed.bias)
    stated = penalised_losses(shape, printed.kernel_weights, at[:-1], at[-1], *gammas)
    assert printed.objective == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("gammas", GAMMAS_LAPMKL_STEPS)
def test_it_stops_once_the_gradient_is_shorter_than_chi_2(gammas):
    shape = manifold("circles", n=40, per_class=5)
    chi_2 = 0.1
    with pytest.warns(ConvergenceWarning, match=r"Lower chi_2, or raise tol; where a lower one"):
        solution = solve_lapmkl_steps(shape, gammas, tol=1e-9, chi_2=chi_2)
    assert solution.stop_reason is StopReason.STALLED
    slopes = gradient(shape, solution, gammas)
    assert np.linalg.norm(slopes) < chi_2 * (1 + 1e-5)
    assert solution.extra["z_gradient"] == pytest.approx(np.linalg.norm(slopes), abs=1e-6)
    # The last iteration took no step.
    assert solution.counters.newton_steps == solution.counters.outer_iterations - 1


@pytest.mark.parametrize("gammas", GAMMAS_LAPMKL_STEPS)
def test_a_first_step_is_a_truncated_newton_step_with_exact_line_search(gammas):
    shape = manifold("moons", n=40, per_class=5)
    with pytest.warns(ConvergenceWarning):
        solution = solve_lapmkl_steps(shape, gammas, tol=1e-12, max_iter=1)
    M, n = len(shape.grams), len(shape.y)
    labelled = np.flatnonzero(shape.y)
    y, d, L = shape.y[labelled], np.full(M, 1 / M), shape.laplacian.toarray()
    np.testing.assert_allclose(solution.kernel_weights, d)
    K = np.einsum("m,mij->ij", d, shape.grams)
    N = np.einsum("m,mij->ij", d, shape.grams @ L @ shape.grams)
    R = gammas[0] * K + gammas[1] * N
    # At alpha = 0 and the best bias every point has a loss: the model is that of least squares.
    b = y.mean()
    first = -K[:, labelled] @ (y - b)
    H = np.zeros((n + 1, n + 1))
    H[:n, :n] = R + K[:, labelled] @ K[labelled]
    H[:n, n] = H[n, :n] = K[:, labelled].sum(axis=1)
    H[n, n] = len(y)
    p = solution.coefficients
    assert np.linalg.norm(p) > 0
    # The direction leaves at most a tenth of the gradient, at some bias and step length.
    shift = [H[:, :n] @ p, H[:, n], np.append(first, 0.0)]
    (scale, p_b), *_ = np.linalg.lstsq(np.column_stack(shift[:2]), -shift[2], rcond=None)
    rest = scale * shift[0] + p_b * shift[1] + shift[2]
    assert np.linalg.norm(rest) <= 0.1 * np.linalg.norm(first) * (1 + 1e-9)

    # No other length of the step gives less, at the best bias of each.
    def F(step):
        f = step * (K @ p)[labelled]
        bias = min(np.linspace(-2, 2, 4001), key=lambda b: losses(y, f + b))
        return 0.5 * (step**2 * (p @ R @ p) + losses(y, f + bias))

    assert F(1.0) <= min(F(0.9), F(1.1)) * (1 + 1e-3)


def losses(y, decisions):
    return float((np.maximum(0.0, 1.0 - y * decisions) ** 2).sum())


@pytest.mark.parametrize("gammas", GAMMAS_LAPMKL_STEPS)
def test_its_bounds_and_those_of_the_convex_form_do_not_cross(gammas):
    shape = manifold("moons", n=60, per_class=6)
    convex = solve_lapmkl_steps(shape, gammas, {}, tol=1e-7)
    with pytest.warns(ConvergenceWarning):
        printed = solve_lapmkl_steps(shape, gammas, chi_2=0.1, tol=1e-9)
    assert printed.dual_objective <= convex.objective * (1 + 1e-8)
    assert convex.dual_objective <= printed.objective * (1 + 1e-8)


def test_with_a_function_a_kernel_the_steps_are_those_of_primalmkl():
    shape = manifold("moons", n=60, per_class=6)
    labelled = np.flatnonzero(shape.y)
    own = shape.grams[:, labelled][:, :, labelled]
    stop = {"chi_2": 0.05, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning):
        found = solve_lapmkl_steps(shape, (0.5, 0.0), form="deformed", **stop)
    with pytest.warns(ConvergenceWarning):  # of kernels divided by gamma_a, with C = 1
        expected = mkldist.solve(
            "primalmkl", own / 0.5, shape.y[labelled], C=1.0, coupled=False, machine="one-step",
            tol=0.9 * stop["tol"], chi_2=stop["chi_2"],
        )  # fmt: skip
    assert found.stop_reason is expected.stop_reason is StopReason.STALLED
    assert found.counters.newton_steps == expected.counters.newton_steps > 0
    np.testing.assert_allclose(found.kernel_weights, expected.kernel_weights, atol=1e-9)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"machine": "one-step"}, "machine with coupled = true, where it has no effect"),
        ({"coupled": False, "chi_2": 0.1}, "chi_2 with machine = .*, where it has no effect"),
    ],
)
def test_parameters_without_effect_are_refused(params, said):
    shape = manifold("moons", n=20)
    with pytest.raises(SpecError, match=said):
        mkldist.solve("lapmkl", shape.grams, shape.y, laplacian=shape.laplacian, **params)


def visited(instance, d):
    """Return the machine, its point at weights d, and the pass over all kernels there."""
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    labelled = np.flatnonzero(y)
    norms = Deformation(L, 0.5, 2e-2, labelled)
    machine = SharedMachine(norms, squared_hinge(y[labelled]), 1e-20, Counters())
    K, R = plain_bank.run(machine.matrices(d, len(y)), instance.grams)
    at = machine.minimum(d, K, R, np.zeros(len(labelled)))
    r = machine.loss.feasible(at.r)
    return machine, at, plain_bank.run(kernel_forms(at, r, norms), instance.grams)


def test_model_of_the_weights_is_the_second_derivative_of_the_value_function():
    instance = instances.not_normalised()
    d = np.array([0.4, 0.3, 0.2, 0.1])
    machine, at, forms = visited(instance, d)
    assert len(forms.columns.kernels) == 4
    step, slopes = 1e-5, []
    for m, unit in enumerate(np.eye(4)):
        up, down = (visited(instance, d + s * unit) for s in (step, -step))
        slope = (up[1].value - down[1].value) / (2 * step)
        assert forms.gradient[m] == pytest.approx(slope, rel=1e-5)
        slopes.append((up[2].gradient - down[2].gradient) / (2 * step))
    model = plain_bank.run(value_model(at, forms.columns, machine), instance.grams)
    # W from its definition, for the part of the Hessian that the model leaves out.
    right = machine.norms.spread(at.r, 30)
    L = 2e-2 * heat_laplacian(instance.grams)
    W = np.array([K @ (0.5 * at.alpha + L @ K @ at.alpha - right) for K in instance.grams])
    left_out = W @ np.linalg.pinv(at.R, rcond=1e-13) @ W.T
    np.testing.assert_allclose(model.B.T @ model.B - left_out, slopes, rtol=1e-3, atol=1e-5)
