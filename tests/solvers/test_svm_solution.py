"""Solutions that hold a support vector machine, on a problem that is solved by hand.

On the identity matrix with labels (1, -1), the dual ``2 a - a^2`` has its maximum 1 at a = 1, where
the primal value is 1 too, with bias 0.
"""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import StopReason, Trace
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution, solve_svm
from mkldist.solvers.svm_solution import fixed_weights_solution, svm_solution

Y = np.array([1.0, -1.0])
WEIGHTS = np.array([0.25, 0.75])
PROBLEM = Problem(Y, n_kernels=2)


def test_the_machine_is_the_solution_and_its_gap_the_certificate():
    svm = solve_svm(np.eye(2), Y, C=10.0, tol=1e-10)
    counters = Counters(svm_solves=1)
    params = SolverParams(tol=1e-9, trace=True)
    solution = fixed_weights_solution(PROBLEM, params, WEIGHTS, svm, counters)
    np.testing.assert_array_equal(solution.kernel_weights, WEIGHTS)
    np.testing.assert_allclose(solution.dual_variables, [1.0, 1.0], rtol=1e-5)
    np.testing.assert_allclose(solution.coefficients, [1.0, -1.0], rtol=1e-5)
    assert solution.bias == pytest.approx(0.0, abs=1e-6)
    assert solution.dual_objective <= 1.0 <= solution.objective * (1 + 1e-15)
    assert solution.objective == pytest.approx(1.0, rel=1e-9)
    assert solution.stop_reason is StopReason.CONVERGED
    assert solution.counters == Counters(svm_solves=1)
    assert solution.trace["largest_kernels"].tolist() == [[1, 0]]
    assert solution.trace["objective"].tolist() == [solution.objective]


@pytest.mark.parametrize(
    ("tol", "reason"), [(0.1, StopReason.CONVERGED), (0.09, StopReason.STALLED)]
)
def test_a_machine_of_too_large_a_gap_has_stalled(tol, reason):
    alpha = np.array([1.0, 1.0])
    svm = SvmSolution(alpha, alpha * Y, 0.0, 10.0, 9.0, 4, 0)
    solution = fixed_weights_solution(PROBLEM, SolverParams(tol=tol), WEIGHTS, svm, Counters())
    assert (solution.stop_reason, solution.trace) == (reason, {})
    assert solution.gap == pytest.approx(0.1)


def test_a_method_has_bounds_and_numbers_of_its_own():
    alpha = np.array([1.0, 1.0])
    svm = SvmSolution(alpha, alpha * Y, 0.5, 10.0, 9.0, 4, 0)
    trace = Trace(False, PROBLEM.clock)
    solution = svm_solution(
        WEIGHTS, svm, 8.0, 6.0, StopReason.MAX_ITER, Counters(), trace, {"margin": 2.0}
    )
    assert (solution.objective, solution.dual_objective, solution.bias) == (8.0, 6.0, 0.5)
    assert solution.gap == pytest.approx(0.25)
    assert solution.extra == {"margin": 2.0}
