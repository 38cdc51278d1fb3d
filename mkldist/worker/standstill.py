"""End of a worker that has come to a standstill, so that others take over its tasks.

Before Python 3.13, a process without memory can lose a thread between its start and its first
step, and whoever starts the thread then waits for it for ever.  A worker that waits so in its event
loop answers nobody, and yet its connections stay open: Dask would take it for a busy one.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time

PERIOD = 5.0  # seconds between two looks
LOOKS = 24  # in a row without a sign of life, after which none is expected
WORKING = 0.005  # seconds of processor time between two looks of a process at work
EXIT_CODE = 1  # of the process, which Dask's nanny replaces


def end_at_standstill(
    loop: asyncio.AbstractEventLoop, *, period: float = PERIOD, looks: int = LOOKS
) -> threading.Thread:
    """Watch an event loop in a thread; end this process once neither the loop nor a task goes on.

    Looks count and not seconds, so that a process which was suspended is given its time.

    Parameters
    ----------
    loop : asyncio event loop
        The loop; when it is closed the thread ends.
    period : float, optional
        Seconds between two looks.
    looks : int, optional
        Looks in a row at which the loop did not run and the process did no work.

    Returns
    -------
    threading.Thread
        The thread, a daemon that runs.
    """
    thread = threading.Thread(
        target=_watch, args=(loop, period, looks), name="mkldist-standstill", daemon=True
    )
    thread.start()
    return thread


def _watch(loop: asyncio.AbstractEventLoop, period: float, looks: int) -> None:
    still, worked = 0, time.process_time()
    ran = threading.Event()
    while still < looks:
        try:
            loop.call_soon_threadsafe(ran.set)
        except RuntimeError:  # it is closed
            return
        except MemoryError:
            pass
        time.sleep(period)
        before, worked = worked, time.process_time()
        goes_on = ran.is_set() or worked - before > WORKING
        ran.clear()
        still = 0 if goes_on else still + 1
    os._exit(EXIT_CODE)
