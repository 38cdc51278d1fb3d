"""Gap-safe screening: kernels that are proven inactive, and passes over the others only.

A dual ``D(rho)`` that is strongly concave with modulus mu has one maximiser rho*, and a primal
value P bounds how far off it is (Ndiaye, Fercoq, Gramfort & Salmon 2017, Theorem 2):

    ||rho* - rho||^2 <= 2 (P - D(rho)) / mu.

As both sum to the same, with the largest eigenvalue lambda_m of the centred ``H K_m H``,

    | ||rho*||_{K_m} - ||rho||_{K_m} | <= sqrt(lambda_m) ||rho* - rho||.

A kernel whose dual norm at rho* is thereby held below that of all active ones has no weight at the
optimum.  The problem without it has the same optimum, so that passes may leave it out for good,
and lower bounds that do so remain bounds.  The trace of ``H K_m H`` stands for lambda_m.

The duals of hinge and epsilon-insensitive loss are linear in rho between their kinks: there is no
such ball, and nothing is screened.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.gram.requests import Inner, Matvec, Quadratic, Request

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

WORTH_VISITING_ALONE = 0.5  # share of the kernels, above which a pass over all is no dearer
KERNELS_AT_ONCE = 1000
ROUNDING = 1e-9  # of the largest dual norm
VALUE_ROUNDING = 1e-14  # of the primal value


class Candidates:
    """The kernels that may have a weight at the optimum, as far as is known.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    radii : (M,) float64, optional
        ``sqrt(trace(H K_m H))`` if known; else asked for when it can help.
    """

    def __init__(self, n_kernels: int, radii: Floats | None = None) -> None:
        self.may_be_active: Bools = np.ones(n_kernels, dtype=bool)
        self.radii = radii
        self.passes = 0

    @property
    def n_screened(self) -> int:
        """Number of kernels proven inactive."""
        return int((~self.may_be_active).sum())

    def quadratic(self, vectors: Floats) -> Generator[Request, Any, Floats]:
        """Return ``v'K_m v`` of all kernels for (n, R) vectors, (M, R); zero where screened."""
        self.passes += 1
        if self.may_be_active.mean() > WORTH_VISITING_ALONE:
            q: Floats = yield Quadratic(vectors)
            q[~self.may_be_active] = 0.0
            return q
        q = np.zeros((len(self.may_be_active), vectors.shape[1]))
        left = np.flatnonzero(self.may_be_active)
        for start in range(0, len(left), KERNELS_AT_ONCE):
            kernels = left[start : start + KERNELS_AT_ONCE]
            products = yield Matvec(kernels, vectors)
            q[kernels] = np.einsum("nr,snr->sr", vectors, products)
        return q

    def screen(
        self, rho: Floats, norms: Floats, distance: float, threshold: float | None = None
    ) -> Generator[Request, Any, None]:
        """Leave out the kernels whose dual norm is below the threshold in all of the ball.

        Parameters
        ----------
        rho : (n,) float64
            Centre of the ball.
        norms : (M,) float64
            ``||rho||_{K_m}``; of screened kernels anything.
        distance : float
            Radius of the ball.
        threshold : float, optional
            Dual norm of active kernels at the optimum; by default the largest of all.
        """
        if not math.isfinite(distance):
            return
        if self.radii is None:
            if not self._could_help(rho, norms, distance, threshold):
                return
            self.passes += 1
            n = len(rho)
            traces = yield Inner((np.eye(n) - 1.0 / n)[None])
            self.radii = np.sqrt(np.maximum(traces[:, 0], 0.0))
        change = distance * self.radii
        if threshold is None:
            threshold = float((norms - change)[self.may_be_active].max())
        slack = ROUNDING * float(norms.max())
        self.may_be_active &= norms + change >= threshold - slack

    def _could_help(
        self, rho: Floats, norms: Floats, distance: float, threshold: float | None
    ) -> bool:
        """Return whether passes would become cheaper, were the eigenvalues as small as can be.

        ``||rho||_{K_m}`` bounds ``sqrt(lambda_m) ||rho||`` from below.
        """
        length = float(np.linalg.norm(rho))
        if length == 0.0:
            return False
        least = norms / length * distance
        bound = float((norms - least).max()) if threshold is None else threshold
        return bool((norms + least >= bound).mean() <= WORTH_VISITING_ALONE)


def distance_to_optimum(upper: float, value: float, curvature: float) -> float:
    """Return a bound of ``||rho* - rho||``; infinite where the dual is not strongly concave.

    Parameters
    ----------
    upper, value : float
        A primal value, and the dual value of rho.
    curvature : float
        Modulus mu of strong concavity.
    """
    if curvature == 0.0:
        return math.inf
    gap = max(upper - value, 0.0) + VALUE_ROUNDING * abs(upper)
    return math.sqrt(2.0 * gap / curvature)
