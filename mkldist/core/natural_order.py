"""Order of names in which numbers count as numbers: ``m100`` before ``m1000``, after ``m20``."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(\d+)")


def natural_key(name: str) -> tuple[tuple[str, int, str], ...]:
    """Return a key by which names sort naturally.

    Examples
    --------
    >>> sorted(["m1000", "m300", "level", "m20"], key=natural_key)
    ['level', 'm20', 'm300', 'm1000']
    """
    texts = _NUMBER.split(name)[::2]
    numbers = [*_NUMBER.findall(name), ""]
    # The digits themselves tell m01 from m1, which are equal as numbers.
    return tuple((text, int(n or -1), n) for text, n in zip(texts, numbers, strict=True))


def natural_path_key(path: str) -> tuple[tuple[tuple[str, int, str], ...], ...]:
    """Return a key by which paths sort naturally, name by name."""
    return tuple(map(natural_key, path.split("/")))
