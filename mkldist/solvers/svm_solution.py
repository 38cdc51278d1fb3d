"""Solutions of methods that return a support vector machine on their combined kernel."""

from __future__ import annotations

from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.progress import Own, StopReason, Trace
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution


def svm_solution(
    kernel_weights: Floats,
    svm: SvmSolution,
    objective: float,
    dual_objective: float,
    stop: StopReason,
    counters: Counters,
    trace: Trace,
    extra: dict[str, float] | None = None,
    state: object = None,
    dual_point: Floats | None = None,
) -> Solution:
    """Return the solution of a method, from its best machine and its bounds.

    Parameters
    ----------
    kernel_weights : (M,) float64
        Kernel weights of the combined kernel on which the machine was trained.
    svm : SvmSolution
        The machine, or the machines of several classes side by side.
    objective, dual_objective : float
        Upper and lower bound of the method's optimum.
    stop, counters, trace, extra, state
        As in :class:`~mkldist.solvers.base.Solution`.
    dual_point : (n,) or (n, k) float64, optional
        Dual point of the lower bound; by default that of the machine.
    """
    return Solution(
        kernel_weights=kernel_weights,
        coefficients=svm.coefficients,
        bias=svm.bias,
        dual_variables=svm.alpha if dual_point is None else dual_point,
        objective=objective,
        dual_objective=dual_objective,
        stop_reason=stop,
        counters=counters,
        trace=trace.arrays(),
        extra=extra or {},
        state=state,
        training_values=svm.values,
    )


def fixed_weights_solution(
    problem: Problem,
    params: SolverParams,
    kernel_weights: Floats,
    svm: SvmSolution,
    counters: Counters,
    extra: dict[str, float] | None = None,
    *,
    complete: bool = True,
) -> Solution:
    """Return the solution of a method that trains its machines once, at fixed kernel weights.

    The gap of the machines is the certificate, and a trace has one row.

    Parameters
    ----------
    problem : Problem
        The problem, whose clock times the trace.
    params : SolverParams
        Tolerance, and ``trace``, which says whether to record one.
    kernel_weights : (M,) float64
        Kernel weights of the combined kernel on which the machine was trained.
    svm : SvmSolution
        The machine, or the machines of several classes side by side.
    counters : Counters
        Work done.
    extra : dict of str to float, optional
        As in :class:`~mkldist.solvers.base.Solution`.
    complete : bool
        False if the time limit came before the weights were chosen from all kernels.
    """
    trace, own = Trace(params.trace, problem.clock), Own(svm.objective, svm.dual_objective)
    trace.record(*own, kernel_weights, own)
    stop = StopReason.CONVERGED if svm.gap <= params.tol else StopReason.STALLED
    if not complete:
        stop = StopReason.TIME_LIMIT
    return svm_solution(
        kernel_weights, svm, svm.objective, svm.dual_objective, stop, counters, trace, extra
    )
