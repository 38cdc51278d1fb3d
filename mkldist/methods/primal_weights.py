"""Steps in the kernel weights of the primal: Nesterov's method, and a model of the value.

The weights are those of a few columns: with weights x, the decision without bias is ``G x``.  The
paper's step (:func:`nesterov`, line 12 of Algorithm 1 of Hao et al. 2012) minimises F at fixed
alpha, whose Hessian in d is ``G'G`` where every point is a support vector.  The Hessian of
``J(d) = min_z F(z, d)``, in which the coefficients follow the weights, is smaller, by
``lam (K + lam I)^-1``.  Therefore the paper's alternation takes short steps where lam is small, and
a step by the Hessian of J (:class:`ValueModel`) does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.primal_newton import SupportSystem, ThinSupportSystem
from mkldist.solvers.squared_losses import SquaredLoss

Smooth = Callable[[Floats], tuple[float, Floats]]
"""Function that returns its value and its gradient at a point."""
CHI_1 = 1e-5  # the paper's tolerance of the weight step
NESTEROV_LIMIT = 2000
ROUNDING = 1e-14


def nesterov(
    f: Smooth, weights: WeightSet, d: Floats, *, chi: float = 0.0, gap: float = 0.0
) -> Floats:
    """Minimise a convex function over a set of weights (Hao et al. 2012, Algorithm 4), from d (k,).

    It stops when no weight changes by more than `chi` in a step, or the suboptimality is at most
    `gap`.

    Erratum: line 13 evaluates the model at u, which is infeasible; the projected point is meant. In
    Algorithm 3, the projection, delta stands for the printed rho and q for z.

    Beyond the paper, gamma starts from the norm of the gradient: the first step is then as long as
    the set is wide, whatever the scale of f.  The momentum is dropped when it points uphill
    (O'Donoghue & Candes 2015).
    """
    delta, gamma = 1.0, max(float(np.linalg.norm(f(d)[1])), np.finfo(np.float64).tiny)
    d_before, momentum = d, 0.0
    for _ in range(NESTEROV_LIMIT):
        s = d + momentum * (d - d_before)  # line 5
        f_s, gradient = f(s)
        while True:
            new = weights.project(s - gradient / gamma)  # lines 7, 8; Algorithm 3
            step = new - s
            f_new, gradient_new = f(new)
            model = f_s + float(gradient @ step) + 0.5 * gamma * float(step @ step)  # line 12
            if f_new <= model + ROUNDING * abs(f_s) or not np.isfinite(2.0 * gamma):  # line 13
                break
            gamma *= 2.0
        if float(gradient @ (new - d)) > 0.0:
            delta = 1.0
        d_before, d = d, new
        if np.abs(step).max() <= chi or suboptimality(weights, d, gradient_new) <= gap:  # line 9
            break
        delta, delta_before = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * delta**2)), delta  # line 17
        momentum = (delta_before - 1.0) / delta
    return d


def suboptimality(weights: WeightSet, d: Floats, gradient: Floats) -> float:
    """Return the Frank-Wolfe gap ``max over x in the set of gradient'(d - x)``."""
    return float(gradient @ d) + weights.largest(-gradient)


def alternating_objective(G: Floats, q: Floats, lam: float, loss: SquaredLoss, b: float) -> Smooth:
    """Return ``d -> F(alpha, b, d)`` with its gradient ``lam/2 q - G'r``, at fixed alpha and b.

    G (n, k) holds ``K_m alpha`` as columns, the paper's kernel cache; q (k,) is ``alpha' K_m
    alpha``.
    """

    def F(d: Floats) -> tuple[float, Floats]:
        r = loss.residual(G @ d + b)
        gradient = 0.5 * lam * q - G.T @ r
        return 0.5 * lam * float(q @ d) + loss.value(r, b), gradient

    return F


ROUNDS = 12


@dataclass(frozen=True, eq=False)
class ValueModel:
    """J around the current weights: ``gradient'd + 1/2 ||B d - B_now||^2``, up to a constant.

    J has the gradient ``-lam/2 q_m``.  As long as the support vectors stay the same, its Hessian is
    ``lam G' (W - W 1 1'W / 1'W1) G`` with ``W = (K_sv + lam I)^-1`` and the rows sv of G; points
    with weights divide their lam by them.
    """

    gradient: Floats  # (k,) gradient of J in the weights of the columns
    B: Floats  # (p, k) ``B'B`` is the Hessian
    B_now: Floats  # (p,) B times the current weights

    @classmethod
    def of(
        cls, system: SupportSystem | ThinSupportSystem, lam: float, G: Floats, q: Floats, f: Floats
    ) -> ValueModel:
        """Return the model at the minimum over z.

        G (n_sv, k) and f (n_sv,) are the rows sv of the columns ``K_m a`` and of ``K a``, and q
        (k,) is ``a'K_m a``; `system` solves with ``K_sv + lam I``, or with the lam of each point.
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
        """Return a minimiser over the set, from d (k,), whose suboptimality is reduced to a share.

        Where lam is far below the precision of K, rounding may leave no finite minimum; `d` is
        returned then.
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
