"""Gap-safe screening: prove kernels inactive, and make passes over the other kernels only.

A dual ``D(rho)`` that is strongly concave with modulus mu has one maximiser rho*, and a primal
value P bounds its distance from rho (Ndiaye, Fercoq, Gramfort & Salmon 2017, Theorem 2):

    ||rho* - rho||^2 <= 2 (P - D(rho)) / mu.

The entries of rho and of rho* have the same sum.  With ``H = I - 11'/n`` and the largest
eigenvalue lambda_m of ``H K_m H``, therefore,

    | ||rho*||_{K_m} - ||rho||_{K_m} | <= sqrt(lambda_m) ||rho* - rho||.

A kernel has no weight at the optimum if these bounds place its dual norm at rho* below that of all
active kernels.  The problem without it has the same optimum, so that passes may leave it out for
good, and lower bounds that leave it out remain bounds.  The code uses the trace of ``H K_m H``,
which is at least lambda_m.

The duals of the hinge and the epsilon-insensitive loss are linear in rho between their kinks, so
that there is no such ball, and no kernel is screened.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.bank.requests import Diagonal, Matvec, Quadratic, Request
from mkldist.core.arrays import Bools, Floats
from mkldist.optim.form_rounding import form_rounding

WORTH_VISITING_ALONE = 0.5  # share of the kernels above which a pass over all costs no more
WORTH_ASKING = 30.0  # gap, in units of the tolerance, above which the pass for radii may pay
KERNELS_AT_ONCE = 1000  # kernels in one request of a pass over the candidates alone
ROUNDING = 1e-9  # of dual norms, relative to the largest
VALUE_ROUNDING = 1e-14  # of the primal value, relative


class Candidates:
    """The kernels that are not proven inactive, with bounds of their dual norms.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.

    Attributes
    ----------
    may_be_active : (M,) bool
        True for kernels that are not proven inactive; the others are screened.
    centre : (n,) float64
        The dual point of the last pass, the centre of the ball; empty before the first pass.
    bounds : (M,) float64
        Upper bounds of the dual norms there, exact for the kernels that the last pass visited.
    radii : (M,) float64, or None
        ``sqrt(trace(H K_m H))``; None until they are asked for, once they can help.
    """

    def __init__(self, n_kernels: int) -> None:
        self.may_be_active: Bools = np.ones(n_kernels, dtype=bool)
        self._partial_passes = 0
        self.centre: Floats = np.empty(0)
        self.bounds: Floats = np.full(n_kernels, np.inf)
        self.radii: Floats | None = None
        self._exact: Bools = np.zeros(n_kernels, dtype=bool)

    @property
    def report(self) -> dict[str, float]:
        """Number of kernels proven inactive, and of passes over the others alone."""
        screened = float((~self.may_be_active).sum())
        return {"screened": screened, "partial_passes": float(self._partial_passes)}

    def go_on(self, start: Candidates) -> None:
        """Take over the centre, bounds and radii of another problem, but no screened kernel."""
        self.centre, self.bounds = start.centre, start.bounds
        self.radii, self._exact = start.radii, start._exact

    def shrink(self, factor: float) -> None:
        """Multiply the centre and the bounds by a positive factor."""
        self.centre, self.bounds = factor * self.centre, factor * self.bounds

    @property
    def n_visited(self) -> int:
        """Number of kernels that a pass visits: all, unless the others are worth leaving out."""
        left = int(self.may_be_active.sum())
        n_kernels = len(self.may_be_active)
        return n_kernels if left > WORTH_VISITING_ALONE * n_kernels else left

    def quadratic(self, vectors: Floats) -> Generator[Request, Any, Floats]:
        """Ask for ``v'K_m v`` of all kernels for (n, R) vectors, (M, R); zero where screened."""
        if self.n_visited == len(self.may_be_active):
            q: Floats = yield Quadratic(vectors)
            q[~self.may_be_active] = 0.0
            return q
        self._partial_passes += 1
        q = np.zeros((len(self.may_be_active), vectors.shape[1]))
        left = np.flatnonzero(self.may_be_active)
        for start in range(0, len(left), KERNELS_AT_ONCE):
            kernels = left[start : start + KERNELS_AT_ONCE]
            products = yield Matvec(kernels, vectors)
            q[kernels] = np.einsum("nr,snr->sr", vectors, products)
        return q

    def visited(self, rho: Floats, norms: Floats) -> None:
        """Move the centre to the dual point of a pass, and update the bounds.

        Parameters
        ----------
        rho : (n,) float64
            A feasible dual point.
        norms : (M,) float64
            ``||rho||_{K_m}``; entries of screened kernels are not read.
        """
        unseen = ~self.may_be_active
        self.bounds = np.where(unseen, self.bounds, norms)
        if unseen.any() and self.radii is not None:
            moved = float(np.linalg.norm(rho - self.centre))
            self.bounds[unseen] += moved * self.radii[unseen]
        self.centre, self._exact = rho, ~unseen

    def screen(
        self, distance: float, threshold: float | None = None, *, left: float = math.inf
    ) -> Generator[Request, Any, None]:
        """Screen the kernels whose dual norm is below a threshold everywhere in a ball.

        Parameters
        ----------
        distance : float
            Radius of the ball around the centre.
        threshold : float, optional
            Dual norm of active kernels at the optimum; by default a lower bound in the ball of
            the largest dual norm of all kernels.
        left : float
            Ratio of the present gap to the tolerance.  If it is small, few passes are left, and
            the pass that asks for the radii would cost more than it saves.
        """
        if not math.isfinite(distance):
            return
        if self.radii is None:
            if left < WORTH_ASKING or not self._could_help(distance, threshold):
                return
            self.radii = yield from _centred_radii(len(self.centre))
        change = distance * self.radii
        if threshold is None:
            threshold = float((self.bounds - change)[self._exact].max())
        slack = ROUNDING * float(self.bounds.max())
        self.may_be_active &= self.bounds + change >= threshold - slack

    def _could_help(self, distance: float, threshold: float | None) -> bool:
        """Return True if passes would become cheaper with the smallest possible eigenvalues.

        ``||rho||_{K_m} <= sqrt(lambda_m) ||rho||`` bounds the eigenvalues from below.
        """
        length = float(np.linalg.norm(self.centre))
        if length == 0.0:
            return False
        least = self.bounds / length * distance
        bound = float((self.bounds - least).max()) if threshold is None else threshold
        return bool((self.bounds + least >= bound).mean() <= WORTH_VISITING_ALONE)


def _centred_radii(n_points: int) -> Generator[Request, Any, Floats]:
    """Ask for ``sqrt(trace(H K_m H)) = sqrt(trace(K_m) - 1'K_m 1 / n)``, or slightly more."""
    ones = np.ones((n_points, 1))
    totals = yield Quadratic(ones)
    traces = yield Diagonal(ones)
    squared = traces - totals / n_points + form_rounding(totals, traces, n_points) / n_points
    radii: Floats = np.sqrt(np.maximum(squared[:, 0], 0.0))
    return radii


def distance_to_optimum(upper: float, value: float, curvature: float) -> float:
    """Return a bound of ``||rho* - rho||``; infinite if the dual is not strongly concave.

    Parameters
    ----------
    upper, value : float
        A primal value, and the dual value of rho.
    curvature : float
        Modulus mu of strong concavity; 0 if there is none.
    """
    if curvature == 0.0:
        return math.inf
    gap = max(upper - value, 0.0) + VALUE_ROUNDING * abs(upper)
    return math.sqrt(2.0 * gap / curvature)
