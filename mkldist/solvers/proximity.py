"""Distance of solutions from the optimum, as far as it is known."""

from __future__ import annotations

from collections.abc import Sequence

from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Solution
from mkldist.solvers.outcome import STATIONARITY


def exact_proximity_of(solutions: Sequence[Solution]) -> dict[str, float]:
    """Return bound and gap of one or several solutions for the kernels that factors stand for.

    They are ``exact_dual_objective`` and ``exact_gap`` of the sums; nothing where a solution has no
    such bound.
    """
    bounds = [solution.exact_dual_objective for solution in solutions]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return {}
    objective, bound = float(sum(solution.objective for solution in solutions)), float(sum(known))
    return {"exact_gap": relative_gap(objective, bound), "exact_dual_objective": bound}


def proximity_of(solutions: Sequence[Solution]) -> dict[str, float]:
    """Return what is left to gain in one or several solutions, by its name.

    It is the ``gap`` of the sums of objectives and of bounds; where no gap is known, the largest
    ``stationarity``.
    """
    found = [solution.stationarity for solution in solutions if STATIONARITY in solution.extra]
    if found:
        return {STATIONARITY: max(found)}
    objective = float(sum(solution.objective for solution in solutions))
    bound = float(sum(solution.dual_objective for solution in solutions))
    return {"gap": relative_gap(objective, bound)}
