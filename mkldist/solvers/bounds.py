"""Bounds of an optimum, and the point of the upper one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.optim.duality_gap import relative_gap

Point = TypeVar("Point")


class Own(NamedTuple):
    """Bounds that an iteration found at its own point, better than the known ones or not.

    Parameters
    ----------
    objective : float
        Primal value.
    dual_objective : float
        Lower bound of the optimum; NaN where the iteration visited only some of the kernels.
    """

    objective: float
    dual_objective: float = math.nan


NOT_MET = Own(math.nan)
"""Before the first iteration."""


class DualBound(NamedTuple):
    """A lower bound of an optimum, and the dual point that certifies it.

    Parameters
    ----------
    value : float
        The bound.
    point : array
        The point, as :attr:`mkldist.solvers.base.Solution.dual_variables`.
    """

    value: float
    point: Floats


@dataclass
class Bounds(Generic[Point]):
    """The best bounds met so far.

    Parameters
    ----------
    best : object
        Point of the least value.
    lower : float
        The greatest lower bound met.
    upper : float
        The least value met.
    progress : float
        Relative change of a bound beyond which it counts as better.
    idle : int
        Iterations since a bound became better.
    own : Own
        What the last iteration found at its own point.
    dual_point : array
        Dual point that certifies the lower bound.
    """

    best: Point
    lower: float = -math.inf
    upper: float = math.inf
    progress: float = 0.0
    idle: int = 0
    own: Own = NOT_MET
    dual_point: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    @property
    def width(self) -> float:
        """Distance of the bounds."""
        return self.upper - self.lower

    def improve_upper(self, point: Point, value: float) -> bool:
        """Keep a point whose value is the least so far; return True if it is."""
        better = value < self.upper
        if better:
            self.upper, self.best = value, point
        return better

    def improve_lower(self, lower: float, dual_point: Floats) -> bool:
        """Keep a lower bound, and the dual point that certifies it, if it is the greatest so far.

        Return True if it is.
        """
        better = lower > self.lower
        if better:
            self.lower, self.dual_point = lower, dual_point
        return better

    def take(self, point: Point, value: float, lower: float, dual_point: Floats) -> None:
        """Take up a point, its value and a dual point's lower bound of the optimum."""
        last_upper, last_lower, self.own = self.upper, self.lower, Own(value, lower)
        self.improve_upper(point, value)
        self.improve_lower(lower, dual_point)
        least = self.progress * abs(self.upper)
        better = last_upper - self.upper > least or self.lower - last_lower > least
        self.idle = 0 if better else self.idle + 1

    def restart(self, lower: float) -> None:
        """Continue with a larger problem, for which only `lower` is a lower bound."""
        self.lower, self.idle = lower, 0
