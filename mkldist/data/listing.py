"""Lists of names in error messages, cut after the first few."""

from __future__ import annotations

from collections.abc import Sequence


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
