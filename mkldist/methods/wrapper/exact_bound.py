"""Lower bound with the kernels themselves, for a solution that was found on factors of them.

A dual point of the machine is feasible whatever the kernels are.  With exact quadratic forms its
cuts therefore bound the optimum over the kernels, and so does the minimum over the simplex of the
largest of them: ``min_p max_j { t_j h_j - t_j^2/2 sum_m p_m q_m(alpha_j*y) }``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats
from mkldist.methods.wrapper.bounds import Binding, MachinePoint, mixed
from mkldist.methods.wrapper.cut_bundle import BundleState, DualCuts, DualPoint
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.progress import DualBound
from mkldist.solvers.queries import largest_forms
from mkldist.solvers.solver_params import HingeParams


def exact_bound(
    problem: Problem, params: HingeParams, solution: Solution
) -> Generator[Request, Any, DualBound]:
    """Ask for the forms of all kernels at the dual points whose cuts bind, by one pass.

    Parameters, requests and result are those of every bound of :mod:`mkldist.solvers.queries`.
    """
    points = yield from binding_forms(problem, solution)
    if not points:
        return DualBound(0.0, np.zeros_like(problem.y))  # no machine's value is negative
    cuts = DualCuts(problem.n_kernels)
    for point, q in points:
        cuts.add(point.height, q)
    found = cuts.minimum(solution.objective)
    shares = found.shares * found.multiples
    return DualBound(found.bound, mixed([point.alpha for point, _ in points], shares))


def binding_forms(
    problem: Problem, solution: Solution
) -> Generator[Request, Any, list[tuple[DualPoint | MachinePoint, Floats]]]:
    """Ask for the forms of all kernels at the dual points that give a solution its lower bound.

    Returns
    -------
    list of (DualPoint or MachinePoint, (M,) float64)
        Each point, and upper bounds of its ``q_m(alpha*y)``, added up over classes; none where the
        method stopped before a dual point gave a bound above 0.
    """
    state, n = solution.state, problem.n_points
    points: Sequence[DualPoint | MachinePoint] = (
        state.binding if isinstance(state, BundleState | Binding) else ()
    )
    if not points:
        return []
    signed = np.array([point.alpha * problem.y for point in points])  # (J, n) or (J, n, k)
    q = yield from largest_forms(np.moveaxis(signed, 1, 0).reshape(n, -1))  # (M, J k)
    by_point = q.reshape(len(q), len(points), -1).sum(axis=2).T
    return list(zip(points, by_point, strict=True))
