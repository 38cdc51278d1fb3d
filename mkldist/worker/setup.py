"""Plugin that Dask installs in every worker of this machine before its first task."""

from __future__ import annotations

import signal
import threading
from typing import Any

from distributed import WorkerPlugin

from mkldist.worker.lost_threads import end_if_threads_are_lost


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
