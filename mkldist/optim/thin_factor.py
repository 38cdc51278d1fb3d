"""Thin factors G (n, r) of matrices ``G G'``: arrays, or who has them."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np

from mkldist.core.arrays import Floats, Ints


class Elsewhere(Protocol):
    """A thin factor whose values may have to be read whenever they are asked for."""

    @property
    def values(self) -> Floats:
        """The factor, (n, r)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def on(self, points: Ints) -> Thin:
        """Return the rows of some points."""


Thin: TypeAlias = Floats | Elsewhere
"""A thin factor (n, r), or who has it."""


def values_of(factor: Thin) -> Floats:
    """Return a thin factor, in memory as long as somebody has what is returned."""
    return factor if isinstance(factor, np.ndarray) else factor.values
