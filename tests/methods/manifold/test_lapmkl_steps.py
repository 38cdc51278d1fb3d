"""Algorithm 1 for LapMKL with shared coefficients as printed: one step of z between two of d."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.errors import ConvergenceWarning, SpecError
from mkldist.solvers.progress import StopReason
from tests.methods.manifolds import manifold, penalised_losses

PRINTED = {"form": "shared", "coupled": False, "machine": "one-step"}
GAMMAS = [(1.0, 1e-3), (0.1, 1.0), (1e-2, 1e-2), (1.0, 0.0)]


def solve(shape, gammas, steps=PRINTED, **params):
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


@pytest.mark.parametrize("gammas", GAMMAS)
def test_it_ends_where_the_machine_that_is_minimised_ends(gammas):
    shape = manifold("moons", n=60, per_class=6)
    printed = solve(shape, gammas, tol=1e-4, max_iter=5000)
    minimised = solve(shape, gammas, tol=1e-4, max_iter=5000, machine="minimum")
    assert printed.stop_reason is minimised.stop_reason is StopReason.CONVERGED
    assert printed.objective == pytest.approx(minimised.objective, rel=5e-3)
    assert printed.counters.newton_steps == printed.counters.outer_iterations
    assert printed.counters.cg_steps >= printed.counters.newton_steps
    at = np.append(printed.coefficients, printed.bias)
    stated = penalised_losses(shape, printed.kernel_weights, at[:-1], at[-1], *gammas)
    assert printed.objective == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("gammas", GAMMAS)
def test_it_stops_once_the_gradient_is_shorter_than_chi_2(gammas):
    shape = manifold("circles", n=40, per_class=5)
    chi_2 = 0.1
    with pytest.warns(ConvergenceWarning, match=r"Lower chi_2, or raise tol; where a lower one"):
        solution = solve(shape, gammas, tol=1e-9, chi_2=chi_2)
    assert solution.stop_reason is StopReason.STALLED
    slopes = gradient(shape, solution, gammas)
    assert np.linalg.norm(slopes) < chi_2 * (1 + 1e-5)
    assert solution.extra["z_gradient"] == pytest.approx(np.linalg.norm(slopes), abs=1e-6)
    # The last iteration took no step.
    assert solution.counters.newton_steps == solution.counters.outer_iterations - 1


@pytest.mark.parametrize("gammas", GAMMAS)
def test_a_first_step_is_a_truncated_newton_step_with_exact_line_search(gammas):
    shape = manifold("moons", n=40, per_class=5)
    with pytest.warns(ConvergenceWarning):
        solution = solve(shape, gammas, tol=1e-12, max_iter=1)
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


@pytest.mark.parametrize("gammas", GAMMAS)
def test_its_bounds_and_those_of_the_convex_form_do_not_cross(gammas):
    shape = manifold("moons", n=60, per_class=6)
    convex = solve(shape, gammas, {}, tol=1e-7)
    with pytest.warns(ConvergenceWarning):
        printed = solve(shape, gammas, chi_2=0.1, tol=1e-9)
    assert printed.dual_objective <= convex.objective * (1 + 1e-8)
    assert convex.dual_objective <= printed.objective * (1 + 1e-8)


def test_with_a_function_a_kernel_the_steps_are_those_of_primalmkl():
    shape = manifold("moons", n=60, per_class=6)
    labelled = np.flatnonzero(shape.y)
    own = shape.grams[:, labelled][:, :, labelled]
    stop = {"chi_2": 0.05, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning):
        found = solve(shape, (0.5, 0.0), form="deformed", **stop)
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
