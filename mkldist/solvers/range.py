"""Range of parameters: numbers whose squares, times those of kernels, float64 still holds."""

from __future__ import annotations

import math
from typing import Any

LEAST, LARGEST = 1e-100, 1e100


def within_range(value: Any) -> Any:
    """Return the value of a parameter; refuse numbers so large or small that they would overflow.

    Zero and, where a parameter takes it, infinity pass.

    Raises
    ------
    ValueError
        For a number outside 1e-100 to 1e100.

    Examples
    --------
    >>> within_range(1e6)
    1000000.0
    """
    if not isinstance(value, float) or value == 0.0 or not math.isfinite(value):
        return value
    if not LEAST <= abs(value) <= LARGEST:
        raise ValueError(
            f"found {value:g}; expected a size from {LEAST:g} to {LARGEST:g}, or scale the kernels"
        )
    return value
