"""Cuts of the value of a support vector machine over the simplex, by all multiples of dual points.

With ``h = 1'alpha`` and ``q_m = q_m(alpha*y)`` of a feasible alpha, every multiple ``t alpha``,
0 <= t <= 1, is feasible too, so that

    J(p) >= phi(p) = max_{0 <= t <= 1} { t h - t^2/2 q'p }.

``phi(p) <= v`` is ``t h - t^2/2 q'p <= v`` for the one multiple ``t = min(1, 2 v / h)``.  So each
alpha contributes one linear cut to the level set ``{phi <= v}``, and, once v is known, to the
minimum.

Where C is large, J is nearly homogeneous: the alphas of different weights differ by factors, and
the cut of alpha alone says little beyond the weights at which it was made.  For the same reason a
caller should hand over the largest feasible multiple of an alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.optim.level_set import nearest_below
from mkldist.optim.matrix_game import solve_game

RISES = 8  # games a minimum, each with the multiples that belong to the last one's value
# Another game is played if the last one raised the value by more than this share of the value, or
# of its distance to the upper bound if that is less.
STALE = 0.1
NO_BASIS: tuple[Ints, Ints] = (np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class CutsMinimum:
    """Minimum of the largest cut over the simplex.

    Parameters
    ----------
    bound : float
        Lower bound of the minimum, and so of J; rounding leaves it one.
    weights : (S,) float64
        Minimiser, a point of the simplex.
    shares : (J,) float64
        Shares of the cuts, of sum 1: the mixture of the cuts by these shares attains `bound`.
    multiples : (J,) float64
        The multiple t of each dual point whose cut takes part.
    """

    bound: float
    weights: Floats
    shares: Floats
    multiples: Floats


class DualCuts:
    """Cuts over the simplex of S kernels, which may grow by further kernels.

    Parameters
    ----------
    n_kernels : int
        Number S of kernels.
    multiples : bool
        True for the cuts of all multiples of the dual points; False for those of the points.
    """

    def __init__(self, n_kernels: int, *, multiples: bool = True) -> None:
        self.of_multiples = multiples
        self._heights: Floats = np.empty(0)
        self._q: Floats = np.empty((16, n_kernels))
        self._value = 0.0  # the value v whose multiples the last game had; 0 before the first game
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
            ``1'alpha``, or less.
        q : (S,) float64
            ``q_m(alpha*y)``.
        """
        if len(self) == len(self._q):
            self._q = np.concatenate([self._q, np.empty_like(self._q)])
        self._q[len(self)] = q
        self._heights = np.append(self._heights, height)
        self._multipliers = np.append(self._multipliers, 0.0)

    def widen(self, q: Floats) -> None:
        """Add kernels to the simplex.

        Parameters
        ----------
        q : (J, K) float64
            ``q_m(alpha_j*y)`` of the new kernels.
        """
        wider = np.empty((len(self._q), self._q.shape[1] + q.shape[1]))
        wider[: len(self)] = np.concatenate([self.q, q], axis=1)
        self._q = wider
        if self.of_multiples:  # new kernels may lower the minimum, and so change the multiples
            self._value, self._basis = 0.0, NO_BASIS

    def minimum(self, upper: float) -> CutsMinimum:
        """Minimise the largest cut over the simplex.

        The multiples depend on the minimum and the minimum on the multiples.  Each game takes the
        multiples of the last game's value, which raises the value until it hardly rises.

        Parameters
        ----------
        upper : float
            An upper bound of J's minimum.
        """
        if self._value == 0.0:
            self._value = float(highest_bounds(self._heights, self.q.max(1)).max())
        for _ in range(RISES):
            t = self._multiples_at(self._value)
            game = solve_game(self._payoff(t), *self._basis)
            self._basis = game.active, game.support
            left = min(upper - game.bound, self._value)
            if not self.of_multiples or game.bound - self._value <= STALE * left:
                break
            self._value = game.bound
        return CutsMinimum(game.bound, game.columns, game.rows, t)

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
        payoff = self._payoff(self._multiples_at(level))
        point, self._multipliers = nearest_below(payoff, centre, level, slack, self._multipliers)
        return point

    def _multiples_at(self, value: float) -> Floats:
        """Return each dual point's multiple of the highest cut where its phi is `value`, (J,)."""
        h, ones = self._heights, np.ones(len(self))
        if not self.of_multiples:
            return ones
        return np.divide(2.0 * value, h, out=ones, where=h > 2.0 * value)

    def _payoff(self, t: Floats) -> Floats:
        """Return the values of the multiples' cuts at the vertices of the simplex, (J, S)."""
        payoff: Floats = (t * self._heights)[:, None] - (0.5 * t**2)[:, None] * self.q
        return payoff


def best_multiples(heights: Floats, largest: Floats) -> Floats:
    """Return the multiples of dual points that give the lower bounds of :func:`highest_bounds`."""
    return np.divide(heights, largest, out=np.ones_like(heights), where=largest > heights)


def highest_bounds(heights: Floats, largest: Floats) -> Floats:
    """Return the lower bounds of J's minimum that dual points give by their best multiples, (J,).

    Parameters
    ----------
    heights, largest : (J,) float64
        ``1'alpha_j``, or less, and ``max_m q_m(alpha_j*y)``.
    """
    t = best_multiples(heights, largest)
    bounds: Floats = t * heights - 0.5 * t**2 * largest
    return bounds
