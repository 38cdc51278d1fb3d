"""Time that took a bank, or some blocks of it, to build."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

from mkldist.checksums import CHECKSUM_BYTES, crc32c

FORMAT = "<dd"
N_BYTES = struct.calcsize(FORMAT)


@dataclass(frozen=True)
class BuildTime:
    """Time to compute and store Gram matrices, of all tasks together.

    Parameters
    ----------
    seconds : float
        Wall time.
    cpu_seconds : float
        Processor time.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: BuildTime) -> BuildTime:
        """Return the time of both."""
        return BuildTime(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)

    @property
    def encoded(self) -> bytes:
        """The two numbers as bytes, float64 of little-endian order, followed by their checksum."""
        numbers = struct.pack(FORMAT, self.seconds, self.cpu_seconds)
        return numbers + crc32c([numbers])

    @classmethod
    def decoded(cls, content: bytes | None) -> BuildTime | None:
        """Return the time that `content` encodes; None for anything else.

        Banks that were made before there was a checksum have the two numbers alone.
        """
        if content is None or len(content) not in (N_BYTES, N_BYTES + CHECKSUM_BYTES):
            return None
        numbers, checksum = content[:N_BYTES], content[N_BYTES:]
        if checksum and checksum != crc32c([numbers]):
            return None
        return cls(*struct.unpack(FORMAT, numbers))


NO_TIME = BuildTime()


class Stopwatch:
    """Wall time, and processor time of this thread, since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.thread_time()

    def spent(self) -> BuildTime:
        """Return the time since the start."""
        return BuildTime(time.perf_counter() - self._wall, time.thread_time() - self._cpu)
