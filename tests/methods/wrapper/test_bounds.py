"""Bounds of an optimum: the best of those met, and the point of the upper one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkldist.counters import Counters
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.bounds import Bounds
from mkldist.solvers.base import Problem, SolverParams, StopReason

MET = [(5.0, 1.0), (4.0, 0.5), (6.0, 2.0), (7.0, 1.5), (4.5, 1.9)]


def test_the_solution_is_the_best_point_with_the_best_bounds():
    counters = Counters()
    bounds = Bounds(Problem(y=np.ones(2), n_kernels=1), SolverParams(trace=True), counters)
    assert bounds.upper - bounds.lower == np.inf
    idle = []
    for step, (upper, lower) in enumerate(MET):
        svm = replace(SvmSolution.none(), objective=upper, bias=float(step))
        bounds.update(np.array([float(step)]), svm, upper, lower)
        idle.append(bounds.idle)
    assert (bounds.upper, bounds.lower, bounds.width, bounds.gap) == (4.0, 2.0, 2.0, 0.5)
    assert idle == [0, 0, 0, 1, 2]
    solution = bounds.solution(StopReason.STALLED, {"extra": 1.0})
    assert (solution.objective, solution.dual_objective) == (4.0, 2.0)
    assert (solution.kernel_weights.tolist(), solution.bias) == ([1.0], 1.0)
    assert solution.trace["objective"].tolist() == [5.0, 4.0, 4.0, 4.0, 4.0]
    assert solution.trace["dual_objective"].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]
    assert solution.counters.outer_iterations == len(MET)
    assert solution.extra == {"extra": 1.0}
