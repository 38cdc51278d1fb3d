"""Clock of one solver, by which time limits and reported times are kept."""

from __future__ import annotations

import time


class Clock:
    """Time of one solver in seconds: its own code plus its share of the passes it asked for.

    The driver resumes the clock when it runs the solver, pauses it while the solver waits, and
    charges it with the solver's share of each pass.  A time limit and a reported time therefore
    mean the same for a solver that runs alone and for one that runs beside a hundred others.
    """

    def __init__(self) -> None:
        self._spent, self._since = 0.0, time.perf_counter()
        self._running = True

    @property
    def elapsed(self) -> float:
        """Seconds charged so far."""
        running = time.perf_counter() - self._since if self._running else 0.0
        return self._spent + running

    def past(self, limit: float) -> bool:
        """Return True once `limit` seconds are charged."""
        return self.elapsed >= limit

    def pause(self) -> None:
        """Stop counting."""
        self._spent, self._running = self.elapsed, False

    def resume(self) -> None:
        """Count again."""
        self._since, self._running = time.perf_counter(), True

    def charge(self, seconds: float) -> None:
        """Add the seconds of this solver's share of a pass."""
        self._spent += seconds
