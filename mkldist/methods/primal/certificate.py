"""Dual values of PrimalMKL, and the best point met."""

from __future__ import annotations

from typing import NamedTuple

from mkldist.arrays import Floats
from mkldist.machines.primal_newton import PrimalMachine, PrimalPoint
from mkldist.optim.lp_ball import WeightSet

PATIENCE = 8  # iterations without a better bound after which only rounding is left
PROGRESS = 1e-13  # relative change of a bound that counts as better


class Best(NamedTuple):
    """Kernel weights (M,) of the least F, and the machine for them."""

    d: Floats
    z: PrimalPoint


def dual_value(machine: PrimalMachine, weights: WeightSet, r: Floats, b: float, q: Floats) -> float:
    """Return the dual value of a feasible residual: a lower bound of J for all weights.

    Parameters
    ----------
    machine : PrimalMachine
        The machine's loss and regularisation.
    weights : WeightSet
        The feasible set.
    r : (n,) float64
        Residual that sums to the slope of the loss.
    b : float
        A bias near the optimal one; it only saves digits.
    q : (M,) float64
        ``a'K_m a`` at ``a = r / lam``.
    """
    return machine.loss.dual_value(r, b) - 0.5 * machine.lam * weights.largest(q)
