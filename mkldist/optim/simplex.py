"""Euclidean projection onto the probability simplex."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats
from mkldist.compiled import compiled


@compiled
def project_onto_simplex(z: Floats) -> Floats:
    """Return ``argmin_p 1/2 ||p - z||^2  s.t.  p >= 0, sum(p) = 1``.

    Michelot's algorithm subtracts the mean excess of the entries that are still positive until
    none turns negative.  It ends after few sweeps because the support shrinks at each.

    Parameters
    ----------
    z : (M,) float64
        Point to project.

    Returns
    -------
    (M,) float64
        The projection; exactly zero off its support.
    """
    support = z > -np.inf
    size = len(z)
    shift = (z.sum() - 1.0) / size
    while True:
        kept, total = 0, 0.0
        for m in range(len(z)):
            if support[m]:
                if z[m] > shift:
                    kept += 1
                    total += z[m]
                else:
                    support[m] = False
        if kept == 0:  # rounding hides the differences of entries as large as these
            vertex = np.zeros_like(z)
            vertex[np.argmax(z)] = 1.0
            return vertex
        if kept == size:
            break
        size = kept
        shift = (total - 1.0) / size
    p = np.zeros_like(z)
    for m in range(len(z)):
        if support[m]:
            p[m] = z[m] - shift
    return p
