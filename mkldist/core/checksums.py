"""Checksums of content: CRC32C, as zarr has it, and the footer that ends checksummed files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

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
