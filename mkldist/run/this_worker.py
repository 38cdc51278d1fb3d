"""The worker of Dask whose task this thread does, and the memory that the task may take."""

from __future__ import annotations

import sys
from typing import Any


def this_worker() -> Any:
    """Return the worker of Dask whose task this thread does; None in any other thread."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:  # this process is no worker: it does the task itself
        return None


def worker_memory(memory_limit: int | None) -> int | None:
    """Return the bytes that this process may take; None without a limit.

    Parameters
    ----------
    memory_limit : int or None
        Bytes that the sweep allows a worker.  The worker may have a lower limit of its own, at
        which Dask stops it.
    """
    worker = this_worker()
    own = None if worker is None else worker.memory_manager.memory_limit
    limits = [limit for limit in (memory_limit, own) if limit]
    return min(limits) if limits else None


def memory_share(memory_limit: int | None) -> int | None:
    """Return the bytes that a task may take: its worker's limit, divided by the worker's threads.

    Parameters
    ----------
    memory_limit : int or None
        As for :func:`worker_memory`.
    """
    worker, limit = this_worker(), worker_memory(memory_limit)
    if worker is None:
        return memory_limit
    return None if limit is None else limit // max(1, worker.state.nthreads)
