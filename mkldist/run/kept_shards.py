"""Shards of banks in the memory of this process, computed when they are first asked for."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mkldist.bank.bank import MemoryBank
from mkldist.bank.passes import answer
from mkldist.bank.requests import Matvec, Quadratic, Radii
from mkldist.bank.shards import kernel_bytes, shard_entries
from mkldist.core.arrays import Floating
from mkldist.core.blas_threads import single_threaded
from mkldist.run.bank_refs import BankRef, bank_inputs
from mkldist.run.versions import check_equal
from mkldist.run.warm_up import warm_up_source


@dataclass(frozen=True)
class Shard:
    """A shard by name.

    Parameters
    ----------
    ref : BankRef
        Its bank.
    kernels : slice
        Its kernels.
    most_bytes : int
        Bytes of all shards that a process keeps; one shard is kept even if it is larger.
    """

    ref: BankRef
    kernels: slice
    most_bytes: int

    @property
    def key(self) -> tuple[str, int, int]:
        """Bank and kernels."""
        return self.ref.plan.id, self.kernels.start, self.kernels.stop

    @property
    def n_bytes(self) -> int:
        """Bytes of its entries."""
        n_kernels: int = self.kernels.stop - self.kernels.start
        return n_kernels * kernel_bytes(self.ref.plan.shape)


class KeptShards:
    """The shards that a process keeps; those used longest ago make room for others."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, int, int], Floating] = OrderedDict()
        self._lock = threading.Lock()

    def bank(self, shard: Shard) -> MemoryBank:
        """Return a shard as a bank with a counter of its own.

        Raises
        ------
        mkldist.errors.GramError
            If a kernel has values that are not finite.
        """
        shape = shard.ref.plan.shape
        with self._lock:
            if shard.key not in self._entries:
                self._make_room(shard.most_bytes - shard.n_bytes)
                source = bank_inputs(shard.ref).source()
                warm_up_source(source, shape.dtype)
                _warm_up_answers(shape.dtype)
                self._entries[shard.key] = shard_entries(source, shape, shard.kernels)
            self._entries.move_to_end(shard.key)
            return MemoryBank(self._entries[shard.key], shape.layout)

    def clear(self) -> None:
        """Drop all shards."""
        with self._lock:
            self._entries.clear()

    @property
    def n_bytes(self) -> int:
        """Bytes of all shards."""
        return sum(entries.nbytes for entries in self._entries.values())

    def _make_room(self, most_bytes: int) -> None:
        """Drop shards until the others take at most so many bytes."""
        while self._entries and self.n_bytes > most_bytes:
            self._entries.popitem(last=False)


SHARDS = KeptShards()


@cache
def _warm_up_answers(dtype: str) -> None:
    """Compile what answers requests to a shard, before the clock of a run goes."""
    few = MemoryBank.from_grams(np.eye(8)[None], dtype)
    first, vectors = np.zeros(1, dtype=np.intp), np.ones((8, 2))
    forms = [Quadratic(vectors, first), Quadratic(vectors[:, 0], first)]
    answer(few, [Matvec(first, vectors), *forms, Radii()])


def work_on_shard(
    versions: Mapping[str, str], shard: Shard, work: Callable[..., Any], *arguments: Any
) -> Any:
    """Return ``work(bank of the shard, *arguments)``.

    Parameters
    ----------
    versions : mapping of str to str
        Versions of packages that this process must have.
    shard : Shard
        The shard, which this process keeps from now on.
    work : callable
        One of the functions of :mod:`mkldist.bank.sharded`.
    arguments : object
        Its further arguments.

    Raises
    ------
    mkldist.errors.UnfitClusterError
        If this process has another version of a package.
    """
    check_equal(versions)
    with single_threaded():
        return work(SHARDS.bank(shard), *arguments)


def forget_shards() -> None:
    """Drop all shards that this process keeps."""
    SHARDS.clear()
