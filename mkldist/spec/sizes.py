"""Refusal of lists that this machine could not hold, before they are made."""

from __future__ import annotations

from mkldist.core.memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory
from mkldist.errors import SpecError

COUNTABLE = 10**15
"""Numbers above it are not written out: they may have thousands of digits."""


def check_fits(
    number: int,
    bytes_each: float,
    where: str,
    noun: str,
    hint: str = "",
    *,
    most: int | None = None,
) -> None:
    """Raise unless so many things fit into half of this machine's memory.

    Parameters
    ----------
    number : int
        How many there are.
    bytes_each : float
        Bytes of each, at most about.
    where : str
        Place in the sweep file.
    noun : str
        What they are, in the plural.
    hint : str
        What to do about it.
    most : int, optional
        As many as there may be on any machine.

    Raises
    ------
    mkldist.errors.SpecError
        With the number, and the memory that they need.
    """
    limit = SHARE_OF_MEMORY * physical_memory()
    too_many = most is not None and number > most
    if not too_many and number <= limit / bytes_each:
        return
    if number > COUNTABLE:
        found = f"more than {COUNTABLE:,} {noun}"
    else:
        found = f"{number:,} {noun}, which need {number * bytes_each / GIB:,.1f} GiB of memory"
    expected = f"at most {most:,}" if too_many else at_most_half(limit)
    raise SpecError(where, found, expected, hint)
