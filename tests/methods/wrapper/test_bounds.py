"""Bounds of wrapper methods: the best of all iterations, whatever the latest one found."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.machine_bounds import WeightedMachine, WrapperBounds
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Problem
from mkldist.solvers.progress import DualBound, StopReason
from mkldist.solvers.solver_params import SolverParams
from mkldist.solvers.svm import SvmSolution


def machine(bias: float) -> SvmSolution:
    return SvmSolution(np.ones(2), np.array([1.0, -1.0]), bias, 3.0, 1.0, 0, 0)


def bounds(counters: Counters) -> WrapperBounds:
    return WrapperBounds(Problem(np.array([1.0, -1.0]), 4), SolverParams(trace=True), counters)


def test_the_solution_is_the_iteration_of_the_least_objective():
    counters = Counters()
    kept = bounds(counters)
    for i, (objective, lower) in enumerate([(3.0, 0.5), (2.0, 0.25), (2.5, 1.5), (2.0, 1.0)]):
        kept.update(np.eye(4)[i], machine(float(i)), objective, lower)
    solution = kept.solution(StopReason.STALLED, state="a state")
    assert solution.kernel_weights.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert solution.bias == 1.0
    assert (solution.objective, solution.dual_objective) == (2.0, 1.5)
    assert kept.width == 0.5
    assert kept.gap == solution.gap == pytest.approx(0.25)
    assert (solution.stop_reason, solution.state) == (StopReason.STALLED, "a state")
    assert solution.counters.outer_iterations == counters.outer_iterations == 4
    assert solution.trace["objective"].tolist() == [3.0, 2.0, 2.0, 2.0]
    assert solution.trace["dual_objective"].tolist() == [0.5, 0.5, 1.5, 1.5]
    assert solution.trace["iterate_objective"].tolist() == [3.0, 2.0, 2.5, 2.0]
    assert solution.trace["iterate_gap"] == pytest.approx([2.5 / 3, 0.875, 0.4, 0.5])


def test_a_bound_by_cuts_is_no_bound_of_the_point_itself():
    kept = bounds(Counters())
    kept.update(np.ones(4), machine(0.0), 4.0, 1.0, DualBound(3.0, np.zeros(2)))
    assert (kept.gap, relative_gap(*kept.own)) == (0.25, 0.75)
    assert kept.solution(StopReason.STALLED).dual_variables.tolist() == [0.0, 0.0]


def test_updates_are_idle_that_improve_neither_bound():
    kept, idle = bounds(Counters()), []
    for objective, lower in [(3.0, 1.0), (3.0, 1.0), (4.0, 0.0), (3.0, 1.5), (2.5, 0.0)]:
        kept.update(np.ones(4), machine(0.0), objective, lower)
        idle.append(kept.idle)
    assert idle == [0, 1, 2, 0, 0]


def test_each_bound_is_improved_by_itself():
    kept = bounds(Counters())
    assert kept.improve_lower(-1.0, np.zeros(2))
    assert not kept.improve_lower(-1.0, np.ones(2))
    assert kept.dual_point.tolist() == [0.0, 0.0]
    assert kept.improve_upper(WeightedMachine(np.ones(4), machine(0.0)), 2.0)
    assert not kept.improve_upper(WeightedMachine(np.zeros(4), machine(1.0)), 2.0)
    assert kept.best.weights.tolist() == [1.0] * 4
    assert kept.width == 3.0
