"""Decision functions at points that are given by their kernel values."""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floating, Floats
from mkldist.errors import GramError


def values_on_grams(
    grams: Floating,
    kernel_weights: Floats,
    coefficients: Floats,
    kernel_coefficients: Floats | None,
    bias: float | Floats,
) -> Floats:
    """Return ``sum_m kernel_weights[m] K_m coefficients + bias``, (n_test,) or (n_test, k).

    Parameters
    ----------
    grams : (M, n_test, n) float array
        Kernel values between test and training points.
    kernel_weights : (M,) float64
        Kernel weights.
    coefficients : (n,) or (n, k) float64
        Expansion coefficients that all kernels share.
    kernel_coefficients : (S, n) or (S, n, k) float64, or None
        Those of each kernel of non-zero weight, where they differ.
    bias : float or (k,) float64
        Intercepts.

    Raises
    ------
    mkldist.errors.GramError
        For an array of another shape.
    """
    expected = (len(kernel_weights), len(coefficients))
    if grams.ndim != 3 or (grams.shape[0], grams.shape[2]) != expected:
        raise GramError(
            "grams_test",
            f"shape {grams.shape}",
            f"(M, n_test, n) = ({expected[0]}, n_test, {expected[1]})",
        )
    decision = np.full((grams.shape[1], *np.shape(bias)), bias, dtype=np.float64)
    for s, m in enumerate(np.flatnonzero(kernel_weights)):
        own = coefficients if kernel_coefficients is None else kernel_coefficients[s]
        decision += kernel_weights[m] * (grams[m] @ own)
    return decision
