"""Kernel weights of a fixed-point iteration, accelerated by Anderson's method on logarithms."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from mkldist.core.arrays import Floats

_RANK_TOLERANCE = 1e-10  # of the largest singular value, below which differences count as dependent


class Anderson:
    """The last points and residuals of a fixed-point iteration, `size` differences of them."""

    def __init__(self, size: int = 10) -> None:
        self._history: deque[tuple[Floats, Floats]] = deque(maxlen=size + 1)

    def __len__(self) -> int:
        return len(self._history)

    def forget(self) -> None:
        """Forget all points."""
        self._history.clear()

    def mix(self, point: Floats, image: Floats, scale: Floats) -> Floats:
        """Remember ``T(point) = image`` and return the accelerated next point, all (k,).

        `scale` are non-negative factors of the residual's entries in the norm to be minimised.  The
        image itself is returned as long as no other point is known.
        """
        residual = image - point
        self._history.append((point, residual))
        if len(self._history) == 1:
            return image
        points, residuals = (np.diff(part, axis=0) for part in zip(*self._history, strict=True))
        shares = np.linalg.lstsq((residuals * scale).T, residual * scale, rcond=_RANK_TOLERANCE)[0]
        mixed: Floats = image - shares @ (points + residuals)
        return mixed


ASCENT = 1e-13  # relative increase of the objective that is rounding, not ascent


class LogWeights:
    """Kernel weights of the current iterate, as logarithms `log` (M,); -inf stands for zero.

    ``admissible(mixed, plain)`` returns the admissible logarithms nearest to the mixed ones, given
    the method's `plain` update, from which the current ones were mixed.
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
        """True if the current weights may differ from the plain update."""
        return len(self._anderson) > 0

    def replace(self, log: Floats) -> None:
        """Continue from other logarithms, without the memory of earlier iterates."""
        self._anderson.forget()
        self.log = self.plain = log

    def update(self, plain: Floats, sensitivity: Floats) -> None:
        """Take an update (M,); mix it with the last ones if the same weights are zero as before.

        `sensitivity` (M,) are sizes of the objective's derivatives in the weights.  The mixing
        counts the error of each logarithm in proportion to weight times derivative, so that
        negligible weights do not disturb it.
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
