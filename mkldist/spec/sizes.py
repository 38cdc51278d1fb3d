"""Refusal of lists that this machine could not hold, before they are made."""

from __future__ import annotations

from mkldist.errors import SpecError
from mkldist.machine_memory import GIB, SHARE_OF_MEMORY, physical_memory


def check_fits(number: int, bytes_each: float, where: str, noun: str, hint: str = "") -> None:
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

    Raises
    ------
    mkldist.errors.SpecError
        With the number, and the memory that they need.
    """
    limit = SHARE_OF_MEMORY * physical_memory()
    if number * bytes_each > limit:
        raise SpecError(
            where,
            f"{number:,} {noun}, which need {number * bytes_each / GIB:,.1f} GiB of memory",
            f"at most {limit / GIB:.1f} GiB, half of this machine's memory",
            hint,
        )
