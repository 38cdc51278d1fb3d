"""Limit on the wall time of one call of a sweep."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from mkldist.errors import OutOfTimeError, SpecError


def parse_wall_time(text: str | None) -> float:
    """Return the seconds that words such as ``90m`` stand for; infinity for None.

    Raises
    ------
    mkldist.errors.SpecError
        For anything else.
    """
    if text is None:
        return math.inf
    from dask.utils import parse_timedelta

    try:
        seconds = float(parse_timedelta(text, default=False))
    except (ValueError, KeyError, IndexError, OverflowError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise SpecError("wall_time", f"{text!r}", "a time such as '90m' or '2h'")
    return seconds


@dataclass(frozen=True)
class WallTime:
    """Time that a call of a sweep may take.

    Parameters
    ----------
    words : str
        The time, as the sweep file gives it.
    end : float
        When it is over, by :func:`time.monotonic`.
    """

    words: str = ""
    end: float = math.inf

    @classmethod
    def from_now(cls, words: str | None) -> WallTime:
        """Return the time that begins now; one without end for None."""
        return cls(words or "", time.monotonic() + parse_wall_time(words))

    def check(self) -> None:
        """Raise if the time is over.

        Raises
        ------
        mkldist.errors.OutOfTimeError
            Without words on what is recorded, which the sweep adds.
        """
        if time.monotonic() >= self.end:
            raise OutOfTimeError("wall_time", f"{self.words} to be over")
