"""Plugin that Dask installs in every worker of this machine before its first task."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any

from distributed import WorkerPlugin

PERIOD = 5.0  # seconds between two looks
LOOKS = 6  # in a row at which a thread still has to give a sign, after which none is expected
EXIT_CODE = 1  # of the process, which Dask's nanny replaces
_START = threading.Thread.start.__code__


def end_if_threads_are_lost(*, period: float = PERIOD, looks: int = LOOKS) -> None:
    """Watch this process in a thread; end it once a thread's start never returns.

    Looks count and not seconds, so that a process which was suspended is given its time.

    Parameters
    ----------
    period : float, optional
        Seconds between two looks.
    looks : int, optional
        Looks in a row at which the same start has not returned.
    """
    arguments = (period, looks)
    threading.Thread(
        target=_watch, args=arguments, name="mkldist-lost-threads", daemon=True
    ).start()


def _watch(period: float, looks: int) -> None:
    seen: dict[FrameType, int] = {}  # holds the frames, so that no other gets their identity
    while max(seen.values(), default=0) < looks:
        time.sleep(period)
        with suppress(MemoryError):  # the next look may find some
            seen = {start: seen.get(start, 0) + 1 for start in _starts()}
    os._exit(EXIT_CODE)


def _starts() -> set[FrameType]:
    """Return the frames of the calls of :meth:`threading.Thread.start` that have not returned."""
    found = set()
    for innermost in sys._current_frames().values():
        frame: FrameType | None = innermost
        while frame is not None:
            if frame.f_code is _START:
                found.add(frame)
            frame = frame.f_back
    return found


class WorkerSetup(WorkerPlugin):
    """Make a worker of this machine ignore Ctrl-C, and end if it loses a thread.

    The workers of a local cluster share the terminal with the coordinator and get its Ctrl-C too;
    without the plugin they would die with a traceback before the coordinator tells them to stop.
    """

    def setup(self, worker: Any) -> None:
        """Set both up, if this is the main thread, as in a process of its own."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            end_if_threads_are_lost()
