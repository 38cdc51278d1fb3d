"""JSON documents that carry the CRC32C of their other entries, and that every parser reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkldist.core.checksums import crc32c
from mkldist.core.durable import write_file

CHECKSUM = "checksum"
"""Name of the entry."""


def checked_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON text with its checksum, which :func:`parsed` checks."""
    others = {name: value for name, value in document.items() if name != CHECKSUM}
    checksum = crc32c([json.dumps(others).encode()]).hex()
    return json.dumps({CHECKSUM: f"crc32c:{checksum}", **others}).encode()


def parsed(text: bytes) -> dict[str, Any]:
    """Return a document without its checksum.

    Raises
    ------
    ValueError
        If the text differs in any bit from one that :func:`checked_json` returns.
    """
    document = json_value(text)
    if not isinstance(document, dict) or text != checked_json(document):
        raise ValueError("its checksum is missing or does not fit")
    del document[CHECKSUM]
    return document


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
    """Write a document with its checksum at once; see :func:`mkldist.core.durable.replacing`."""
    write_file(target, [checked_json(document)])
