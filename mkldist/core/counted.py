"""A number with its noun, in the singular or the plural, for messages."""

from __future__ import annotations


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Return a number and a noun in words.

    Parameters
    ----------
    count : int
        The number.
    noun : str
        The noun for one.
    nouns : str
        The noun for other numbers; by default with an s.

    Examples
    --------
    >>> counted(1, "field"), counted(0, "field"), counted(2, "Gram matrix", "Gram matrices")
    ('1 field', '0 fields', '2 Gram matrices')
    """
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"
