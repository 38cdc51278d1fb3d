"""TOML texts and values: read, and spelled for messages and files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

MOST_PARTS = 100  # of a key; the time that TOML's parser takes grows with their square
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:["']?[\w-]+["']?[ \t]*\.[ \t]*){{{MOST_PARTS}}}""")


class TooLongError(ValueError):
    """Raised for a text of a key, a number or a depth beyond all use."""

    def __init__(self, found: str, expected: str = "") -> None:
        super().__init__(found)
        self.found, self.expected = found, expected


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML text.

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


LONGEST = 60


def spelled(value: Any, longest: int | None = LONGEST) -> str:
    """Return a value as TOML spells it, shortened to so many characters unless that is None.

    Examples
    --------
    >>> spelled({"start": 1, "log": True})
    '{start = 1, log = true}'
    >>> spelled(["a", 1.5])
    '["a", 1.5]'
    """
    text = _spelled(value)
    return text if longest is None or len(text) <= longest else f"{text[: longest - 3]}..."


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_spelled(item)}" for k, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_spelled, value)) + "]"
    if isinstance(value, bool | str):
        return _quoted(value)
    try:
        return str(value)
    except ValueError:  # Python bounds the digits of a whole number in base 10
        return f"a whole number of {value.bit_length()} bits"


def _quoted(value: bool | str) -> str:
    """Return text in quotes; TOML wants one character escaped that JSON leaves."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(document: Mapping[str, Any]) -> str:
    """Return a document as a TOML file: values first, then tables and lists of tables.

    Examples
    --------
    >>> print(toml_text({"name": "a", "banks": [{"family": "xu2008"}], "splits": {"folds": 3}}))
    name = "a"
    <BLANKLINE>
    [[banks]]
    family = "xu2008"
    <BLANKLINE>
    [splits]
    folds = 3
    <BLANKLINE>
    """
    return "\n".join([*_lines(document, ""), ""])


def _lines(table: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the lines of a table whose header has been written."""
    inner = {key: value for key, value in table.items() if _is_table(value) or _are_tables(value)}
    yield from (
        f"{_key(key)} = {_spelled(value)}" for key, value in table.items() if key not in inner
    )
    for key, value in inner.items():
        below = f"{path}.{_key(key)}" if path else _key(key)
        for item in value if _are_tables(value) else [value]:
            yield f"\n[[{below}]]" if _are_tables(value) else f"\n[{below}]"
            yield from _lines(item, below)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    """Return a key, in quotes where TOML wants them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _quoted(key)
