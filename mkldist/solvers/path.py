"""Regularisation paths: solvers that start from the solution at the last value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

Params = TypeVar("Params")


@dataclass(frozen=True)
class Path:
    """Regularisation path: a method starts each solver from the solution at the last value.

    Parameters
    ----------
    parameter : str
        Name of the parameter that varies along the path.
    rising : bool
        True if larger values regularise less, so that the path starts at the smallest.
    """

    parameter: str
    rising: bool

    def ordered(self, points: Iterable[Params]) -> list[Params]:
        """Return settings by decreasing regularisation."""
        return sorted(
            points, key=lambda p: float(getattr(p, self.parameter)), reverse=not self.rising
        )
