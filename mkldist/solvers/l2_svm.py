"""Support vector machine with squared slacks on one Gram matrix (l2-SVM).

Dual::

    max_alpha  1'alpha - 1/2 (alpha*y)' (K + ridge I) (alpha*y)   s.t.  alpha >= 0,  y'alpha = 0

Primal of the same value::

    min_{f, b}  1/2 ||f||^2_K + 1/(2 ridge) sum_i max(0, 1 - y_i (f_i + b))^2

The dual is the hard-margin machine on ``K + ridge I``, without an upper bound.  On the operator of
thin factors, where most alpha are positive at once, Newton steps on the primal solve it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.optim.accuracy import form_rounding
from mkldist.optim.factored_matrix import FactoredMatrix, Gram, diagonal_of, ridged
from mkldist.solvers.base import Counters
from mkldist.solvers.primal_newton import PrimalMachine
from mkldist.solvers.squared_losses import squared_hinge
from mkldist.solvers.svm import EPS, Certificate, SvmSolution, dual_rounding, maximise_dual

SHARE = 0.1  # of the tolerance, that Newton steps on the primal leave


def solve_l2_svm(
    K: Gram,
    y: Floats,
    ridge: float,
    *,
    tol: float = 1e-6,
    start: Floats | None = None,
) -> SvmSolution:
    """Solve the l2-SVM to a relative duality gap.

    `K` (n, n) is without the ridge, or its operator; `ridge` > 0 is ``1 / C`` for the penalty
    ``C/2 sum_i slack_i^2``.  The rest is as for :func:`mkldist.solvers.svm.solve_svm`; the alpha
    that is returned has no upper bound.
    """
    with_ridge = ridged(K, ridge)
    reach = np.sqrt(np.maximum(diagonal_of(with_ridge), 0.0))
    counters = Counters()
    if isinstance(K, FactoredMatrix):
        start = _by_newton(K, y, ridge, tol, start, counters)
    beta = _start(y, start)
    beta *= float(beta @ y) / float(beta @ (with_ridge @ beta))  # the best multiple
    lower, upper = np.where(y > 0, 0.0, -np.inf), np.where(y > 0, np.inf, 0.0)

    def certify(beta: Floats, product: Floats) -> Certificate:
        return _evaluate(beta, product - ridge * beta, y, ridge, reach)

    svm = maximise_dual(with_ridge, y, lower, upper, beta, certify, tol)
    return replace(svm, newton_steps=svm.newton_steps + counters.newton_steps)


def _by_newton(
    K: FactoredMatrix, y: Floats, ridge: float, tol: float, start: Floats | None, counters: Counters
) -> Floats:
    """Return alpha near the optimum: the residuals of the losses at the minimum of the primal."""
    machine = PrimalMachine(squared_hinge(y), ridge, "newton", SHARE * tol, counters)
    z = machine(K, np.zeros(len(y)) if start is None else start * y)
    return np.abs(z.r) / ridge


def _start(y: Floats, start: Floats | None) -> Floats:
    """Return feasible ``alpha * y``: the alpha of either class are scaled to the smaller sum.

    All alpha of a class are equal where `start` leaves a class without any.
    """
    alpha = np.maximum(start, 0.0) if start is not None else np.zeros(len(y))
    totals = np.array([alpha[y > 0].sum(), alpha[y < 0].sum()])
    if totals.min() <= 0.0:
        alpha, totals = np.ones(len(y)), np.array([(y > 0).sum(), (y < 0).sum()], dtype=float)
    return np.asarray(alpha * np.where(y > 0, 1.0 / totals[0], -1.0 / totals[1]) * totals.min())


def _evaluate(beta: Floats, f: Floats, y: Floats, ridge: float, reach: Floats) -> Certificate:
    """Return the certificate at `beta`; ``f = K beta`` is without the ridge.

    Both values make up for their rounding errors, as those of the machine of the hinge loss do;
    `reach` are the roots of the diagonal with the ridge.
    """
    norm, scaled = float(beta @ f), reach * beta
    energy, bias = float(scaled @ scaled), best_bias(f, y)
    slack = 1.0 - y * (f + bias)
    unsure = EPS * (reach * math.sqrt(energy) + 1.0)
    hinge, most = np.maximum(0.0, slack), np.maximum(0.0, slack + unsure)
    of_losses = float((most - hinge) @ (most + hinge)) / (2.0 * ridge)
    rounding = 0.5 * form_rounding(norm, energy, len(y)) + of_losses
    primal = 0.5 * norm + float(hinge @ hinge) / (2.0 * ridge) + rounding
    ridged, total = norm + ridge * float(beta @ beta), float(np.abs(beta).sum())
    below = dual_rounding(total, ridged, energy, bias * float(beta.sum()), len(y))
    dual = total - 0.5 * ridged - below.total
    return Certificate(primal, dual, bias, rounding, below)


def best_bias(f: Floats, y: Floats) -> float:
    """Return the minimiser over b of ``sum_i max(0, 1 - y_i (f_i + b))^2``; both labels occur.

    Half its derivative, ``sum over active i of (f_i + b - y_i)``, is piecewise linear in b and
    does not decrease.  A positive point is active where b is below its kink ``y_i - f_i``, a
    negative one where b is above.  The root lies between the two neighbouring kinks at which the
    derivative changes sign.
    """
    kinks = y - f
    order = np.argsort(kinks)
    sorted_kinks, change = kinks[order], -y[order]  # +1: a negative point turns active
    negatives = change > 0
    # On the piece after the j-th kink: all positives not yet passed and all negatives passed.
    counts = (y > 0).sum() + np.cumsum(change)
    sums = kinks[y > 0].sum() + np.cumsum(np.where(negatives, sorted_kinks, -sorted_kinks))
    half_slopes = counts * sorted_kinks - sums
    first = int(np.searchsorted(half_slopes, 0.0, side="left"))
    if first == 0:  # only positives are active before the first kink
        return float(kinks[y > 0].mean())
    if counts[first - 1] == 0:
        return float(0.5 * (sorted_kinks[first - 1] + sorted_kinks[min(first, len(y) - 1)]))
    return float(sums[first - 1] / counts[first - 1])
