"""The second-order model of the smooth dual of multiple kernel learning, and its Newton system.

Around beta the penalty's Hessian is ``H = K_e + 2 G' E G``, with ``K_e = sum_m e_m K_m``, rows
``G_m = K_m beta`` and ``E = de/dq``.  For the Moreau-Yosida penalty E grows like 1/a^2, and H
becomes so ill-conditioned that a factorisation of it gives no direction worth following.  Its
Newton system is solved with the change of the weights as unknowns of their own: the effective
weights have degree 0 in q, which makes ``E q = 0``, and ``de = 2 E G d`` is the solution of

    (K_e d)_F + G_F' de + 1 mu             = slack_F
        G_F d - diag(1 / (2 h)) de + q tau = 0
                q' de                      = 0
        1' d                               = 0,

a system that stays well-posed as a vanishes, where it is Newton's for the problem without a.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mkldist.optim.box_qp import Direction
from mkldist.solvers.dual_penalties import MOREAU_YOSIDA, Penalty

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

_RIDGE = 1e-13  # of the mean diagonal entry, for linearly dependent columns


class SecondOrderModel:
    """Model at a point of the dual.

    Parameters
    ----------
    penalty : Penalty
        Psi.
    K : (n, n) float64
        ``sum_m e_m K_m`` at the penalty's weights e.
    G : (M, n) float64
        ``K_m beta``.
    q : (M,) float64
        ``beta' K_m beta``.
    """

    def __init__(self, penalty: Penalty, K: Floats, G: Floats, q: Floats) -> None:
        self.e, h, r, kappa = penalty.response(q)
        seen = np.flatnonzero(h)
        self._K, self._G, self._q, self._h = K, G[seen], q[seen], h[seen]
        self._bordered = penalty.kind == MOREAU_YOSIDA
        pulled = r[seen] @ self._G
        H = K + 2.0 * ((self._G.T * self._h) @ self._G + kappa * np.outer(pulled, pulled))
        self.H: Floats = np.ascontiguousarray(0.5 * (H + H.T))

    @property
    def direction(self) -> Direction | None:
        """How to solve the Newton system, if not by factorising H."""
        return self._bordered_direction if self._bordered else None

    def _bordered_direction(self, free: Ints, residual: Floats) -> Floats | None:
        """Return the Newton direction on the free variables, summing to zero, or None."""
        size, kernels = len(free), len(self._h)
        system = np.zeros((size + kernels + 2, size + kernels + 2))
        block = self._K[np.ix_(free, free)]
        ridge = _RIDGE * float(np.trace(block)) / size
        block[np.diag_indices_from(block)] += max(ridge, np.finfo(np.float64).tiny)
        weights = slice(size, size + kernels)
        system[:size, :size] = block
        system[weights, :size] = self._G[:, free]
        system[weights, weights] = np.diag(-0.5 / self._h)
        system[-2, weights] = self._q
        system[-1, :size] = 1.0
        system = np.tril(system) + np.tril(system, -1).T
        right = np.zeros(len(system))
        right[:size] = residual
        try:
            direction = np.linalg.solve(system, right)[:size]
        except np.linalg.LinAlgError:
            return None
        centred: Floats = np.asarray(direction - direction.mean(), dtype=np.float64)
        return centred if np.isfinite(centred).all() else None
