"""Threads of linear algebra, of which small problems want one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def single_threaded() -> Iterator[None]:
    """Give linear algebra one thread.

    Workers are many, and their times must be comparable; and matrices of some hundred rows are
    factorised in less time than it takes threads to meet.  The limit holds for the process, so
    the first who asks for it sets it and the last one lifts it.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


class _SharedLimit:
    """A limit on the threads of linear algebra that several tasks of a process hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limits: Any = None

    def enter(self) -> None:
        """Set the limit unless somebody holds it."""
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._holders:
                self._limits = threadpool_limits(limits=1)
            self._holders += 1

    def leave(self) -> None:
        """Restore what was before if nobody else holds it."""
        with self._lock:
            self._holders -= 1
            if not self._holders:
                self._limits.restore_original_limits()


_LIMIT = _SharedLimit()
