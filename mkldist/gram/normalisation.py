"""What kernels are divided by to normalise them on some points, and what it takes to know that."""

from __future__ import annotations

from collections.abc import Sequence

NORMALISATIONS = ("trace", "centre", "variance")


def divisors(normalisations: Sequence[str]) -> list[tuple[str, bool]]:
    """Return each trace or variance, in order, and whether it is that of centred kernels.

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
    """Return whether entries off the diagonal decide a factor.

    Examples
    --------
    >>> takes_pass(["trace", "centre"]), takes_pass(["variance"])
    (False, True)
    """
    return any(centred for _, centred in divisors(normalisations))
