"""One colour and mark for each method, which colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# Okabe & Ito (2008) without black and yellow, which vanish on a page; Tol's olive, and a purple.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b3294", "#999933")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES = ("-", "--", ":")


class Look(NamedTuple):
    """Colour, marker and line of a method in every picture."""

    colour: str
    marker: str
    line: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each name.

    Up to eight names differ in colour and marker.  Further ones repeat the colours with another
    line and the next marker.
    """
    found = {}
    for number, name in enumerate(dict.fromkeys(names)):
        lap, place = divmod(number, len(COLOURS))
        marker = MARKERS[(place + lap) % len(MARKERS)]
        found[name] = Look(COLOURS[place], marker, DASHES[lap % len(DASHES)])
    return found
