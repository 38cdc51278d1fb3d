"""The exponential of kernel functions, which is zero where it is too small to count.

A kernel of distances is 1 on the diagonal, and 1e-35 added to it is lost in rounding many times
over.  Yet such values are dear: their products, and themselves in float32, are subnormal numbers,
with which processors take up to a hundred times as long.  One narrow kernel then costs as much as
thirty others.
"""

from __future__ import annotations

import numpy as np

from mkldist.arrays import Floats

VANISHES_AT = -80.0
"""Argument up to which the exponential, less than 2e-35, counts as zero."""


def exponential(arguments: Floats) -> None:
    """Turn non-positive arguments into their exponentials, in place."""
    vanishing = arguments <= VANISHES_AT
    np.exp(arguments, out=arguments)
    arguments[vanishing] = 0.0
