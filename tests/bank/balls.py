"""Squared radii of smallest enclosing balls by a conic solver."""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse

_KNOWN: dict[bytes, float] = {}


def squared_radii(grams: np.ndarray) -> np.ndarray:
    """Return the squared radii of (M, n, n) Gram matrices, (M,)."""
    return np.array([squared_radius(K) for K in grams])


def squared_radius(K: np.ndarray) -> float:
    """Return max diag(K)'b - b'Kb over the simplex."""
    name = K.tobytes()
    if name not in _KNOWN:
        _KNOWN[name] = _solved(K)
    return _KNOWN[name]


def _solved(K: np.ndarray) -> float:
    n = len(K)
    centring = np.eye(n) - 1.0 / n
    centred = centring @ K @ centring
    scale = np.trace(centred) / n
    if scale <= 1e-14 * max(np.trace(K), 1e-300):
        return 0.0
    centred = centred / scale
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(2.0 * centred)),
        -np.diag(centred),
        sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)])),
        np.concatenate([[1.0], np.zeros(n)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    b = np.maximum(solution.x, 0.0)
    b /= b.sum()
    return scale * float(np.diag(centred) @ b - b @ centred @ b)
