"""Texts that stand for finite numbers."""

from __future__ import annotations

import math


def finite_number(text: str) -> float | None:
    """Return the number that a text stands for; None if it is none, or not finite.

    Python's digits with underscores are texts here, as they are in other programs.

    Examples
    --------
    >>> finite_number(" -1.5e3 "), finite_number("1_000"), finite_number("inf")
    (-1500.0, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None
