"""Memory of this machine, and the share of it that one array may take."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

GIB = 2**30
# A reader may hold the content of the file and the dense array at once.
SHARE_OF_MEMORY = 0.5


def physical_memory() -> int:
    """Return the physical memory of this machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def at_most_half(n_bytes: float) -> str:
    """Return the words for a limit in bytes that is half of this machine's memory.

    Examples
    --------
    >>> at_most_half(3 * 2**30)
    "at most 3.0 GiB, half of this machine's memory"
    """
    return f"at most {n_bytes / GIB:.1f} GiB, half of this machine's memory"


def available_memory() -> int:
    """Return the bytes that processes can get: free ones, and those of files that are cached."""
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(line.split()[1])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
