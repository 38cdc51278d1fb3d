"""Anderson's acceleration of a fixed-point iteration (Walker & Ni 2011, Algorithm AA).

Of the last few points x with residuals ``r = T(x) - x`` it forms the affine combination whose
residual is smallest.  The next point is the same combination of the images T(x).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from mkldist.arrays import Floats

_RANK_TOLERANCE = 1e-10  # of the largest singular value, below which differences count as dependent


class Anderson:
    """The last points and residuals of a fixed-point iteration.

    Parameters
    ----------
    size : int
        Number of differences remembered.
    """

    def __init__(self, size: int = 10) -> None:
        self._history: deque[tuple[Floats, Floats]] = deque(maxlen=size + 1)

    def __len__(self) -> int:
        return len(self._history)

    def forget(self) -> None:
        """Forget all points."""
        self._history.clear()

    def mix(self, point: Floats, image: Floats, scale: Floats) -> Floats:
        """Remember ``T(point) = image`` and return the accelerated next point.

        Parameters
        ----------
        point, image : (k,) float64
            Point x, and the map's value T(x) there.
        scale : (k,) float64
            Non-negative factors of the residual's entries in the norm to be minimised.

        Returns
        -------
        (k,) float64
            `image` itself as long as no other point is remembered.
        """
        residual = image - point
        self._history.append((point, residual))
        if len(self._history) == 1:
            return image
        points, residuals = (np.diff(part, axis=0) for part in zip(*self._history, strict=True))
        shares = np.linalg.lstsq((residuals * scale).T, residual * scale, rcond=_RANK_TOLERANCE)[0]
        mixed: Floats = image - shares @ (points + residuals)
        return mixed
