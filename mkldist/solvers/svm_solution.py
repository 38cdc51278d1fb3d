"""Solutions of methods that end in support vector machines on the combined kernel."""

from __future__ import annotations

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.machines.svm import SvmSolution
from mkldist.solvers.base import Problem, Solution, SolverParams, StopReason
from mkldist.solvers.trace import Trace


def svm_solution(
    kernel_weights: Floats,
    svm: SvmSolution,
    bounds: tuple[float, float],
    stop: StopReason,
    counters: Counters,
    trace: Trace,
    extra: dict[str, float] | None = None,
    state: object = None,
) -> Solution:
    """Return the solution of a method that kept the best of its machines.

    Parameters
    ----------
    kernel_weights : (M,) float64
        The weights whose combined kernel the machine was trained on.
    svm : SvmSolution
        The machine, or the machines side by side.
    bounds : (float, float)
        Upper and lower bound of the method's optimum.
    stop, counters, trace, extra, state
        As in :class:`~mkldist.solvers.base.Solution`.
    """
    return Solution(
        kernel_weights=kernel_weights,
        coefficients=svm.signed,
        bias=svm.bias,
        dual_variables=svm.alpha,
        objective=bounds[0],
        dual_objective=bounds[1],
        stop_reason=stop,
        counters=counters,
        trace=trace.arrays(),
        extra=extra or {},
        state=state,
    )


def fixed_weights_solution(
    problem: Problem,
    params: SolverParams,
    kernel_weights: Floats,
    svm: SvmSolution,
    counters: Counters,
) -> Solution:
    """Return the solution of a method that trains its machines once, at fixed kernel weights.

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
    trace = Trace(params.trace, problem.clock)
    trace.record(svm.objective, svm.dual_objective, kernel_weights)
    stop = StopReason.CONVERGED if svm.gap <= params.tol else StopReason.STALLED
    bounds = svm.objective, svm.dual_objective
    return svm_solution(kernel_weights, svm, bounds, stop, counters, trace)
