"""Texts that stand for finite numbers."""

from __future__ import annotations

import math
import re

_WHOLE = re.compile(r"([+-]?)0*([0-9]{1,309})(?:\.0*)?")  # no finite float64 has more digits


def finite_number(text: str) -> float | None:
    """Return the number that a text stands for; None if it is none, or not finite.

    Python's digits with underscores are texts here, as they are in other programs.

    Examples
    --------
    >>> finite_number(" -1.5e3 "), finite_number("1_000"), finite_number("inf")
    (-1500.0, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def number_name(number: float) -> str:
    """Return the one name of a finite number; a whole one has no point.

    Examples
    --------
    >>> number_name(1.0), number_name(2**53 + 1), number_name(0.50)
    ('1', '9007199254740993', '0.5')
    """
    if isinstance(number, int) or number.is_integer():
        return str(int(number))
    return repr(number)


def name_of_number(text: str) -> str | None:
    """Return the one name of the number that a text stands for; None if it is no finite number.

    Whole numbers keep all of their digits, more than float64 has.

    Examples
    --------
    >>> name_of_number("+1.0"), name_of_number("9007199254740993"), name_of_number("one")
    ('1', '9007199254740993', None)
    """
    number = finite_number(text)
    if number is None:
        return None
    whole = _WHOLE.fullmatch(text.strip())
    return number_name(int(whole[1] + whole[2]) if whole else number)


def number_of_name(name: str) -> int | float:
    """Return the number that :func:`number_name` gave a name."""
    try:
        return int(name)
    except ValueError:
        return float(name)
