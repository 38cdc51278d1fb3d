"""Search along a direction over the simplex of kernel weights, past kernels that reach zero.

A kernel that reaches zero stays there and the reference kernel takes up its share from then on
(Rakotomamonjy et al. 2008, Algorithm 1), so that the weights follow a path of straight pieces with
a knot wherever a kernel leaves.  The paper solves a machine at every knot, nearly M of them where
one direction empties the simplex.  Here the knot up to which the value falls is sought by doubling
and halving, at the price of about ``2 log2`` machines of the number of kernels that leave, each on
a combined kernel that the bank is asked for; the piece after it is searched as a line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Request
from mkldist.machines.svm import SvmSolution
from mkldist.optim.line_search import root_of_slope

SUM_ERROR = 0.1
ZERO_WEIGHT = 1e-15


@dataclass(frozen=True, eq=False)
class Combination:
    """``matrix + ridge I``, a combination of modified kernels.

    Parameters
    ----------
    matrix : (n, n) float64
        Combination of the kernels.
    ridge : float
        The same combination of what is added to their diagonals.
    """

    matrix: Floats
    ridge: float

    def plus(self, step: float, other: Combination) -> Combination:
        """Return this plus `step` times another."""
        return Combination(self.matrix + step * other.matrix, self.ridge + step * other.ridge)

    def quadratic(self, v: Floats) -> float:
        """Return ``v' (matrix + ridge I) v``, added up over the columns of `v`."""
        return float(np.vdot(v.T @ self.matrix, v.T)) + self.ridge * float(np.vdot(v, v))


Machine = Callable[[Combination], SvmSolution]


class Path:
    """Weights from `d` along D, with the reference kernel taking up the rest.

    Parameters
    ----------
    d : (M,) float64
        Weights to start from, in the simplex.
    D : (M,) float64
        Direction, non-negative where d is zero.
    reference : int
        The kernel whose share follows from the others.
    """

    def __init__(self, d: Floats, D: Floats, reference: int) -> None:
        self._d, self._D, self._reference = d, D, reference
        self._leaving = np.full(len(d), np.inf)
        shrinking = D < 0.0
        shrinking[reference] = False
        self._leaving[shrinking] = d[shrinking] / -D[shrinking]
        self.knots: Floats = self._knots()
        """Steps at which a kernel reaches zero, the first of them 0, the last the path's end."""

    def _knots(self) -> Floats:
        """Return the knots up to the one at which nothing moves or the reference is used up."""
        order = np.argsort(self._leaving)
        order = order[np.isfinite(self._leaving[order])]
        knots = np.concatenate([[0.0], self._leaving[order]])
        others = np.where(np.arange(len(self._d)) == self._reference, 0.0, self._D)
        # On the piece after each knot the reference loses what the kernels left there gain.
        rates = -(others.sum() - np.concatenate([[0.0], np.cumsum(others[order])]))
        shares = self._d[self._reference] + np.concatenate(
            [[0.0], np.cumsum(rates[:-1] * np.diff(knots))]
        )
        growing = bool((others > 0.0).any())
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(rates < 0.0, knots + np.maximum(shares, 0.0) / -rates, np.inf)
        pieces = np.append(knots[1:], np.inf)
        used_up = np.flatnonzero(np.isfinite(ends) & (ends <= pieces))
        self._uses_up = growing and len(used_up) > 0
        if self._uses_up:
            first = int(used_up[0])
            knots = np.append(knots[: first + 1], ends[first])
        distinct: Floats = np.unique(knots)
        return distinct

    def weights(self, knot: int) -> Floats:
        """Return the weights at a knot."""
        step = float(self.knots[knot])
        d = np.where(self._leaving > step, np.maximum(self._d + step * self._D, 0.0), 0.0)
        d[self._reference] = 0.0
        if not (self._uses_up and knot + 1 == len(self.knots)):
            d[self._reference] = max(1.0 - float(d.sum()), 0.0)
        return d

    def direction(self, knot: int) -> Floats:
        """Return the direction on the piece after a knot; zero after the last."""
        if knot + 1 == len(self.knots):
            return np.zeros_like(self._D)
        D = np.where(self._leaving > self.knots[knot], self._D, 0.0)
        D[self._reference] = 0.0
        D[self._reference] = -D.sum()
        return D


@dataclass(frozen=True, eq=False)
class LineSearch:
    """Go along directions of descent, dropping kernels, and search the last piece.

    Parameters
    ----------
    machine : callable
        Solves the inner problem on a combined kernel.
    ridges : (M,) float64
        What is added to the diagonal of each kernel.
    counters : Counters
        Where combinations are counted.
    expired : callable
        Whether the time is up: then the best knot so far is the end.
    """

    machine: Machine
    ridges: Floats
    counters: Counters
    expired: Callable[[], bool]

    def search(
        self, path: Path, kernel: Combination, svm: SvmSolution, *, newton_like: bool
    ) -> Generator[Request, Floats, Floats]:
        """Return the weights where the value along a path has all but stopped to fall.

        Those of the path's start when nothing descends.

        Parameters
        ----------
        path : Path
            From the weights of `kernel`.
        kernel : Combination
            Combined kernel at the start.
        svm : SvmSolution
            The machine there.
        newton_like : bool
            Whether a step of 1 is a good guess, beyond which kernels need not leave.
        """
        along = yield from self._combined(path.direction(0))
        if not _slope(svm, along) < 0.0:
            return path.weights(0)
        last = len(path.knots) - 1
        if newton_like:
            last = int(np.searchsorted(path.knots, 1.0)) - 1
        low, kernel, svm, end_slope = yield from self._last_descent(path, last, kernel, svm, along)
        if low:
            along = yield from self._combined(path.direction(low))
        slope = _slope(svm, along)
        if low == len(path.knots) - 1 or not slope < 0.0 or (low and self.expired()):
            return path.weights(low)
        reach, rest = float(path.knots[low + 1] - path.knots[low]), 1.0 - float(path.knots[low])
        step = root_of_slope(
            lambda gamma: _slope(self.machine(kernel.plus(gamma, along)), along),
            slope,
            reach,
            first=rest if newton_like and 0.0 < rest < reach and end_slope is None else None,
            end_slope=end_slope,
        )
        return normalised(path.weights(low) + step * path.direction(low), path.weights(0))

    def _last_descent(
        self, path: Path, last: int, kernel: Combination, svm: SvmSolution, along: Combination
    ) -> Generator[Request, Floats, tuple[int, Combination, SvmSolution, float | None]]:
        """Return the last knot found to descend, kernel and machine there, the next one's slope.

        The slope is that at the end of the piece, where it is known and positive.
        """
        low, high, stride, end_slope = 0, last + 1, 1, None
        failed = False
        while (low < last and not failed) or high - low > 1:
            if low and self.expired():
                break
            trial = (low + high) // 2 if failed else min(low + stride, last)
            if trial == 1:
                before, there = along, kernel.plus(float(path.knots[1]), along)
            else:
                before = yield from self._combined(path.direction(trial - 1))
                there = yield from self._combined(path.weights(trial))
            found = self.machine(there)
            slope = _slope(found, before)
            # On one piece the value is convex: a slope below zero at its end says enough.  Past
            # several, it may have risen in between, as far as machines of a tolerance can tell.
            near = trial == low + 1
            falls = slope <= 0.0 and (near or found.dual_objective <= svm.objective)
            if falls:
                low, kernel, svm, stride = trial, there, found, 2 * stride
            else:
                high, failed, end_slope = trial, True, slope
        known = failed and high == low + 1 and end_slope is not None and end_slope > 0.0
        return low, kernel, svm, end_slope if known else None

    def _combined(self, weights: Floats) -> Generator[Request, Floats, Combination]:
        """Ask for the combination of modified kernels of some weights or direction."""
        matrix = yield Combine(weights)
        self.counters.combines += 1
        return Combination(matrix, float(self.ridges @ weights))


def _slope(svm: SvmSolution, along: Combination) -> float:
    """Return dJ/dgamma along D, ``-1/2 (alpha*y)' K_D (alpha*y)``."""
    return -0.5 * along.quadratic(svm.signed)


def normalised(d: Floats, start: Floats) -> Floats:
    """Return `d` on the simplex, weights at rounding level set to zero.

    A direction whose entries differ by more than rounding resolves loses the sum of one: then the
    search has found nothing, and `start` is returned.
    """
    d = np.where(d > ZERO_WEIGHT, d, 0.0)
    total = float(d.sum())
    if abs(total - 1.0) > SUM_ERROR:
        unmoved: Floats = start / start.sum()
        return unmoved
    unit: Floats = d / total
    return unit
