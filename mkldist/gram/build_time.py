"""Time that took a bank, or some blocks of it, to build."""

from __future__ import annotations

import time
from dataclasses import dataclass


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


NO_TIME = BuildTime()


class Stopwatch:
    """Wall time, and processor time of this thread, since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.thread_time()

    def spent(self) -> BuildTime:
        """Return the time since the start."""
        return BuildTime(time.perf_counter() - self._wall, time.thread_time() - self._cpu)
