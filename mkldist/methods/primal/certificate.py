"""Bounds of the optimum of PrimalMKL, and the best point met."""

from __future__ import annotations

import math

from mkldist.arrays import Floats
from mkldist.machines.primal_newton import PrimalMachine, PrimalPoint
from mkldist.optim.duality_gap import relative_gap
from mkldist.optim.lp_ball import WeightSet

PATIENCE = 8  # iterations without a better bound after which only rounding is left
PROGRESS = 1e-13  # relative change of a bound that counts as better


class Bounds:
    """Bounds of the least F over some kernels, and the point of the upper one.

    Attributes
    ----------
    upper, lower : float
        The least F met, and the greatest dual value met.
    d : (M,) float64
        Kernel weights of the least F.
    z : PrimalPoint
        The machine of the least F.
    """

    d: Floats
    z: PrimalPoint

    def __init__(self) -> None:
        self.upper, self.lower = math.inf, -math.inf
        self._patience = PATIENCE

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    @property
    def stalled(self) -> bool:
        """True if the last iterations made no bound better."""
        return self._patience == 0

    def take(self, d: Floats, z: PrimalPoint, lower: float) -> None:
        """Take up a point and a dual value.

        Parameters
        ----------
        d : (M,) float64
            Kernel weights.
        z : PrimalPoint
            The machine for them.
        lower : float
            A dual value.
        """
        last_upper, last_lower = self.upper, self.lower
        if z.value < self.upper:
            self.upper, self.d, self.z = z.value, d, z
        self.lower = max(self.lower, lower)
        least = PROGRESS * abs(self.upper)
        better = last_upper - self.upper > least or self.lower - last_lower > least
        self._patience = PATIENCE if better else self._patience - 1

    def restart(self, lower: float) -> None:
        """Go on with more kernels, for which only `lower` is known to be a lower bound."""
        self.lower, self._patience = lower, PATIENCE


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
