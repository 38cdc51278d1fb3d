"""Solutions of methods that end in support vector machines on the combined kernel."""

from __future__ import annotations

from mkldist.machines.counters import Counters
from mkldist.machines.svm import SvmSolution
from mkldist.solvers.base import Floats, Problem, Solution, SolverParams, StopReason
from mkldist.solvers.trace import Trace


def svm_solution(
    problem: Problem,
    params: SolverParams,
    kernel_weights: Floats,
    svm: SvmSolution,
    counters: Counters,
) -> Solution:
    """Return the solution of a method that ends in its machines at fixed kernel weights.

    Parameters
    ----------
    problem : Problem
        What was solved.
    params : SolverParams
        Tolerance asked for, and whether to record a trace: one of one row.
    kernel_weights : (M,) float64
        The weights whose combined kernel the machine was trained on.
    svm : SvmSolution
        The machine, or the machines side by side; their gap is the certificate.
    counters : Counters
        Work done.
    """
    return Solution(
        kernel_weights=kernel_weights,
        coefficients=svm.signed,
        bias=svm.bias,
        dual_variables=svm.alpha,
        objective=svm.objective,
        dual_objective=svm.dual_objective,
        stop_reason=StopReason.CONVERGED if svm.gap <= params.tol else StopReason.STALLED,
        counters=counters,
        trace=Trace.of_one(
            params.trace, problem.clock, svm.objective, svm.dual_objective, kernel_weights
        ),
    )
