"""Successive halving: the trials that go on to the next rung."""

from __future__ import annotations

import math
from collections.abc import Mapping


def survivors(losses: Mapping[int, float], factor: int) -> list[int]:
    """Return the trials that go on: those of least loss, of equal ones the first.

    Parameters
    ----------
    losses : mapping of int to float
        Loss of each trial of a rung by its number; infinite if it failed: it never goes on.
    factor : int
        One of so many goes on, rounded up.

    Examples
    --------
    >>> survivors({0: 0.2, 1: 0.1, 2: 0.3, 3: 0.1}, 2)
    [1, 3]
    """
    best = sorted(losses, key=lambda trial: (losses[trial], trial))
    kept = best[: -(-len(losses) // factor)]
    return sorted(trial for trial in kept if math.isfinite(losses[trial]))
