"""Steps in the kernel weights for PrimalMKL (d-step): Nesterov's method and the model of J.

Both work on a few columns: ``G x`` is the decision, without bias, of weights x on the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats
from mkldist.machines.primal_newton import SupportSystem
from mkldist.machines.squared_losses import SquaredLoss
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.lp_ball import WeightSet

Smooth = Callable[[Floats], tuple[float, Floats]]

NESTEROV_LIMIT = 2000
ROUNDS = 12
ROUNDING = 1e-14


def nesterov(
    f: Smooth, weights: WeightSet, d: Floats, *, chi: float = 0.0, gap: float = 0.0
) -> Floats:
    """Minimise a convex function over a set of weights (Hao et al. 2012, Algorithm 4).

    Errata: the test that ends the doubling of gamma holds the projected point against the model,
    not u, which is infeasible.  Beyond the paper, gamma starts from the gradient, whose first step
    is then of the size of the set whatever the scale of f, and the momentum is dropped when it
    points uphill (O'Donoghue & Candes 2015).

    Parameters
    ----------
    f : callable
        Value and gradient at a point.
    weights : WeightSet
        The feasible set.
    d : (k,) float64
        Where to start.
    chi : float
        Largest change of a weight in a step, at which to stop.
    gap : float
        Bound of the suboptimality, at which to stop.
    """
    delta, gamma = 1.0, max(float(np.linalg.norm(f(d)[1])), np.finfo(np.float64).tiny)
    d_before, momentum = d, 0.0
    for _ in range(NESTEROV_LIMIT):
        s = d + momentum * (d - d_before)
        f_s, gradient = f(s)
        while True:
            new = weights.project(s - gradient / gamma)
            step = new - s
            f_new, gradient_new = f(new)
            model = f_s + float(gradient @ step) + 0.5 * gamma * float(step @ step)
            if f_new <= model + ROUNDING * abs(f_s) or not np.isfinite(2.0 * gamma):
                break
            gamma *= 2.0
        if float(gradient @ (new - d)) > 0.0:
            delta = 1.0
        d_before, d = d, new
        if np.abs(step).max() <= chi or suboptimality(weights, d, gradient_new) <= gap:
            break
        delta, delta_before = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * delta**2)), delta
        momentum = (delta_before - 1.0) / delta
    return d


def suboptimality(weights: WeightSet, d: Floats, gradient: Floats) -> float:
    """Return the Frank-Wolfe gap ``max over x in the set of gradient'(d - x)``."""
    return float(gradient @ d) + weights.largest(-gradient)


def alternating_objective(G: Floats, q: Floats, lam: float, loss: SquaredLoss, b: float) -> Smooth:
    """Return ``d -> F(alpha, b, d)`` and its gradient ``lam/2 q - G'r``, alpha fixed.

    Parameters
    ----------
    G : (n, k) float64
        ``K_m alpha`` as columns: the paper's kernel cache.
    q : (k,) float64
        ``alpha' K_m alpha``.
    lam : float
        Regularisation.
    loss : SquaredLoss
        The loss.
    b : float
        Bias.
    """

    def F(d: Floats) -> tuple[float, Floats]:
        r = loss.residual(G @ d + b)
        gradient = 0.5 * lam * q - G.T @ r
        return 0.5 * lam * float(q @ d) + loss.value(r, b), gradient

    return F


@dataclass(frozen=True, eq=False)
class SecondOrderModel:
    """J around the current weights: ``gradient'd + 1/2 ||B d - B_now||^2``, up to a constant.

    ``J(d) = min_z F(z, d)`` has the gradient ``-lam/2 q_m`` and, while the support vectors stay,
    the Hessian ``lam G' (W - W 1 1'W / 1'W1) G`` with ``W = (K_sv + lam I)^-1`` and the rows sv
    of G.  F at fixed alpha, which the paper minimises, has the Hessian ``G'G`` instead: it is too
    large by ``(K + lam I) / lam``, so that the plain alternation creeps where lam is small.

    Parameters
    ----------
    gradient : (k,) float64
        Of J in the weights of the columns.
    B : (n_sv, k) float64
        ``B'B`` is the Hessian.
    B_now : (n_sv,) float64
        B times the current weights.
    """

    gradient: Floats
    B: Floats
    B_now: Floats

    @classmethod
    def of(
        cls, system: SupportSystem, lam: float, G: Floats, q: Floats, f: Floats
    ) -> SecondOrderModel:
        """Return the model for the rows sv of G (n_sv, k) and of ``f = K a`` (n_sv,)."""
        root = np.sqrt(lam)
        B = root * system.projected(np.column_stack([G, f]))
        return cls(-0.5 * lam * q, np.ascontiguousarray(B[:, :-1]), B[:, -1])

    def __call__(self, d: Floats) -> tuple[float, Floats]:
        """Return value and gradient."""
        change = self.B @ d - self.B_now
        value = float(self.gradient @ d) + 0.5 * float(change @ change)
        return value, self.gradient + self.B.T @ change

    def minimum(self, weights: WeightSet, d: Floats, share: float) -> Floats:
        """Return its minimum over the set, searched from `d`, to a share of the gap there.

        Where rounding leaves no finite minimum, at a lam far below the precision of K, `d` stays.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            gap = share * suboptimality(weights, d, self(d)[1])
            if weights.is_simplex:
                minimum = self._minimum_on_simplex(weights, d, gap)
            else:
                minimum = nesterov(self, weights, d, gap=gap)
        return minimum if np.isfinite(minimum).all() else d

    def _minimum_on_simplex(self, weights: WeightSet, d: Floats, gap: float) -> Floats:
        """Return the minimum by pair updates and Newton steps on the face they find."""
        start, d = d, d.copy()
        slack = -self(d)[1]
        scale = float(slack.max() - slack @ d)  # so that the gap is 1 at the start
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
