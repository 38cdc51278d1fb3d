"""Lists of names in error messages: of anything, cut after the first few, and of points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def first_of(items: Sequence[str], most: int, rest: str = "more") -> str:
    """Return up to `most` items as text, then the number of the others.

    Parameters
    ----------
    items : sequence of str
        Names, or names with details.
    most : int
        Number of items to show.
    rest : str
        Text after the number of the other items.

    Examples
    --------
    >>> first_of(["age", "size", "time"], 2)
    'age, size, … 1 more'
    >>> first_of(["age", "size"], 2)
    'age, size'
    """
    shown = list(items[:most])
    if len(items) > most:
        shown.append(f"… {len(items) - most} {rest}")
    return ", ".join(shown)


def point_names(
    rows: Iterable[int], ids: Sequence[str] | npt.NDArray[np.str_] | None = None, first: int = 0
) -> list[str]:
    """Return the ids of some points; their rows, counted from `first`, if the points have no ids.

    Examples
    --------
    >>> point_names([0, 2], ["p1", "p2", "p3"])
    ['p1', 'p3']
    >>> point_names([0, 2], first=10)
    ['row 10', 'row 12']
    """
    return [f"row {first + row}" if ids is None else str(ids[row]) for row in rows]
