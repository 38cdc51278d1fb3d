"""TOML texts, without those of which a parser makes no end."""

from __future__ import annotations

import re
import tomllib
from typing import Any

MOST_PARTS = 100  # of a key; the time that TOML's parser takes grows with their square
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:["']?[\w-]+["']?[ \t]*\.[ \t]*){{{MOST_PARTS}}}""")


class TooLongError(ValueError):
    """Raised for a text of a key, a number or a depth beyond all use.

    Parameters
    ----------
    found, expected : str
        What the text has, and what was expected; empty if that goes without saying.
    """

    def __init__(self, found: str, expected: str = "") -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text.

    Raises
    ------
    TooLongError
        For a key of many parts, values too deep in each other, or a number of too many digits.
    tomllib.TOMLDecodeError
        If it is not TOML.

    Examples
    --------
    >>> parsed_toml("a = [1, 2]")
    {'a': [1, 2]}
    """
    if _LONG_KEY.search(text):
        raise TooLongError(f"a key of over {MOST_PARTS} parts", "keys such as splits.folds")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise TooLongError("lists or tables in each other too deep to read") from None
    except ValueError:  # Python bounds the digits of whole numbers
        raise TooLongError(
            "a whole number of more than 4000 digits", "a number that a computer holds"
        ) from None
