"""Solvers that start from a solution: at the last value of a path, or on other kernels."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from mkldist.bank.requests import Request

PATH_OF_C = (0.3, 1.0, 3.0)
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
