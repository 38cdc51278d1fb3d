"""Clock of one solver, by which time limits and reported times are kept."""

from __future__ import annotations

import time
from collections.abc import Callable

from mkldist.core.compiled import preparation_seconds


class Clock:
    """Time of one solver in seconds: its own code plus its share of the passes it asked for.

    The driver resumes the clock when it runs the solver, pauses it while the solver waits, and
    charges it with the solver's share of each pass.  A time limit and a reported time therefore
    mean the same for a solver that runs alone and for one that runs beside a hundred others.  The
    clock stands still while its thread compiles functions, or calls them in Python before that.

    Attributes
    ----------
    passes : int
        How often the solver's requests have read the whole bank, as the driver counts.
    on_iteration : callable, optional
        Is called with the upper and the lower bound after each iteration that a trace could hold.
    """

    on_iteration: Callable[[float, float], None] | None = None

    def __init__(self) -> None:
        self._spent, self._since = 0.0, working_time()
        self._running = True
        self.passes = 0

    @property
    def elapsed(self) -> float:
        """Seconds charged so far."""
        running = working_time() - self._since if self._running else 0.0
        return self._spent + running

    def past(self, limit: float) -> bool:
        """Return True once `limit` seconds are charged."""
        return self.elapsed >= limit

    def pause(self) -> float:
        """Stop counting, and return the seconds since the clock was resumed."""
        seconds = working_time() - self._since if self._running else 0.0
        self._spent, self._running = self._spent + seconds, False
        return seconds

    def resume(self) -> None:
        """Count again."""
        self._since, self._running = working_time(), True

    def charge(self, seconds: float) -> None:
        """Add the seconds of this solver's share of a pass."""
        self._spent += seconds


def working_time() -> float:
    """Return a time in seconds that stands still while this thread prepares functions.

    A thread prepares a function when it compiles it, and when it calls it in Python before that.
    Only differences of two times of one thread mean anything.
    """
    return time.perf_counter() - preparation_seconds()[0]


def working_cpu_time() -> float:
    """Return the processor time of this thread without that of preparing functions."""
    return time.thread_time() - preparation_seconds()[1]
