"""Limit on the threads of linear algebra: one in every task."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

MANY_POINTS = 2000  # with fewer, linear algebra is faster on one thread than on several


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


def threads_for(n_points: int) -> AbstractContextManager[None]:
    """Return a context with one thread of linear algebra where several are slower."""
    return single_threaded() if n_points < MANY_POINTS else nullcontext()


def limit_new_libraries() -> None:
    """Limit libraries too that were loaded after the limit was set; without a limit do nothing."""
    _LIMIT.renew()


class _SharedLimit:
    """Limit on the threads of linear algebra that several tasks of a process share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._libraries: Any = None
        self._modules = 0
        self._limits: list[Any] = []

    def enter(self) -> None:
        """Set the limit, unless another task has set it."""
        with self._lock:
            self._holders += 1
            self._set()

    def renew(self) -> None:
        """Set the limit on libraries that were loaded since, if a task holds it."""
        with self._lock:
            if self._holders:
                self._set()

    def leave(self) -> None:
        """Restore the former number of threads, unless another task still needs the limit."""
        with self._lock:
            self._holders -= 1
            while self._limits and not self._holders:
                self._limits.pop().restore_original_limits()

    def _set(self) -> None:
        """Limit the libraries of this process, unless that was done since the last import."""
        if not self._limits or self._modules != len(sys.modules):
            self._limits.append(self._loaded_libraries().limit(limits=1))

    def _loaded_libraries(self) -> Any:
        """Return the libraries of linear algebra of this process.

        A search takes milliseconds, so it is repeated only after imports, which load libraries.
        """
        if self._libraries is None or self._modules != len(sys.modules):
            from threadpoolctl import ThreadpoolController

            self._libraries = ThreadpoolController()
            self._modules = len(sys.modules)
        return self._libraries


_LIMIT = _SharedLimit()
