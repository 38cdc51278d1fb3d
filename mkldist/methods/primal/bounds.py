"""Bounds of an optimum, and the point of the upper one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from mkldist.optim.duality_gap import relative_gap

Point = TypeVar("Point")


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
    """

    best: Point
    lower: float = -math.inf
    upper: float = math.inf
    progress: float = 0.0
    idle: int = 0

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def take(self, point: Point, value: float, lower: float) -> None:
        """Take up a point, its value and a lower bound of the optimum."""
        last_upper, last_lower = self.upper, self.lower
        if value < self.upper:
            self.upper, self.best = value, point
        self.lower = max(self.lower, lower)
        least = self.progress * abs(self.upper)
        better = last_upper - self.upper > least or self.lower - last_lower > least
        self.idle = 0 if better else self.idle + 1

    def restart(self, lower: float) -> None:
        """Continue with a larger problem, for which only `lower` is a lower bound."""
        self.lower, self.idle = lower, 0
