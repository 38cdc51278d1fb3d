"""The paper's step in the kernel weights: Nesterov's method at fixed coefficients (line 12).

The weights are those of a few columns: with weights x, the decision without bias is ``G x``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.squared_losses import SquaredLoss

Smooth = Callable[[Floats], tuple[float, Floats]]
"""Function that returns its value and its gradient at a point."""

CHI_1 = 1e-5  # the paper's tolerance of the weight step
NESTEROV_LIMIT = 2000
ROUNDING = 1e-14


def nesterov(
    f: Smooth, weights: WeightSet, d: Floats, *, chi: float = 0.0, gap: float = 0.0
) -> Floats:
    """Minimise a convex function over a set of weights (Hao et al. 2012, Algorithm 4).

    Erratum: line 13 evaluates the model at u, which is infeasible; the projected point is meant.
    In Algorithm 3, the projection, delta stands for the printed rho and q for z.

    Beyond the paper, gamma starts from the norm of the gradient: the first step is then as long as
    the set is wide, whatever the scale of f.  The momentum is dropped when it points uphill
    (O'Donoghue & Candes 2015).

    Parameters
    ----------
    f : callable
        Value and gradient at a point.
    weights : WeightSet
        The feasible set.
    d : (k,) float64
        Starting point.
    chi : float
        The method stops when no weight changes by more than this in a step.
    gap : float
        The method stops when the suboptimality is at most this.

    Returns
    -------
    (k,) float64
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
