"""Threads: processors that this process may use, BLAS on one thread, LAPACK beside others."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.core.arrays import Floats

GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")


@cache
def n_processors() -> int:
    """Return the number of processors that this process may run on.

    A container may be given less than the machine has: the quota of its control group counts,
    rounded up.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return min([count, *map(math.ceil, quotas(GROUP, GROUPS))])


def quotas(group: Path, groups: Path) -> Iterator[float]:
    """Yield the processors that Linux grants a control group."""
    for name in ("cpuacct,cpu", "cpu,cpuacct"):
        with suppress(OSError, ValueError):
            quota = int((groups / name / "cpu.cfs_quota_us").read_text())
            period = int((groups / name / "cpu.cfs_period_us").read_text())
            if quota > 0:
                yield quota / period
    with suppress(OSError, ValueError):
        own = group.read_text().strip().rpartition(":")[2].lstrip("/")
        quota, period = map(int, (groups / own / "cpu.max").read_text().split())
        yield quota / period


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
                self._take_over()
                self._limits.pop().restore_original_limits()

    def _set(self) -> None:
        """Limit the libraries of this process, unless that was done since the last import."""
        if not self._limits or self._modules != len(sys.modules):
            libraries = self._loaded_libraries()
            self._take_over()
            self._limits.append(libraries.limit(limits=1))

    def _take_over(self) -> None:
        """Let this thread set limits.

        Since threadpoolctl 3.8 only the first thread that sets one may set others, as long as it
        lives: those of all other threads are ignored.
        """
        for library in self._libraries.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)

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


FEW_ROWS = 100  # up to so many, numpy is as fast


def has_cholesky_factor(matrix: Floats, shift: float) -> bool:
    """Return True if ``matrix + shift I`` has a Cholesky factor, far cheaper than eigenvalues."""
    factor = np.array(matrix, dtype=np.float64, order="C")
    factor.flat[:: len(factor) + 1] += shift
    if len(factor) > FEW_ROWS:
        return factorise(factor)
    try:
        np.linalg.cholesky(factor)
    except np.linalg.LinAlgError:
        return False
    return True


def load_for(n_rows: int) -> None:
    """Load what factorises matrices of so many rows, before threads work side by side."""
    if n_rows > FEW_ROWS:
        _dpotrf()


def factorise(matrix: Floats) -> bool:
    """Overwrite the upper triangle of a matrix by its Cholesky factor; return False without one."""
    order, info = ctypes.c_int(len(matrix)), ctypes.c_int(0)
    _dpotrf()(b"L", order, matrix.ctypes.data, order, info)  # LAPACK's lower is the rows' upper
    return info.value == 0


@functools.cache
def _dpotrf() -> Any:
    """Return LAPACK's function, as ctypes calls it: without the interpreter's lock."""
    import scipy.linalg.cython_lapack
    from numba.extending import get_cython_function_address

    limit_new_libraries()  # the import has loaded one
    integer = ctypes.POINTER(ctypes.c_int)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, integer, ctypes.c_void_p, integer, integer)
    return kind(get_cython_function_address(scipy.linalg.cython_lapack.__name__, "dpotrf"))
