"""Space of the settings of a method that a search draws from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin

from mkldist.spec.model import Distribution

DIGITS = 6  # of a drawn value: tables can show it, and every machine's logarithm gives the same


@dataclass(frozen=True)
class Span:
    """Values between two bounds, both included.

    Parameters
    ----------
    low, high : float
        The bounds.
    log : bool
        True if values are uniform in their logarithm.
    whole : bool
        True for whole numbers.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    @classmethod
    def of(cls, distribution: Distribution, annotation: Any) -> Span:
        """Return the span of a distribution for a parameter of some type."""
        low, high = distribution.low, distribution.high
        whole = int in _members(annotation) and low == int(low) and high == int(high)
        return cls(low, high, distribution.scale == "log", whole)

    @property
    def ends(self) -> list[float]:
        """The bounds as values of the parameter."""
        return [self.exactly(self.low), self.exactly(self.high)]

    def exactly(self, value: float) -> float:
        """Return a value of the span near a number: whole, or rounded to six digits."""
        if not self.whole:
            value = float(f"{value:.{DIGITS}g}")
        value = min(max(value, self.low), self.high)
        return round(value) if self.whole else float(value)

    def at(self, share: float) -> float:
        """Return the quantile of a share in [0, 1).

        Examples
        --------
        >>> Span(0.01, 100, log=True).at(0.5), Span(1, 3, whole=True).at(0.99)
        (1.0, 3)
        """
        margin = 0.5 if self.whole else 0.0
        low, high = self.low - margin, self.high + margin
        if not self.log:
            return self.exactly(low + share * (high - low))
        return self.exactly(math.exp(math.log(low) + share * (math.log(high) - math.log(low))))


@dataclass(frozen=True)
class Space:
    """Settings of a method that differ in some parameters.

    Parameters
    ----------
    spans : mapping of str to Span
        Parameters with a distribution.
    choices : mapping of str to sequence
        Parameters with a list, of which each value is as likely.
    fixed : mapping of str to object
        Values of other parameters.
    """

    spans: Mapping[str, Span]
    choices: Mapping[str, list[Any]]
    fixed: Mapping[str, Any]

    @property
    def names(self) -> list[str]:
        """Names of the parameters that differ."""
        return [*self.spans, *self.choices]

    def at(self, shares: Mapping[str, float]) -> dict[str, Any]:
        """Return the values of the parameters that differ, at shares in [0, 1)."""
        values = {name: span.at(shares[name]) for name, span in self.spans.items()}
        picked = {name: some[int(shares[name] * len(some))] for name, some in self.choices.items()}
        return {**values, **picked}


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
