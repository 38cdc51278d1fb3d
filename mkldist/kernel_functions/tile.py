"""Points on two sides of a tile of kernel values, and the bases of all pairs computed so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import Base


@dataclass(eq=False)
class Tile:
    """Points of the rows and columns of kernel values (r, c), restricted to a feature subset.

    Parameters
    ----------
    shape : (int, int)
        Numbers r and c of points.
    symmetric : bool
        True if both sides are the same points: bases are then exactly symmetric, and distances
        exactly 0 on the diagonal.
    left, right : (r, s) and (c, s) float64
        The points.  Functions on other objects, such as texts, get sequences of them.
    """

    shape: tuple[int, int]
    symmetric: bool = False
    left: Any = field(init=False)
    right: Any = field(init=False)
    _known: dict[Base, float] = field(default_factory=dict)
    _buffers: dict[Base, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, left: Any, right: Any, *, symmetric: bool = False) -> Tile:
        """Return a tile of some points."""
        tile = cls((len(left), len(right)), symmetric)
        tile.enter(left, right)
        return tile

    def enter(self, left: Any, right: Any) -> None:
        """Take other points in the same numbers, and forget the bases."""
        self.left, self.right = left, right
        self._known.clear()

    def base(self, base: Base, parameter: float = 0.0) -> Floats:
        """Return a base of all pairs, (r, c), not to be written to; the first call computes it.

        Of one base with several parameters, the array of the last is kept.
        """
        if base not in self._buffers:
            self._buffers[base] = np.empty(self.shape)
        out = self._buffers[base]
        if self._known.get(base) != parameter:
            self._compute(base, parameter, out)
            self._known[base] = parameter
        return out

    def _compute(self, base: Base, parameter: float, out: Floats) -> None:
        base.compute(self.left, self.right, parameter, out)
        if self.symmetric:
            mirror(out)
            if base.is_distance:
                np.fill_diagonal(out, 0.0)


def mirror(square: Floats) -> None:
    """Copy the upper triangle of a square matrix to the lower, in place."""
    upper = np.triu(square, 1)
    np.copyto(square, upper.T, where=np.tri(len(square), k=-1, dtype=bool))
