"""The second-order model of the smooth dual of multiple kernel learning.

Around beta the penalty's Hessian is ``H = K_e + 2 G' E G``, with ``K_e = sum_m e_m K_m``, rows
``G_m = K_m beta`` and ``E = de/dq``.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats
from mkldist.methods.smooth_dual.dual_penalties import Penalty


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
        rows = G[seen]
        pulled = r[seen] @ rows
        H = K + 2.0 * ((rows.T * h[seen]) @ rows + kappa * np.outer(pulled, pulled))
        self.H: Floats = np.ascontiguousarray(0.5 * (H + H.T))
