"""Bounds of a method's optimum, with the best iterate met."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from mkldist.arrays import Floats
from mkldist.machines.svm import SvmSolution
from mkldist.optim.duality_gap import relative_gap


@dataclass(eq=False)
class Bounds:
    """Upper and lower bound of a minimum over kernel weights, and where the upper one was met.

    Parameters
    ----------
    upper : float
        Least value of the objective met.
    lower : float
        Greatest lower bound met.
    weights : (M,) float64
        Kernel weights at which the objective is `upper`.
    svm : SvmSolution
        The machine, or the machines side by side, at these weights.
    """

    upper: float = math.inf
    lower: float = -math.inf
    weights: Floats = field(default_factory=lambda: np.empty(0))
    svm: SvmSolution = field(default_factory=SvmSolution.none)

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def improve_upper(self, value: float, weights: Floats, svm: SvmSolution) -> bool:
        """Keep an iterate if its value is below all earlier ones; return True if it is.

        Parameters
        ----------
        value : float
            Objective at the iterate.
        weights : (M,) float64
            Kernel weights there.
        svm : SvmSolution
            The machine there.
        """
        better = value < self.upper
        if better:
            self.upper, self.weights, self.svm = value, weights, svm
        return better

    def improve_lower(self, value: float) -> bool:
        """Keep a lower bound if it is above all earlier ones; return True if it is."""
        better = value > self.lower
        if better:
            self.lower = value
        return better
