"""Values as a sweep file spells them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

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
