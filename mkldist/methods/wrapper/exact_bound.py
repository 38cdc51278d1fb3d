"""Lower bound with the kernels themselves, for a solution that was found on factors of them.

A dual point of the machine is feasible whatever the kernels are.  With exact quadratic forms its
cuts therefore bound the optimum over the kernels, and so does the minimum over the simplex of the
largest of them: ``min_p max_j { t_j h_j - t_j^2/2 sum_m p_m q_m(alpha_j*y) }``.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.gram.requests import Diagonal, Quadratic, Request
from mkldist.methods.wrapper.cut_bundle import BundleParams, BundleState
from mkldist.methods.wrapper.dual_cuts import DualCuts
from mkldist.optim.form_rounding import form_rounding
from mkldist.solvers.base import Problem, Solution


def exact_bound(
    problem: Problem, params: BundleParams, solution: Solution
) -> Generator[Request, Any, float]:
    """Ask for the forms of all kernels at the dual points whose cuts bind, by one pass.

    Parameters
    ----------
    problem : Problem
        The problem.
    params : BundleParams
        Its parameters.
    solution : Solution
        The solution on factors, with the state for a path.

    Yields
    ------
    Quadratic, Diagonal

    Returns
    -------
    float
        A lower bound of the optimum with the kernels that answer.
    """
    state, n, M = solution.state, problem.n_points, problem.n_kernels
    points = state.binding if isinstance(state, BundleState) else []
    heights = [point.height for point in points]
    signed = np.array([point.alpha * problem.y for point in points])  # (J, n) or (J, n, k)
    columns = np.moveaxis(signed, 1, 0).reshape(n, -1)
    forms = yield Quadratic(columns)
    energies = yield Diagonal(columns**2)
    largest = forms + form_rounding(forms, energies, n)  # (M, J k)
    cuts = DualCuts(M)
    for height, q in zip(heights, largest.reshape(M, len(points), -1).sum(axis=2).T, strict=True):
        cuts.add(height, q)
    return cuts.minimum(solution.objective).bound
