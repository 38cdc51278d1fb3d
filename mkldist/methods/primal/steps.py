"""PrimalMKL's two steps: z = (alpha, b) at fixed weights d, and d (lines 5 to 12 of Algorithm 1).

The plain algorithm and the one on a working set share them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.methods.primal.kernel_products import WeightColumns
from mkldist.methods.primal.params import PrimalMKLParams
from mkldist.methods.primal.value_model import ValueModel
from mkldist.methods.primal.weight_step import CHI_1, alternating_objective, nesterov
from mkldist.optim.descent import root_of_slope
from mkldist.optim.factored_matrix import Gram, moved
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.primal_newton import PrimalMachine, PrimalPoint, support_system

LARGEST_SHARE, LEAST_SHARE = 1e-3, 1e-7  # of the gap, left by the minimum of the model
SLOPE_SHARE = 0.5  # of the first slope's size, beyond which the end of a step is too far


@dataclass(frozen=True, eq=False)
class Iterate:
    """Weights, their kernel and the minimum over z for it.

    Parameters
    ----------
    d : (S,) float64
        Kernel weights.
    K : (n, n) float64 or FactoredMatrix
        ``sum_m d_m K_m``, or its operator.
    z : PrimalPoint
        The machine: coefficients, bias, residual and value.
    """

    d: Floats
    K: Gram
    z: PrimalPoint


def z_step(machine: PrimalMachine, now: Iterate, d: Floats, K: Gram, coupled: bool) -> Iterate:
    """Return the minimum over z at new weights (lines 5 to 10, repeated until z is optimal).

    Parameters
    ----------
    machine : PrimalMachine
        Solver of the machine.
    now : Iterate
        Last iterate.
    d : (S,) float64
        New weights.
    K : (n, n) float64 or FactoredMatrix
        ``sum_m d_m K_m``, or its operator.
    coupled : bool
        True to shorten the step from the last weights where its end lies too far; the paper's
        step needs no search, because it descends by itself.
    """
    end = Iterate(d, K, machine(K, now.z.alpha))
    return _searched(machine, now, end) if coupled else end


def d_step(
    machine: PrimalMachine,
    weights: WeightSet,
    now: Iterate,
    columns: WeightColumns,
    gap: float,
    params: PrimalMKLParams,
) -> Floats:
    """Return new weights (S,) (line 12): the paper's, or the minimum of the model of J.

    Parameters
    ----------
    machine : PrimalMachine
        The machine's loss and regularisation.
    weights : WeightSet
        The feasible set.
    now : Iterate
        Current iterate.
    columns : WeightColumns
        Variables of the step.
    gap : float
        Relative gap of the bounds.
    params : PrimalMKLParams
        Kind of step, and tolerance.
    """
    if params.coupled:
        x = _model_minimum(machine, weights, now, columns, gap)
    else:
        F = alternating_objective(columns.G, columns.q, machine.lam, machine.loss, now.z.b)
        x = nesterov(F, weights, columns.x, chi=min(CHI_1, params.tol))
    return feasible_weights(weights, columns.weights(x))


def feasible_weights(weights: WeightSet, d: Floats) -> Floats:
    """Return weights (S,) that rounding may have left outside the set, within it."""
    length = weights.length(d)
    feasible: Floats = d / length if weights.is_simplex or length > 1.0 else d
    return feasible


def _model_minimum(
    machine: PrimalMachine, weights: WeightSet, now: Iterate, columns: WeightColumns, gap: float
) -> Floats:
    """Return the weights of the columns that minimise the second-order model of J."""
    sv = machine.loss.active(now.z.r)
    if not sv.any():
        return columns.x
    lam = machine.lam
    f = (now.K @ now.z.r / lam)[sv]
    system = support_system(now.K, sv, machine.loss.ridge(lam, sv))
    model = ValueModel.of(system, lam, columns.G[sv], columns.q, f)
    # Convergence is quadratic only if the error of a minimum shrinks faster than the gap.
    share = min(max(gap, LEAST_SHARE), LARGEST_SHARE)
    return model.minimum(weights, columns.x, share)


def _searched(machine: PrimalMachine, now: Iterate, end: Iterate) -> Iterate:
    """Return the end of a step, or the point on the way where the slope of J vanishes.

    The slope along the change of K is ``-lam/2 a'(change)a`` at ``a = r / lam``.
    """
    change = moved(end.K, -1.0, now.K)

    def slope(z: PrimalPoint) -> float:
        return -0.5 / machine.lam * float(np.dot(z.r, change @ z.r))

    first, last = slope(now.z), slope(end.z)
    if first >= 0.0 or last <= SLOPE_SHARE * -first:
        return end
    z, length = now.z, 0.0

    def slope_at(step: float) -> float:
        nonlocal z, length
        z, length = machine(moved(now.K, step, change), z.alpha), step
        return slope(z)

    root_of_slope(slope_at, first, 1.0, end_slope=last, share=SLOPE_SHARE)
    d = now.d + length * (end.d - now.d)
    return Iterate(d, moved(now.K, length, change), z)
