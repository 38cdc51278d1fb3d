"""Bounds of the optimum of block-norm MKL, from any dual point and the components at hand.

Primal, Eqs. (4), (42) and (43) of Suzuki & Tomioka 2011, over functions f_m and a bias b:

    min  sum_i l(y_i, sum_m f_m(x_i) + b) + sum_m psi(||f_m||)

Dual, with ``h(rho) = l*(-rho)``:

    max  -h(rho) - sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0

At the optimum every f_m is a multiple of ``K_m rho``.  So any rho and any norms ``||f_m||`` give a
predictor ``f_m = w_m K_m rho`` of one coefficient vector and M weights.  Its primal value and the
dual value of rho, made feasible as in Section 5, enclose the optimum.

A small strength lets rho be large only near the null spaces of the kernels, where rounding decides
``rho' K_m rho``.  Both values therefore take the largest norms that rounding permits
(:mod:`mkldist.optim.accuracy`), and the primal value adds what rounding may have taken off the
losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.core.counters import Counters
from mkldist.methods.block_norm.inner_objective import Iterate, roots
from mkldist.methods.block_norm.losses import Loss
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.optim.accuracy import EPS, form_rounding
from mkldist.solvers.base import Solution
from mkldist.solvers.progress import Bounds, Own, StopReason, Trace

NORM_SUM = "norm_sum"
"""Name under which a solution reports ``sum_m ||f_m||``."""

NOTHING_SCREENED = {"screened": 0.0, "partial_passes": 0.0}


class DualValue(NamedTuple):
    """Dual value of ``scale * rho``, where `scale` makes a point rho feasible."""

    value: float
    scale: float


def dual_value(loss: Loss, regularizer: Regularizer, rho: Floats, norms: Floats) -> DualValue:
    """Return the dual value of a point, scaled down where psi* is infinite.

    Parameters
    ----------
    loss, regularizer : Loss, Regularizer
        l and psi.
    rho : (n,) float64
        Point of the loss's domain with sum zero.
    norms : (S,) float64
        Dual norms ``||rho||_{K_m}``, or upper bounds of them, of the kernels that count.
    """
    largest, bound = float(norms.max(initial=0.0)), regularizer.largest_slope
    scale = bound / largest if largest > bound else 1.0
    value = -loss.conjugate(scale * rho)
    value -= float(regularizer.conjugate(scale * norms).sum())
    return DualValue(value, scale)


def kernel_scale(rho: Floats, norms: Floats) -> float:
    """Return the largest ``rho' K_m rho / ||rho||^2``, 1 if all are zero.

    Parameters
    ----------
    rho : (n,) float64
        Any point.
    norms : (M,) float64
        Its dual norms.
    """
    square = float(rho @ rho)
    largest = float(norms.max()) ** 2 / square if square > 0.0 else 0.0
    return largest if largest > 0.0 else 1.0


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictor ``sum_m weights[m] K_m coefficients + bias``.

    Parameters
    ----------
    weights : (M,) float64
        Weights w.
    coefficients : (n,) float64
        The dual point rho.
    bias : float
        Best bias for it.
    norm_sum : float
        Sum of the norms ``||f_m||``.
    """

    weights: Floats
    coefficients: Floats
    bias: float
    norm_sum: float = 0.0

    @property
    def total_weight(self) -> float:
        """Sum of the weights, or 1 if all are zero."""
        total = float(self.weights.sum())
        return total if total > 0 else 1.0

    @property
    def kernel_weights(self) -> Floats:
        """Weights that sum to one, unless all are zero, (M,)."""
        return self.weights / self.total_weight


def largest_norms(traces: Floats, squared: Floats, rho: Floats) -> Floats:
    """Return upper bounds of the dual norms of kernels of some traces (S,), with their rounding.

    Parameters are those of :meth:`BlockNormBounds.largest_norms`.
    """
    energy = traces * float(np.abs(rho).max()) ** 2
    return roots(squared + form_rounding(squared, energy, len(rho)))


class BlockNormBounds(Bounds[Predictor]):
    """Least primal value met, greatest dual value met, and the points that attain them.

    Parameters
    ----------
    loss, regularizer : Loss, Regularizer
        l and psi.
    traces : (M,) float64
        Traces of the kernels, or upper bounds of them.

    Attributes
    ----------
    best : Predictor
        Predictor of the least primal value; at first a bias alone.
    at : Predictor
        Predictor of the last iterate, whose values are `own`.
    lower : float
        Greatest dual value; at first 0, for losses and regularisers are not negative.
    dual_point : (n,) float64
        Feasible rho that attains it; at first 0.
    """

    def __init__(self, loss: Loss, regularizer: Regularizer, traces: Floats) -> None:
        self._loss, self._regularizer, self._traces = loss, regularizer, traces
        zero = np.zeros(len(loss.y))
        bias = loss.best_bias(zero)
        constant = Predictor(np.zeros(len(traces)), zero, bias)
        super().__init__(constant, lower=0.0, upper=loss.value(zero + bias), dual_point=zero)
        self.at = constant

    def largest_norms(self, squared: Floats, rho: Floats, kernels: Ints | slice) -> Floats:
        """Return upper bounds of the dual norms of some kernels, with their rounding.

        Parameters
        ----------
        squared : (S,) float64
            ``rho' K_m rho`` as computed.
        rho : (n,) float64
            The point.
        kernels : (S,) intp or slice
            The kernels.
        """
        return largest_norms(self._traces[kernels], squared, rho)

    def restricted_lower(self, iterate: Iterate, rho: Floats) -> float:
        """Return the dual value of a feasible point near an iterate on the kernels at hand."""
        norms = self.largest_norms(iterate.products @ iterate.rho, iterate.rho, iterate.kernels)
        return dual_value(self._loss, self._regularizer, rho, norms).value

    def take_primal(self, iterate: Iterate) -> None:
        """Take the primal value of ``f_m = w_m K_m rho``, with the norms of the components."""
        squared, rho, kernels = iterate.products @ iterate.rho, iterate.rho, iterate.kernels
        lengths, norms = roots(squared), iterate.norms
        w = np.divide(norms, lengths, out=np.zeros_like(norms), where=lengths > 0.0)
        f = w @ iterate.products
        bias = self._loss.best_bias(f)
        largest = self.largest_norms(squared, rho, kernels)
        value = self._loss.value(f + bias) + float(self._regularizer.value(w * largest).sum())
        # sum_i sqrt(K_ii) ||sqrt(K_jj) rho_j||, as for support vector machines, of sum_m w_m K_m
        largest_rho = max(float(np.abs(rho).max()), iterate.largest)
        reach = math.sqrt(len(rho)) * float(w @ self._traces[kernels]) * largest_rho
        value += EPS * reach * self._loss.steepest(f + bias)
        weights = np.zeros_like(self.best.weights)
        weights[kernels] = w
        self.at, self.own = Predictor(weights, rho, bias, float(w @ lengths)), Own(value)
        self.improve_upper(self.at, value)

    def take_dual(self, rho: Floats, norms: Floats) -> DualValue:
        """Take the dual value of a point and return it.

        Parameters
        ----------
        rho : (n,) float64
            Point of the loss's domain with sum zero.
        norms : (S,) float64
            Its dual norms, or upper bounds of them, of all kernels that may be active.
        """
        found = dual_value(self._loss, self._regularizer, rho, norms)
        self.own = Own(self.own.objective, found.value)
        self.improve_lower(found.value, found.scale * rho)
        return found

    def solution(
        self,
        stop: StopReason,
        counters: Counters,
        trace: Trace,
        screening: dict[str, float] | None = None,
        state: object = None,
    ) -> Solution:
        """Return the best predictor with its certificate.

        Parameters
        ----------
        stop, counters, trace, state
            As in :class:`~mkldist.solvers.base.Solution`.
        screening : dict of str to float, optional
            Report of the screened kernels; by default none is screened.
        """
        best = self.best
        return Solution(
            kernel_weights=best.kernel_weights,
            coefficients=best.total_weight * best.coefficients,
            bias=best.bias + self._loss.offset,
            dual_variables=self.dual_point,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=counters,
            trace=trace.arrays(),
            extra={NORM_SUM: best.norm_sum} | (screening or NOTHING_SCREENED),
            state=state,
        )
