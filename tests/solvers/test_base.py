"""The contract: stopping and `outcome`, solutions, methods with a `path`; `usual`, `array_values`.

Every method is held to the contract by tests/methods/test_conformance.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution, default_passes, reason_to_stop
from mkldist.solvers.progress import StopReason
from mkldist.solvers.solver_params import SolverParams


@pytest.mark.parametrize(
    ("gap", "spent", "stalled", "reason"),
    [
        (0.1, 0.0, False, StopReason.CONVERGED),
        (0.1, 9.0, True, StopReason.CONVERGED),
        (0.2, 2.0, True, StopReason.TIME_LIMIT),
        (0.2, 0.0, True, StopReason.STALLED),
        (0.2, 0.0, False, None),
        (math.inf, 0.0, False, None),
    ],
)
def test_a_solver_stops_at_its_tolerance_then_its_time_then_where_it_stalls(
    gap, spent, stalled, reason
):
    problem = Problem(np.array([1.0, -1.0]), n_kernels=1)
    problem.clock.pause()
    problem.clock.charge(spent)
    params = SolverParams(tol=0.1, time_limit=2.0)
    assert reason_to_stop(problem, params, gap, stalled=stalled) is reason


def solution(**words):
    found = {
        "kernel_weights": np.array([0.0, 2.0, 0.5]),
        "coefficients": np.array([1.0, -1.0]),
        "bias": 0.25,
        "dual_variables": np.array([1.0, 1.0]),
        "objective": 10.0,
        "dual_objective": 9.5,
        "stop_reason": StopReason.CONVERGED,
    }
    return Solution(**found | words)


GRAMS = np.arange(18.0).reshape(3, 3, 2)


def test_a_solution_has_its_gap_and_its_kernels():
    found = solution()
    assert found.gap == pytest.approx(0.05)
    assert found.converged
    assert not solution(stop_reason=StopReason.MAX_ITER).converged
    assert found.active().tolist() == [1, 2]


def test_the_decision_function_is_the_weighted_sum_over_kernels():
    """``K[m, i, 0] - K[m, i, 1] = -1`` for all m and i, so that f = -(2 + 0.5) + 0.25."""
    np.testing.assert_allclose(solution().decision_function(GRAMS), [-2.25] * 3)


def test_every_kernel_may_have_coefficients_of_its_own():
    own = solution(kernel_coefficients=np.array([[1.0, 0.0], [0.0, 2.0]]))
    expected = 2.0 * GRAMS[1, :, 0] + 0.5 * 2.0 * GRAMS[2, :, 1] + 0.25
    np.testing.assert_allclose(own.decision_function(GRAMS), expected)


def test_columns_of_coefficients_are_functions_of_their_own():
    columns = solution(coefficients=np.array([[1.0, 0.0], [0.0, 1.0]]), bias=np.array([0.0, 1.0]))
    combined = 2.0 * GRAMS[1] + 0.5 * GRAMS[2]
    np.testing.assert_allclose(columns.decision_function(GRAMS), combined + np.array([0.0, 1.0]))


def test_a_path_begins_at_the_strongest_regularisation():
    level, primal = METHODS["level"], METHODS["primalmkl"]
    Cs = [level.params(C=C) for C in (10.0, 1.0, 100.0)]
    assert [p.C for p in level.along_path(Cs)] == [1.0, 10.0, 100.0]
    points = [primal.params(C=C) for C in (10.0, 1.0, 100.0)]
    assert [p.C for p in primal.along_path(points)] == [1.0, 10.0, 100.0]
    uniform = METHODS["uniform"]
    points = [uniform.params(C=C) for C in (10.0, 1.0)]
    assert uniform.along_path(points) == points


def test_a_method_takes_the_usual_passes_unless_it_says_otherwise():
    assert METHODS["level"].typical_passes is default_passes
    assert [METHODS["alignf"].typical_passes(n) for n in (1, 1000)] != [default_passes(1)] * 2
