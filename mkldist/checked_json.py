"""JSON documents that carry a checksum of themselves.

The checksum is the CRC32C of the whole text, in which its own digits count as zeros.  It is an
entry like any other, so that every JSON parser reads the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkldist.checksums import crc32c
from mkldist.durable import write_file

CHECKSUM = "checksum"
"""Name of the entry."""
BLANK = f"crc32c:{'0' * 8}"
"""Value of the entry before :func:`filled` puts in the digits."""
_ENTRY = re.compile(rb'"checksum": "crc32c:([0-9a-f]{8})"')


def checked_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON text with its checksum, which :func:`parsed` checks."""
    others = {name: value for name, value in document.items() if name != CHECKSUM}
    return filled(json.dumps({CHECKSUM: BLANK, **others}).encode())


def filled(text: bytes) -> bytes:
    """Return a JSON text whose first entry called ``checksum``, which is blank, is put in."""
    entry = _ENTRY.search(text)
    if entry is None:
        raise ValueError("a document without an entry for its checksum")
    start, end = entry.span(1)
    return text[:start] + _digits(text[:start], text[end:]) + text[end:]


def is_checked(text: bytes) -> bool:
    """Return True if a text has a checksum that fits, False if it has none.

    Raises
    ------
    ValueError
        If it has one that does not fit.
    """
    entry = _ENTRY.search(text)
    if entry is None:
        return False
    start, end = entry.span(1)
    if entry[1] != _digits(text[:start], text[end:]):
        raise ValueError("its checksum does not fit")
    return True


def parsed(text: bytes) -> tuple[dict[str, Any], bool]:
    """Return a document without its checksum, and True if it had one.

    Raises
    ------
    ValueError
        If the text is no JSON object, or its checksum does not fit.
    """
    checked = is_checked(text)
    document = json_value(text)
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    if checked:
        document.pop(CHECKSUM, None)
    return document, checked


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    ValueError
        If it is no JSON, or its lists and objects are nested deeper than can be read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects nested too deep") from None


def write_checked(target: Path, document: Mapping[str, Any]) -> None:
    """Write a document with its checksum at once; see :func:`mkldist.durable.replacing`."""
    write_file(target, [checked_json(document)])


def _digits(before: bytes, after: bytes) -> bytes:
    return crc32c([before, b"0" * 8, after]).hex().encode()
