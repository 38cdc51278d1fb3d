"""Second-order model of ``J(d) = min_z F(z, d)``, in which the coefficients follow the weights.

The paper's weight step minimises F at fixed alpha, whose Hessian in d is ``G'G`` where every point
is a support vector.  The Hessian of J is smaller, by ``lam (K + lam I)^-1``.  Therefore the paper's
alternation takes short steps where lam is small, and a step by the Hessian of J does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.methods.primal.weight_step import nesterov, suboptimality
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.primal_newton import SupportSystem, ThinSupportSystem

ROUNDS = 12


@dataclass(frozen=True, eq=False)
class ValueModel:
    """J around the current weights: ``gradient'd + 1/2 ||B d - B_now||^2``, up to a constant.

    J has the gradient ``-lam/2 q_m``.  As long as the support vectors stay the same, its Hessian is
    ``lam G' (W - W 1 1'W / 1'W1) G`` with ``W = (K_sv + lam I)^-1`` and the rows sv of G; points
    with weights divide their lam by them.

    Parameters
    ----------
    gradient : (k,) float64
        Gradient of J in the weights of the columns.
    B : (p, k) float64
        ``B'B`` is the Hessian.
    B_now : (p,) float64
        B times the current weights.
    """

    gradient: Floats
    B: Floats
    B_now: Floats

    @classmethod
    def of(
        cls,
        system: SupportSystem | ThinSupportSystem,
        lam: float,
        G: Floats,
        q: Floats,
        f: Floats,
    ) -> ValueModel:
        """Return the model at the minimum over z.

        Parameters
        ----------
        system : SupportSystem or ThinSupportSystem
            Solves with ``K_sv + lam I``, or with the lam of each point.
        lam : float
            Regularisation.
        G : (n_sv, k) float64
            Rows sv of the columns ``K_m a``.
        q : (k,) float64
            ``a'K_m a`` of the columns.
        f : (n_sv,) float64
            Rows sv of ``K a``.
        """
        root = np.sqrt(lam)
        B = root * system.projected(np.column_stack([G, f]))
        return cls(-0.5 * lam * q, np.ascontiguousarray(B[:, :-1]), B[:, -1])

    def __call__(self, d: Floats) -> tuple[float, Floats]:
        """Return value and gradient at weights `d` (k,)."""
        change = self.B @ d - self.B_now
        value = float(self.gradient @ d) + 0.5 * float(change @ change)
        return value, self.gradient + self.B.T @ change

    def minimum(self, weights: WeightSet, d: Floats, share: float) -> Floats:
        """Return a minimiser over the set.

        Where lam is far below the precision of K, rounding may leave no finite minimum; `d` is
        returned then.

        Parameters
        ----------
        weights : WeightSet
            The feasible set.
        d : (k,) float64
            Starting point.
        share : float
            The suboptimality at `d` is reduced to this share.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gap = share * suboptimality(weights, d, self(d)[1])
            if weights.is_simplex:
                minimum = self._minimum_on_simplex(weights, d, gap)
            else:
                minimum = nesterov(self, weights, d, gap=gap)
        return minimum if np.isfinite(minimum).all() else d

    def _minimum_on_simplex(self, weights: WeightSet, d: Floats, gap: float) -> Floats:
        """Return the minimum by pair updates, and by Newton steps on the face that they find."""
        start, d = d, d.copy()
        slack = -self(d)[1]
        scale = float(slack.max() - slack @ d)  # the scaled problem starts with a gap of 1
        if not scale > 0.0:
            return start
        slack /= scale
        hessian = self.B.T @ (self.B / scale)
        diagonal = hessian.diagonal().copy()
        lower, upper = np.zeros(len(d)), np.full(len(d), np.inf)
        violation = 1.0
        for _ in range(ROUNDS):
            violation *= 0.1
            limit = 20 * len(d) + 1000
            pair_updates(hessian, diagonal, d, slack, lower, upper, violation, limit)
            newton_steps(hessian, d, slack, lower, upper)
            if suboptimality(weights, d, -scale * slack) <= gap:
                break
        d = np.maximum(d, 0.0)
        minimum: Floats = d / d.sum()
        return minimum
