"""Limit on the threads of linear algebra: one in every task."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit linear algebra to one thread.

    Workers keep all processors busy already, and the times of their runs must be comparable.  A
    matrix of some hundred rows is also factorised in less time than threads take to synchronise.
    The limit holds for the whole process: the first of several tasks sets it, the last removes it.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


class _SharedLimit:
    """Limit on the threads of linear algebra that several tasks of a process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limits: Any = None

    def enter(self) -> None:
        """Set the limit, unless another task has set it."""
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._holders:
                self._limits = threadpool_limits(limits=1)
            self._holders += 1

    def leave(self) -> None:
        """Restore the former number of threads, unless another task still needs the limit."""
        with self._lock:
            self._holders -= 1
            if not self._holders:
                self._limits.restore_original_limits()


_LIMIT = _SharedLimit()
