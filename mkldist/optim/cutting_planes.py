"""Cutting-plane model of a convex function on the simplex: its minimum and its level sets.

A cut is linear, so that its values at the vertices of the simplex determine it.  The model
``g(p) = max_j cut_j(p)`` is then the payoff of a matrix game.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.optim.level_set import nearest_below
from mkldist.optim.matrix_game import GameSolution, solve_game

LEVEL = 0.8  # share of the upper bound in the level
LEVEL_SLACK = 1e-3  # violation of the level that may remain, of the distance of the bounds


class CuttingPlanes:
    """A bundle of cuts over the simplex of M variables.

    Parameters
    ----------
    size : int
        Number M of variables.
    """

    def __init__(self, size: int) -> None:
        self._rows: Floats = np.empty((16, size))
        self._n_cuts = 0
        self._active: Ints = np.empty(0, dtype=np.intp)  # basis of the last game
        self._support: Ints = np.empty(0, dtype=np.intp)
        self._multipliers: Floats = np.empty(0)

    @property
    def payoff(self) -> Floats:
        """Values of the cuts at the vertices of the simplex, (J, M)."""
        return self._rows[: self._n_cuts]

    def add(self, height: float, slopes: Floats) -> None:
        """Add the cut ``height + slopes'p``.

        Parameters
        ----------
        height : float
            Constant term.
        slopes : (M,) float64
            Gradient.
        """
        if self._n_cuts == len(self._rows):
            self._rows = np.concatenate([self._rows, np.empty_like(self._rows)])
        np.add(slopes, height, out=self._rows[self._n_cuts])
        self._n_cuts += 1
        self._multipliers = np.append(self._multipliers, 0.0)

    def widen(self, values: Floats) -> None:
        """Add variables to the simplex.

        Parameters
        ----------
        values : (J, K) float64
            Values of the cuts at the vertices of the new variables.
        """
        wider = np.empty((len(self._rows), self._rows.shape[1] + values.shape[1]))
        wider[: self._n_cuts] = np.concatenate([self.payoff, values], axis=1)
        self._rows = wider

    def minimum(self) -> GameSolution:
        """Minimise the model over the simplex; the value is a lower bound of the function's."""
        solution = solve_game(self.payoff, self._active, self._support)
        self._active, self._support = solution.active, solution.support
        return solution

    def level_step(self, centre: Floats, upper: float, lower: float) -> Floats:
        """Return the next point of the Level method, the projection onto a level set.

        Where rounding keeps the projection from that level, it is the model's minimiser.

        Parameters
        ----------
        centre : (M,) float64
            Point to project.
        upper, lower : float
            Bounds of the function's minimum, the lower at most the model's minimum.
        """
        level = LEVEL * upper + (1.0 - LEVEL) * lower
        point = self.project(centre, level, LEVEL_SLACK * (upper - lower))
        return self.minimum().columns if point is None else point

    def project(self, centre: Floats, level: float, slack: float) -> Floats | None:
        """Return the point of ``{p in simplex : g(p) <= level}`` nearest to `centre`.

        Parameters
        ----------
        centre : (M,) float64
            Point to project.
        level : float
            Level, at least the model's minimum.
        slack : float
            Violation of the level that may remain.

        Returns
        -------
        (M,) float64 or None
            A point of the simplex, or None when the level set was not reached.
        """
        point, self._multipliers = nearest_below(
            self.payoff, centre, level, slack, self._multipliers
        )
        return point
