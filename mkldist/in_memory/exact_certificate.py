"""Certificates of solutions on thin factors with the kernels themselves.

Every factor lies below its kernel, ``G G' <= K``.  A solution on the factors therefore bounds the
optimum with the kernels from above: its function is an expansion on the pivots with the kernels, of
the same values at the training points and the same norm.  A lower bound takes one pass over the
kernels at the dual points of the solution.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkldist.arrays import Floats
from mkldist.gram.factor_bank import FactorBank
from mkldist.gram.passes import driven
from mkldist.gram.view import BankView, answer_views
from mkldist.solvers.base import ExactBound, Problem, Solution
from mkldist.solvers.solver_params import SolverParams


def certified_exactly(
    solution: Solution,
    factors: FactorBank,
    exact: BankView,
    bound: ExactBound,
    problem: Problem,
    params: SolverParams,
) -> Solution:
    """Return a solution on factors as one of the kernels, with a lower bound of their optimum.

    Parameters
    ----------
    solution : Solution
        The solution on the factors.
    factors : FactorBank
        The factors.
    exact : BankView
        The kernels, with the same normalisation.
    bound : callable
        The method's :attr:`~mkldist.solvers.base.Method.exact_bound`.
    problem : Problem
        The problem that was solved.
    params : SolverParams
        The method's parameters.
    """
    steps = bound(problem, params, solution)
    lower = driven(steps, lambda request: answer_views([(exact, request)])[0])
    return replace(
        solution,
        exact_dual_objective=lower,
        kernel_coefficients=_on_pivots(solution, factors),
    )


def _on_pivots(solution: Solution, factors: FactorBank) -> Floats:
    """Return the coefficients of each kernel of non-zero weight, (S, n) or (S, n, k)."""
    kernels = np.flatnonzero(solution.kernel_weights).tolist()
    found = np.empty((len(kernels), *solution.coefficients.shape))
    for own, kernel in zip(found, kernels, strict=True):
        own[...] = factors.factors[kernel].on_pivots(solution.coefficients)
    return found
