"""Plugin that Dask installs in every worker before its first task."""

from __future__ import annotations

import signal
import threading
from typing import Any

from distributed import WorkerPlugin


class WorkerSetup(WorkerPlugin):
    """Make a worker of this machine ignore Ctrl-C.

    The plugin also proves that the worker can import mkldist: Dask reports an error to the
    coordinator if a worker cannot unpickle it.

    Parameters
    ----------
    interruptible : bool
        False for the workers of a local cluster.  They share the terminal with the coordinator and
        get its Ctrl-C too; without the plugin they would die with a traceback before the
        coordinator tells them to stop.
    """

    def __init__(self, *, interruptible: bool) -> None:
        self.interruptible = interruptible

    def setup(self, worker: Any) -> None:
        """Set the signal handler, if this is the main thread, as in a process of its own."""
        if not self.interruptible and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
