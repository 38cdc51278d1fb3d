"""Division of a worker's memory among bank, solvers and caches.

Plans predict memory by these rules, and tasks keep to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GIB = 2**30
# A reader may hold the content of the file and the dense array at once.
SHARE_OF_MEMORY = 0.5


GROUPS = Path("/proc/self/cgroup")
CONTROLLERS = Path("/sys/fs/cgroup")


def physical_memory() -> int:
    """Return the bytes of memory of this machine, or of the container or job that this is in."""
    import psutil

    return min([int(psutil.virtual_memory().total), *_group_limits(GROUPS, CONTROLLERS)])


@cache
def _group_limits(groups: Path, controllers: Path) -> tuple[int, ...]:
    """Return the limits of the control groups that hold this process, of both versions of Linux."""
    limits = list[int]()
    with suppress(OSError):  # of other systems
        for line in groups.read_text().splitlines():
            _, controller, group = line.split(":", 2)
            if controller not in ("", "memory"):
                continue
            name = "memory.limit_in_bytes" if controller else "memory.max"
            top = controllers / controller
            inner = top / group.lstrip("/")
            for folder in (inner, *inner.parents)[: len(inner.parts) - len(top.parts) + 1]:
                with suppress(OSError, ValueError):  # without a limit, or not to be seen from here
                    limits.append(int((folder / name).read_text()))
    return tuple(limits)


def at_most_half(n_bytes: float) -> str:
    """Return the words for a limit in bytes that is half of this machine's memory."""
    return f"at most {n_bytes / GIB:.1f} GiB, half of this machine's memory"


def available_memory() -> int:
    """Return the bytes that processes can get: free ones, and those of files that are cached."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_group_limits(GROUPS, CONTROLLERS)])


# Without a memory limit these bytes apply; with one, a share is the limit divided by the divisor.
DEFAULT_TASK_BYTES = 2 * 2**30
BANK_DIVISOR = 2
SOLVER_BYTES = 2**30
SOLVER_DIVISOR = 4
ROW_CACHE_BYTES = 256 * 2**20
ROW_CACHE_DIVISOR = 4
VIEW_CACHE_BYTES = 512 * 2**20
VIEW_CACHE_DIVISOR = 8
KEPT_ARRAYS_BYTES = 256 * 2**20
KEPT_ARRAYS_DIVISOR = 16

MATRICES_PER_SOLVER = 4  # (n, n)
VECTORS_PER_SOLVER = 8  # (M,)
FLOAT_BYTES = 8
TRACED_WEIGHT_BYTES = 12  # with the number of its kernel, as int32
TRACED_BYTES = 4 * 2**20  # of weights that a trace keeps, or those of these vectors (M,) if more
TRACED_VECTORS = 4


@dataclass(frozen=True)
class SolverMemory:
    """Bytes that a solver holds, answers to its requests included."""

    needed: int  # that it cannot do without
    spare: int = 0  # that it keeps where there is room, and asks for again where there is none

    def within(self, memory_limit: int | None) -> int:
        """Return the bytes that the solver takes in a task with a limit: at least what it needs."""
        return max(self.needed, min(self.needed + self.spare, _solver_share(memory_limit)))

    def spare_within(self, memory_limit: int | None) -> int:
        """Return the bytes beyond those that it needs, see :meth:`within`."""
        return self.within(memory_limit) - self.needed


@dataclass(frozen=True)
class ProblemSize:
    """Size of a problem, from which the memory of its solver follows."""

    n_points: int  # n, for training
    n_kernels: int  # M
    n_labelled: int  # of the points

    def memory(
        self,
        *,
        matrices: float = MATRICES_PER_SOLVER,
        vectors: float = VECTORS_PER_SOLVER,
        spare_vectors: float = 0.0,
    ) -> SolverMemory:
        """Return the memory of a solver that holds (n, n) matrices and (M,) vectors of float64."""
        needed = FLOAT_BYTES * (matrices * self.n_points**2 + vectors * self.n_kernels)
        spare = FLOAT_BYTES * spare_vectors * self.n_kernels
        return SolverMemory(math.ceil(needed), math.ceil(spare))


def bank_bytes(memory_limit: int | None) -> int:
    """Return the bytes of the largest bank that a task loads."""
    return (DEFAULT_TASK_BYTES if memory_limit is None else memory_limit) // BANK_DIVISOR


def row_cache_bytes(memory_limit: int | None) -> int:
    """Return the bytes of single kernels that a streamed bank keeps."""
    if memory_limit is None:
        return ROW_CACHE_BYTES
    return min(ROW_CACHE_BYTES, memory_limit // ROW_CACHE_DIVISOR)


def shard_bytes(memory_limit: int | None) -> int:
    """Return the bytes of the shards of a bank that a worker keeps, beside kernels of others."""
    return bank_bytes(memory_limit) - row_cache_bytes(memory_limit)


def view_cache_bytes(memory_limit: int | None) -> int:
    """Return the bytes of single kernels that a batch keeps for views of part of the points."""
    if memory_limit is None:
        return VIEW_CACHE_BYTES
    return min(VIEW_CACHE_BYTES, memory_limit // VIEW_CACHE_DIVISOR)


def kept_arrays_bytes(memory_limit: int | None) -> int:
    """Return the bytes of arrays that the solvers of a batch on a graph share."""
    if memory_limit is None:
        return KEPT_ARRAYS_BYTES
    return min(KEPT_ARRAYS_BYTES, memory_limit // KEPT_ARRAYS_DIVISOR)


def trace_bytes(n_kernels: int, n_iterations: int | None = None) -> int:
    """Return the bytes of weights that the trace of one solver keeps, but for five an iteration."""
    most = max(TRACED_BYTES, TRACED_VECTORS * FLOAT_BYTES * n_kernels)
    if n_iterations is None:
        return most
    return min(most, TRACED_WEIGHT_BYTES * n_kernels * n_iterations)


def groups_at_once(bytes_of_each: Sequence[int], memory_limit: int | None) -> list[slice]:
    """Divide solvers, in their order, into groups that may be at work at once in a task."""
    groups: list[slice] = []
    first, taken, share = 0, 0, _solver_share(memory_limit)
    for i, n_bytes in enumerate(bytes_of_each):
        if i > first and taken + n_bytes > share:
            groups.append(slice(first, i))
            first, taken = i, 0
        taken += n_bytes
    if len(bytes_of_each):
        groups.append(slice(first, len(bytes_of_each)))
    return groups


def _solver_share(memory_limit: int | None) -> int:
    """Return the bytes that all solvers of a task may take together."""
    return SOLVER_BYTES if memory_limit is None else memory_limit // SOLVER_DIVISOR


def readable_bytes(n_bytes: int) -> str:
    """Return bytes with a unit.

    >>> readable_bytes(900), readable_bytes(75_000), readable_bytes(3 * 2**30)
    ('900 B', '73.24 kiB', '3.00 GiB')
    """
    for power, unit in reversed(list(enumerate(("kiB", "MiB", "GiB", "TiB", "PiB"), 1))):
        if n_bytes >= 0.9 * 1024**power:
            return f"{n_bytes / 1024**power:.2f} {unit}"
    return f"{n_bytes} B"
