"""The exponential of kernel functions, which is zero where it is too small to count.

A kernel of distances is 1 on the diagonal, beside which 1e-35 is lost in rounding many times over.
Values that are far smaller are dear: 1e-40 in float32, and products of 1e-300 with anything small,
are subnormal numbers, with which processors take up to a hundred times as long.  One narrow kernel
then costs as much as thirty others.  A new point so far from all others has the predictor's
intercept as its value.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats

VANISHES_AT = -80.0
"""Argument up to which the exponential, less than 2e-35, counts as zero."""


def exponential(arguments: Floats) -> None:
    """Turn non-positive arguments into their exponentials, in place; zero up to `VANISHES_AT`."""
    vanishing = arguments <= VANISHES_AT
    np.exp(arguments, out=arguments)
    arguments[vanishing] = 0.0
