"""Checksums of content: CRC32C, as zarr has it; files and JSON documents that carry it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mkldist.core.durable import write_file

CHECKSUM_BYTES = 4


def crc32c(parts: Iterable[bytes | npt.NDArray[np.uint8]]) -> bytes:
    """Return the CRC32C of bytes given in parts: 4 bytes, little-endian, as zarr writes it."""
    import google_crc32c

    crc = 0
    for part in parts:
        crc = google_crc32c.extend(crc, part)
    return int(crc).to_bytes(CHECKSUM_BYTES, "little")


@dataclass(frozen=True)
class Footer:
    """The end of a file: a mark of its format, then the CRC32C of everything before the mark.

    Parameters
    ----------
    magic : bytes
        The mark of the format and its version.
    """

    magic: bytes

    @property
    def n_bytes(self) -> int:
        """Length of the footer."""
        return len(self.magic) + CHECKSUM_BYTES

    def of(self, parts: Iterable[bytes]) -> bytes:
        """Return the footer of a body that is given in parts."""
        return self.magic + crc32c(parts)

    def body(self, content: bytes) -> bytes | None:
        """Return a file's content without its footer, or None if the footer does not fit it."""
        body, footer = content[: -self.n_bytes], content[-self.n_bytes :]
        return body if footer == self.of([body]) else None


CHECKSUM = "checksum"
"""Name of the entry."""


def checked_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON text with its checksum, which :func:`parsed` checks."""
    others = {name: value for name, value in document.items() if name != CHECKSUM}
    checksum = crc32c([json.dumps(others).encode()]).hex()
    return json.dumps({CHECKSUM: f"crc32c:{checksum}", **others}).encode()


def parsed(text: bytes) -> dict[str, Any]:
    """Return a document without its checksum."""
    document = json_value(text)
    if not isinstance(document, dict) or text != checked_json(document):
        raise ValueError("its checksum is missing or does not fit")
    del document[CHECKSUM]
    return document


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects nested too deep") from None


def write_checked(target: Path, document: Mapping[str, Any]) -> None:
    """Write a document with its checksum at once; see :func:`mkldist.core.durable.replacing`."""
    write_file(target, [checked_json(document)])
