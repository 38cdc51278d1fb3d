"""Search along a direction over the simplex of kernel weights, past kernels that reach zero.

A kernel that reaches zero stays there, and the reference kernel takes up its share from then on
(Rakotomamonjy et al. 2008, Algorithm 1).  The weights so follow a path of straight pieces, with a
*knot* wherever a kernel leaves.  The paper solves a machine at every knot, nearly M of them where
one direction empties the simplex.  Here doubling and halving find the knot up to which the value
falls.  That costs about ``2 log2 L`` machines where L kernels leave, each on a combined kernel
that the bank is asked for.  The piece after that knot is then searched as a line.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats
from mkldist.optim.descent import root_of_slope
from mkldist.optim.factored_matrix import Gram, moved
from mkldist.solvers.svm import SvmSolution
from mkldist.solvers.working_set import WorkingSet

SUM_ERROR = 0.1  # of the sum of weights, beyond which a direction is lost in rounding
ZERO_WEIGHT = 1e-15  # weights up to it are rounding


@dataclass(frozen=True, eq=False)
class CombinedKernel:
    """``matrix + ridge I``, a combination of kernels with numbers added to their diagonals.

    Parameters
    ----------
    matrix : (n, n) float64 or FactoredMatrix
        Combination of the kernels, or its operator.
    ridge : float
        The same combination of the numbers that are added to their diagonals.
    """

    matrix: Gram
    ridge: float = 0.0

    def plus(self, step: float, other: CombinedKernel) -> CombinedKernel:
        """Return this kernel plus `step` times another."""
        matrix = moved(self.matrix, step, other.matrix)
        return CombinedKernel(matrix, self.ridge + step * other.ridge)

    def quadratic(self, v: Floats) -> float:
        """Return ``v' (matrix + ridge I) v``, added up over the columns of `v`."""
        return float(np.vdot(v, self.matrix @ v)) + self.ridge * float(np.vdot(v, v))


Machine = Callable[[CombinedKernel], SvmSolution]


class SimplexPath:
    """Weights from `d` along D, past kernels that reach zero; a reference kernel keeps their sum.

    Parameters
    ----------
    d : (M,) float64
        Weights to start from, in the simplex.
    D : (M,) float64
        Direction, non-negative where d is zero.
    reference : int
        The kernel whose weight follows from the others.
    newton_like : bool
        True if D is scaled so that a step of 1 is a good guess; kernels that leave beyond it are
        not tried.

    Attributes
    ----------
    knots : (k,) float64
        Steps at which a kernel reaches zero, in order; the first is 0, the last the path's end.
    """

    def __init__(self, d: Floats, D: Floats, reference: int, *, newton_like: bool = False) -> None:
        self._d, self._D, self._reference = d, D, reference
        self.newton_like = newton_like
        self._leaving = np.full(len(d), np.inf)
        shrinking = D < 0.0
        shrinking[reference] = False
        self._leaving[shrinking] = d[shrinking] / -D[shrinking]
        self.knots: Floats = self._knots()

    @property
    def end(self) -> int:
        """Index of the last knot."""
        return len(self.knots) - 1

    def _knots(self) -> Floats:
        """Return the knots up to the one at which nothing moves or the reference is used up."""
        order = np.argsort(self._leaving)
        leaves = np.isfinite(self._leaving)
        order = order[leaves[order]]
        knots = np.concatenate([[0.0], self._leaving[order]])
        others = np.where(np.arange(len(self._d)) == self._reference, 0.0, self._D)
        # On the piece after each knot the reference loses what the kernels left there gain.  Large
        # entries leave first: sums over those that are left keep the digits of the small ones.
        left = np.concatenate([np.cumsum(others[order][::-1])[::-1], [0.0]])
        rates = -(float(others[~leaves].sum()) + left)
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
        """Return the weights at a knot, a point of the simplex."""
        if knot == 0:
            return self._d.copy()
        step = float(self.knots[knot])
        d = np.where(self._leaving > step, np.maximum(self._d + step * self._D, 0.0), 0.0)
        d[self._reference] = 0.0
        if not (self._uses_up and knot == self.end):
            d[self._reference] = max(1.0 - float(d.sum()), 0.0)
        return normalised(d, self._d)

    def direction(self, knot: int) -> Floats:
        """Return the direction on the piece after a knot; zero after the last."""
        if knot == self.end:
            return np.zeros_like(self._D)
        D = np.where(self._leaving > self.knots[knot], self._D, 0.0)
        D[self._reference] = 0.0
        D[self._reference] = -D.sum()
        return D


class _Descent(NamedTuple):
    """The last knot of a path that was found to descend; kernel and machine there."""

    knot: int
    kernel: CombinedKernel
    svm: SvmSolution
    next_slope: float | None  # at the end of the piece after it, if known and positive


@dataclass(frozen=True, eq=False)
class LineSearch:
    """Search along paths of descent: drop kernels as long as J falls, then search the last piece.

    Parameters
    ----------
    machine : callable
        Solves the inner problem on a combined kernel.
    kernels : WorkingSet
        The kernels whose weights the paths have.
    ridges : (M,) float64
        Number that is added to the diagonal of each kernel of the bank.
    expired : callable
        Returns True once the time is up; the search then ends at the best knot so far.
    """

    machine: Machine
    kernels: WorkingSet
    ridges: Floats
    expired: Callable[[], bool]

    def search(
        self, path: SimplexPath, kernel: CombinedKernel, svm: SvmSolution
    ) -> Generator[Request, Any, Floats]:
        """Return the weights where the value along a path has almost stopped falling.

        They are those of the path's start when nothing descends.

        Parameters
        ----------
        path : SimplexPath
            From the weights of `kernel`.
        kernel : CombinedKernel
            Combined kernel at the start.
        svm : SvmSolution
            The machine there.

        Yields
        ------
        Combine
        """
        along = yield from self.combined(path.direction(0))
        if not slope_along(svm, along) < 0.0:
            return path.weights(0)
        low = yield from self._last_descent(path, kernel, svm, along)
        if low.knot:
            along = yield from self.combined(path.direction(low.knot))
        slope = slope_along(low.svm, along)
        if low.knot == path.end or not slope < 0.0 or (low.knot and self.expired()):
            return path.weights(low.knot)
        start = float(path.knots[low.knot])
        reach, full_step = float(path.knots[low.knot + 1]) - start, 1.0 - start
        try_full = path.newton_like and 0.0 < full_step < reach and low.next_slope is None
        step = step_along(
            self.machine,
            low.kernel,
            along,
            slope,
            reach,
            first=full_step if try_full else None,
            end_slope=low.next_slope,
        )
        moved = path.weights(low.knot) + step * path.direction(low.knot)
        return normalised(moved, path.weights(0))

    def _last_descent(
        self, path: SimplexPath, kernel: CombinedKernel, svm: SvmSolution, along: CombinedKernel
    ) -> Generator[Request, Any, _Descent]:
        """Return the last knot found to descend, by doubling strides and then halving them."""
        last = int(np.searchsorted(path.knots, 1.0)) - 1 if path.newton_like else path.end
        low, high, stride, end_slope = 0, last + 1, 1, None
        failed = False
        while (low < last and not failed) or high - low > 1:
            if low and self.expired():
                break
            trial = (low + high) // 2 if failed else min(low + stride, last)
            if trial == 1:
                before, there = along, kernel.plus(float(path.knots[1]), along)
            else:
                before = yield from self.combined(path.direction(trial - 1))
                there = yield from self.combined(path.weights(trial))
            found = self.machine(there)
            slope = slope_along(found, before)
            # On one piece the value is convex: a slope below zero at its end says enough.  Past
            # several, it may have risen in between, as far as machines of a tolerance can tell.
            near = trial == low + 1
            falls = slope <= 0.0 and (near or found.dual_objective <= svm.objective)
            if falls:
                low, kernel, svm, stride = trial, there, found, 2 * stride
            else:
                high, failed, end_slope = trial, True, slope
        known = failed and high == low + 1 and end_slope is not None and end_slope > 0.0
        return _Descent(low, kernel, svm, end_slope if known else None)

    def combined(self, weights: Floats) -> Generator[Request, Any, CombinedKernel]:
        """Ask for the combined kernel of some weights (S,), or of a direction."""
        matrix = yield self.kernels.combination(weights, thin=True)
        return CombinedKernel(matrix, float(self.ridges[self.kernels.kernels] @ weights))


def slope_along(svm: SvmSolution, along: CombinedKernel) -> float:
    """Return dJ/dgamma along D, ``-1/2 (alpha*y)' K_D (alpha*y)``."""
    return -0.5 * along.quadratic(svm.signed)


def step_along(
    machine: Machine,
    kernel: CombinedKernel,
    along: CombinedKernel,
    slope: float,
    reach: float,
    first: float | None = None,
    end_slope: float | None = None,
) -> float:
    """Return a step gamma at which the slope of J along D has shrunk.

    Parameters
    ----------
    machine : callable
        Solves the inner problem on a combined kernel.
    kernel, along : CombinedKernel
        The combined kernel at the start, and that of D.
    slope, reach, first, end_slope
        As for :func:`mkldist.optim.descent.root_of_slope`.
    """

    def slope_at(step: float) -> float:
        return slope_along(machine(kernel.plus(step, along)), along)

    return root_of_slope(slope_at, slope, reach, first=first, end_slope=end_slope)


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
