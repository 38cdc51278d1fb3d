"""Regularisation paths: solvers that start from the solution at the last value."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from mkldist.gram.requests import Request

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
    renewed : callable, optional
        Takes a problem and a state, and asks kernels that have changed since for what the state
        holds of them; without it, a solver on such kernels starts anew.
    """

    parameter: str
    rising: bool
    renewed: Callable[[Any, Any], Generator[Request, Any, Any]] | None = None

    def ordered(self, points: Iterable[Params]) -> list[Params]:
        """Return settings by decreasing regularisation."""
        return sorted(
            points, key=lambda p: float(getattr(p, self.parameter)), reverse=not self.rising
        )
