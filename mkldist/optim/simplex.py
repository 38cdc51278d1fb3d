"""Euclidean projection onto the probability simplex."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats
from mkldist.compiled import compiled


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
    p = np.empty(len(z))
    write_projection(z, p)
    return p


@compiled(python_first=True)
def write_projection(z: Floats, p: Floats) -> None:
    """Write the projection of z onto the simplex to p, both (M,) float64."""
    size, total = len(z), 0.0
    for m in range(len(z)):
        p[m] = 1.0  # while m is in the support
        total += z[m]
    shift = (total - 1.0) / size
    while True:
        kept, total = 0, 0.0
        for m in range(len(z)):
            if p[m] > 0.0 and z[m] > shift:
                kept += 1
                total += z[m]
            else:
                p[m] = 0.0
        if kept == size or kept == 0:
            break
        size = kept
        shift = (total - 1.0) / size
    largest = 0
    for m in range(len(z)):
        if p[m] > 0.0:
            p[m] = z[m] - shift
        if z[m] > z[largest]:
            largest = m
    if kept == 0:  # rounding hides the differences of entries as large as these
        p[largest] = 1.0
