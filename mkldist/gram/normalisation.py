"""Normalisations of kernels on some points: their divisors, and the cost of computing these."""

from __future__ import annotations

from collections.abc import Sequence

NORMALISATIONS = ("trace", "centre", "variance")


def divisors(normalisations: Sequence[str]) -> list[tuple[str, bool]]:
    """Return each trace or variance in order, with True if it is that of centred kernels.

    Examples
    --------
    >>> divisors(["trace", "centre", "trace"])
    [('trace', False), ('trace', True)]
    """
    return [
        (name, name == "variance" or "centre" in normalisations[:place])
        for place, name in enumerate(normalisations)
        if name in ("trace", "variance")
    ]


def takes_pass(normalisations: Sequence[str]) -> bool:
    """Return True if a divisor depends on entries off the diagonal.

    Examples
    --------
    >>> takes_pass(["trace", "centre"]), takes_pass(["variance"])
    (False, True)
    """
    return any(centred for _, centred in divisors(normalisations))
