"""Solvers that start from a solution: at the last value of a path, or on other kernels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from mkldist.gram.requests import Request

Params = TypeVar("Params")

PATH_OF_C = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Values of C that suit kernels of variance 1, on any number of points."""


@dataclass(frozen=True)
class Renewal:
    """How a method starts from a solution on kernels that have changed since.

    Parameters
    ----------
    renewed : callable
        Takes a problem and a state, asks the kernels for what the state holds of them, and returns
        the state that has this.
    by_points : bool
        True if few dual variables change then, so that a solver may go on with kernels themselves.
    """

    renewed: Callable[[Any, Any], Generator[Request, Any, Any]]
    by_points: bool = False


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
