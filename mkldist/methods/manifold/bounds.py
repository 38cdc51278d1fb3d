"""Bounds of an optimum, and the point of the upper one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from mkldist.optim.duality_gap import relative_gap

Point = TypeVar("Point")


@dataclass
class Bounds(Generic[Point]):
    """The best bounds met so far, of an optimum that is not negative.

    Parameters
    ----------
    best : object
        The point of the least value.
    upper, lower : float
        The least value met, and the greatest lower bound met.
    idle : int
        Iterations since a bound became better.
    """

    best: Point
    upper: float = math.inf
    lower: float = 0.0
    idle: int = 0

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def take(self, point: Point, value: float, lower: float) -> None:
        """Take up a point, its value and a lower bound."""
        self.idle += 1
        if lower > self.lower:
            self.lower, self.idle = lower, 0
        if value < self.upper:
            self.upper, self.best, self.idle = value, point, 0
