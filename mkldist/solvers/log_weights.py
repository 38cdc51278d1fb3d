"""Kernel weights of a fixed-point iteration, by their logarithms, mixed by Anderson's method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mkldist.arrays import Floats
from mkldist.optim.anderson import Anderson

ASCENT = 1e-13  # relative increase of the objective that is rounding, not ascent


class LogWeights:
    """The weights of the iterate.

    Parameters
    ----------
    log : (M,) float64
        Logarithms of the first weights; -inf stands for a weight of zero.
    admissible : callable
        Returns the nearest logarithms that may be taken, of mixed ones and of the plain update.
    """

    def __init__(self, log: Floats, admissible: Callable[[Floats, Floats], Floats]) -> None:
        self.log = self.plain = log
        self._admissible, self._anderson = admissible, Anderson()

    @property
    def d(self) -> Floats:
        """Kernel weights (M,)."""
        weights: Floats = np.exp(self.log)
        return weights

    @property
    def mixed(self) -> bool:
        """Whether the iterate may be other than the plain update of the one before."""
        return len(self._anderson) > 0

    def replace(self, log: Floats) -> None:
        """Go on from other logarithms, and forget what came before."""
        self._anderson.forget()
        self.log = self.plain = log

    def update(self, plain: Floats, sensitivity: Floats) -> None:
        """Take an update, mixed with the last ones as long as no weight comes or goes.

        Parameters
        ----------
        plain : (M,) float64
            What the method's map makes of the logarithms.
        sensitivity : (M,) float64
            Derivatives by the weights, of which the logarithm of each matters by its weight times
            that; the logarithms of negligible ones may do as they like.
        """
        seen = np.isfinite(plain)
        if not np.array_equal(seen, np.isfinite(self.log)):
            self.replace(plain)
            return
        self.plain = plain
        mixed = np.full(len(plain), -np.inf)
        scale = np.sqrt(self.d[seen] * sensitivity[seen])
        mixed[seen] = self._anderson.mix(self.log[seen], plain[seen], scale)
        self.log = self._admissible(mixed, plain)
