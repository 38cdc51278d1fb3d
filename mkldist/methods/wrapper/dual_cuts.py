"""Cuts that dual points of a support vector machine give of its optimal value over the simplex.

With ``h = 1'alpha`` and ``q_m = q_m(alpha*y)`` of a feasible alpha, every multiple ``t alpha``,
0 <= t <= 1, is feasible too, so that

    J(p) >= phi(p) = max_{0 <= t <= 1} { t h - t^2/2 q'p }.

``phi(p) <= v`` is ``t h - t^2/2 q'p <= v`` for the one multiple ``t = min(1, 2 v / h)``: level sets
of all these cuts are those of one linear cut each, and so is the minimum of their maximum once v
is known.  Where C is large J is nearly homogeneous, the alphas of different weights differ by
factors, and cuts of alpha alone say little beyond the weights they were made at.  For the same
reason an alpha is best handed over as its largest feasible multiple.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.optim.level_set import nearest_below
from mkldist.optim.matrix_game import GameSolution, solve_game

RISES = 8  # games a minimum, each with the multiples of the last one's value
STALE = 0.1  # of that value, or of the distance to the upper bound, by which it may be outgrown
NO_BASIS: tuple[Ints, Ints] = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


class DualCuts:
    """A bundle of cuts over the simplex of S kernels.

    Parameters
    ----------
    n_kernels : int
        Number S of kernels.
    multiples : bool
        Whether the multiples of dual points are cut as well.
    """

    def __init__(self, n_kernels: int, *, multiples: bool) -> None:
        self._heights: Floats = np.empty(0)
        self._q: Floats = np.empty((16, n_kernels))
        self._multiples = multiples
        self._value = 0.0  # whose multiples the model has; the machine's values are not negative
        self._basis = NO_BASIS
        self._multipliers: Floats = np.empty(0)

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def q(self) -> Floats:
        """The ``q_m(alpha_j*y)`` of all cuts, (J, S)."""
        return self._q[: len(self)]

    def add(self, height: float, q: Floats) -> None:
        """Add the cuts of a dual point.

        Parameters
        ----------
        height : float
            ``1'alpha``.
        q : (S,) float64
            ``q_m(alpha*y)``.
        """
        if len(self) == len(self._q):
            self._q = np.concatenate([self._q, np.empty_like(self._q)])
        self._q[len(self)] = q
        self._heights = np.append(self._heights, height)
        self._multipliers = np.append(self._multipliers, 0.0)

    def widen(self, q: Floats) -> None:
        """Take more kernels in.

        Parameters
        ----------
        q : (J, K) float64
            ``q_m(alpha_j*y)`` of the new kernels.
        """
        wider = np.empty((len(self._q), self._q.shape[1] + q.shape[1]))
        wider[: len(self)] = np.concatenate([self._q[: len(self)], q], axis=1)
        self._q = wider
        self._value, self._basis = 0.0, NO_BASIS

    def minimum(self, upper: float) -> tuple[GameSolution, Floats]:
        """Minimise the largest cut over the simplex: a lower bound of J, and where.

        Parameters
        ----------
        upper : float
            An upper bound of J's minimum.

        Returns
        -------
        solution : GameSolution
            Of the cuts of one multiple each.
        multiples : (J,) float64
            These multiples.
        """
        if self._multiples and self._value == 0.0:
            self._value = float(highest_bounds(self._heights, self._q[: len(self)].max(1)).max())
        for _ in range(RISES):
            t = self._at(self._value)
            solution = solve_game(self._payoff(t), *self._basis)
            self._basis = solution.active, solution.support
            left = min(upper - solution.bound, self._value)
            if not self._multiples or solution.bound - self._value <= STALE * left:
                break
            self._value = solution.bound
        return solution, t

    def project(self, centre: Floats, level: float, slack: float) -> Floats | None:
        """Return the point of the simplex nearest to `centre` where no cut exceeds a level.

        Parameters
        ----------
        centre : (S,) float64
            Point to project.
        level : float
            Level, at least the minimum.
        slack : float
            Violation of the level that may remain.

        Returns
        -------
        (S,) float64 or None
            A point of the simplex, or None when the level set was not reached.
        """
        payoff = self._payoff(self._at(level))
        point, self._multipliers = nearest_below(payoff, centre, level, slack, self._multipliers)
        return point

    def _at(self, value: float) -> Floats:
        """Return the multiples whose cuts are as high as any where these have a value."""
        ones = np.ones(len(self))
        if not self._multiples:
            return ones
        h = self._heights
        return np.divide(2.0 * value, h, out=ones, where=h > 2.0 * value)

    def _payoff(self, t: Floats) -> Floats:
        """Return the values of the multiples' cuts at the vertices of the simplex, (J, S)."""
        payoff: Floats = (t * self._heights)[:, None] - (0.5 * t**2)[:, None] * self._q[: len(self)]
        return payoff


def highest_bounds(heights: Floats, largest: Floats) -> Floats:
    """Return the lower bounds of J's minimum that dual points give by their best multiples, (J,).

    Parameters
    ----------
    heights, largest : (J,) float64
        ``1'alpha_j`` and ``max_m q_m(alpha_j*y)``.
    """
    t = np.divide(heights, largest, out=np.ones_like(heights), where=largest > heights)
    bounds: Floats = t * heights - 0.5 * t**2 * largest
    return bounds
