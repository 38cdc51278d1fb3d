"""Normalisations of kernels on some points: their divisors, and the cost of computing these."""

from __future__ import annotations

from collections.abc import Sequence

from mkldist.errors import SpecError

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


def check_uncentred(normalisations: Sequence[str], where: str) -> None:
    """Refuse to centre the kernels of a bank in which some points lack some kernels.

    Parameters
    ----------
    normalisations : sequence of str
        The bank's normalisations.
    where : str
        The place to name in a message.

    Raises
    ------
    mkldist.errors.SpecError
        If one of them is ``centre``.
    """
    if "centre" in normalisations:
        raise SpecError(
            where,
            "'centre' for kernels that some points lack",
            "'trace', 'variance', 'cosine' or 'none'",
            "'variance' divides by the variance of the points that have a kernel",
        )
