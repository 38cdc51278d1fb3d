"""Smooth penalties of the dual of multiple kernel learning, with weights and curvature.

The duals of two problems have the form ``max_alpha 1'alpha - Psi(q)``, with
``q_m = (alpha*y)' K_m (alpha*y)`` and Psi convex, smooth and non-decreasing:

==============  =========================================================================
p-norm squared  ``Psi(q) = ||q||_{p*}^2 / (8 lam)``
Moreau-Yosida   ``Psi(q) = max_{t>=0} sum_m t_m sqrt(q_m) - 1/2 (sum_m t_m)^2 - a^2/2 ||t||^2``
==============  =========================================================================

At q a penalty has *effective weights* ``e = 2 dPsi/dq``: the gradient of Psi in ``alpha*y`` is
``sum_m e_m K_m (alpha*y)``.  Their derivative is a diagonal matrix plus one of rank one,
``de/dq = diag(h) + kappa r r'``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled

P_NORM, MOREAU_YOSIDA = 0, 1

_NEGLIGIBLE = 1e-100  # of the largest q, below which a kernel is a zero kernel


class PenaltyResponse(NamedTuple):
    """Effective weights e (M,) and their derivative ``diag(h) + kappa r r'``, h and r (M,)."""

    e: Floats
    h: Floats
    r: Floats
    kappa: float


@dataclass(frozen=True)
class Penalty:
    """A penalty Psi.

    Parameters
    ----------
    kind : int
        `P_NORM` or `MOREAU_YOSIDA`.
    shape : float
        The exponent p*, or a^2.
    lam : float
        The factor lam of the p-norm; 1 otherwise.
    """

    kind: int
    shape: float
    lam: float = 1.0

    def value(self, q: Floats) -> float:
        """Return Psi(q), q (M,) non-negative."""
        e = self.weights(q)
        # Both are homogeneous, of degree 2 and 1 in q.
        return float(e @ q) * (0.25 if self.kind == P_NORM else 0.5)

    def weights(self, q: Floats) -> Floats:
        """Return the effective weights e (M,) at q (M,)."""
        return self.response(q).e

    def response(self, q: Floats) -> PenaltyResponse:
        """Return the effective weights and their derivative at q (M,)."""
        e, h, r = np.empty_like(q), np.empty_like(q), np.empty_like(q)
        kappa = respond(self.kind, self.shape, self.lam, q, e, h, r)
        return PenaltyResponse(e, h, r, float(kappa))

    def hessian(self, K: Floats, G: Floats, q: Floats) -> Floats:
        """Return the Hessian of Psi in beta, ``K_e + 2 G' (de/dq) G``, (n, n).

        Parameters
        ----------
        K : (n, n) float64
            ``K_e = sum_m e_m K_m`` at the weights e of q.
        G : (M, n) float64
            ``K_m beta``.
        q : (M,) float64
            ``beta' K_m beta``.
        """
        at = self.response(q)
        seen = np.flatnonzero(at.h)
        rows = G[seen]
        pulled = at.r[seen] @ rows
        H = K + 2.0 * ((rows.T * at.h[seen]) @ rows + at.kappa * np.outer(pulled, pulled))
        return np.ascontiguousarray(0.5 * (H + H.T))


@compiled
def respond(
    kind: int, shape: float, lam: float, q: Floats, e: Floats, h: Floats, r: Floats
) -> float:
    """Write e, h, r of a penalty at q; return kappa.

    P-norm: ``e = Q r / (2 lam)`` with ``Q = ||q||_{p*}``, ``r = (q/Q)^(p*-1)``.
    """
    if kind == MOREAU_YOSIDA:
        return _respond_moreau_yosida(shape, q, e, h, r)
    largest, total, power = 0.0, 0.0, shape - 1.0
    for m in range(len(q)):
        largest = max(largest, q[m])
    for m in range(len(q)):
        e[m], h[m], r[m] = 0.0, 0.0, 0.0
        if q[m] > _NEGLIGIBLE * largest:
            r[m] = (q[m] / largest) ** power
            total += r[m] * (q[m] / largest)
    if largest == 0.0:
        return 0.0
    norm = largest * total ** (1.0 / shape)
    factor = (largest / norm) ** power
    for m in range(len(q)):
        if r[m] > 0.0:
            r[m] *= factor
            e[m] = norm * r[m] / (2.0 * lam)
            h[m] = power * r[m] * (norm / q[m]) / (2.0 * lam)
    return (2.0 - shape) / (2.0 * lam)


@compiled
def _respond_moreau_yosida(a_squared: float, q: Floats, e: Floats, h: Floats, r: Floats) -> float:
    """Write ``e = (1 - T/s)_+ / a^2``, ``s = sqrt(q)``, where ``sum_m (s_m - T)_+ = a^2 T``.

    T is approached from below: each sweep drops the entries that do not exceed it, until none is
    dropped.  A dropped entry never returns: rounding could make one come and go for ever.
    """
    T, active = -1.0, len(q) + 1
    while True:
        total, count = 0.0, 0
        for m in range(len(q)):
            s = math.sqrt(q[m])
            if s > T:
                total += s
                count += 1
        if count >= active:
            break
        T, active = total / (a_squared + count), count
    for m in range(len(q)):
        s = math.sqrt(q[m])
        if s > T:
            e[m] = (s - T) / (s * a_squared)
            h[m] = T / (2.0 * a_squared * s * s * s)
            r[m] = 1.0 / s
        else:
            e[m], h[m], r[m] = 0.0, 0.0, 0.0
    return -1.0 / (2.0 * a_squared * (a_squared + active))
