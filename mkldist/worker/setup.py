"""What a worker process does once, before its first task."""

from __future__ import annotations

import signal
import threading
from typing import Any

from distributed import WorkerPlugin


class WorkerSetup(WorkerPlugin):
    """Import what tasks need, and leave Ctrl-C to the coordinator.

    Parameters
    ----------
    interruptible : bool
        False for the workers of a local cluster: they share the terminal with the coordinator,
        get its Ctrl-C too, and would die with a traceback before they are told to stop.
    """

    def __init__(self, *, interruptible: bool) -> None:
        self.interruptible = interruptible

    def setup(self, worker: Any) -> None:
        """Run on the worker, in its main thread if it is a process of its own."""
        if not self.interruptible and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
