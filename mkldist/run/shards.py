"""Shards of a bank in the memory of processes, and calls on them: in a cluster's workers, or here.

In a cluster they are plain tasks of Dask, each sent to the worker that keeps the shard.  What goes
from shard to shard goes between their workers.  If a worker dies, Dask gives its calls to another
one, which computes the shard anew.  From the next round of calls on, shards are divided evenly
among the workers that are there.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.bank.bank import MemoryBank
from mkldist.bank.passes import answer
from mkldist.bank.requests import Matvec, Quadratic, Radii
from mkldist.bank.sharded import ShardedBank, Work, cut, kernel_bytes, shard_entries
from mkldist.core.arrays import Floating
from mkldist.core.memory import row_cache_bytes, shard_bytes
from mkldist.core.threads import single_threaded
from mkldist.run.bank_refs import BankRef, bank_inputs
from mkldist.run.probe import check_equal, memory_share, this_worker, versions_here, worker_memory
from mkldist.run.warm_up import warm_up_source

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Shard:
    """A shard by name."""

    ref: BankRef
    kernels: slice
    # Bytes of all shards that a process keeps; one shard is kept even if it is larger
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


class ShardCache:
    """The shards that a process keeps; those used longest ago make room for others."""

    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, int, int], Floating] = OrderedDict()
        self._lock = threading.Lock()

    def bank(self, shard: Shard) -> MemoryBank:
        """Return a shard as a bank with a counter of its own."""
        shape = shard.ref.plan.shape
        with self._lock:
            if shard.key not in self._entries:
                self._make_room(shard.most_bytes - shard.n_bytes)
                source = bank_inputs(shard.ref).source()
                warm_up_source(source, shape.dtype)
                _compile_answers(shape.dtype)
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


SHARDS = ShardCache()


def _clear_shards() -> None:
    SHARDS.clear()


@cache
def _compile_answers(dtype: str) -> None:
    """Compile what answers requests to a shard, before the clock of a run goes."""
    few = MemoryBank.from_grams(np.eye(8)[None], dtype)
    first, vectors = np.zeros(1, dtype=np.intp), np.ones((8, 2))
    forms = [Quadratic(vectors, first), Quadratic(vectors[:, 0], first)]
    answer(few, [Matvec(first, vectors), *forms, Radii()])


def work_on_shard(
    versions: Mapping[str, str], shard: Shard, work: Callable[..., Any], *arguments: Any
) -> Any:
    """Return ``work(bank of the shard, *arguments)``."""
    check_equal(versions)
    with single_threaded():
        return work(SHARDS.bank(shard), *arguments)


def open_sharded(
    ref: BankRef,
    memory_limit: int | None,
    stack: ExitStack,
    admitted: Collection[str] | None = None,
    *,
    forgets: bool,
) -> ShardedBank:
    """Return a bank whose shards the workers of this task's cluster keep; all are made."""
    client: Any = None
    if this_worker() is not None:
        from distributed import worker_client

        # The task leaves its worker's pool of threads meanwhile, so that its thread can do calls.
        client = stack.enter_context(worker_client())
    most, shape = shard_bytes(worker_memory(memory_limit)), ref.plan.shape
    n_workers = 1 if client is None else len(_homes(client, admitted))
    cuts = cut(shape, most, n_workers)
    shards = [Shard(ref, kernels, most) for kernels in cuts]
    calls = (
        LocalShardCalls(shards)
        if client is None
        else WorkerShardCalls(client, shards, admitted, forgets=forgets)
    )
    stack.callback(calls.close)
    bank = ShardedBank(calls, cuts, shape, row_cache_bytes(memory_share(memory_limit)))
    bank.load()
    return bank


class LocalShardCalls:
    """Calls in a thread of this process, which makes the shards one after the other."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mkldist-shards")

    def put(self, value: Any) -> Any:
        """See :meth:`mkldist.bank.sharded.ShardCalls.put`."""
        return value

    def call(self, shard: int, work: Work, *arguments: Any) -> Any:
        """See :meth:`mkldist.bank.sharded.ShardCalls.call`."""

        def called() -> Any:
            values = (a.result() if isinstance(a, Future) else a for a in arguments)
            return work_on_shard({}, self._shards[shard], work, *values)

        return self._thread.submit(called)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """See :meth:`mkldist.bank.sharded.ShardCalls.results`."""
        return [handle.result() for handle in handles]

    def close(self) -> None:
        """End the thread, and drop the shards."""
        self._thread.shutdown()
        SHARDS.clear()


class WorkerShardCalls:
    """Calls in the workers of a cluster."""

    def __init__(
        self,
        client: Client,
        shards: Sequence[Shard],
        admitted: Collection[str] | None = None,
        *,
        forgets: bool,
    ) -> None:
        self._client: Any = client
        self._admitted = admitted
        self._shards = [self.put(shard) for shard in shards]
        self._versions = self.put(versions_here())
        self._forgets = forgets
        self._homes: dict[int, str] = {}
        self._looked = False  # since the last results, where workers are

    def put(self, value: Any) -> Any:
        """See :meth:`mkldist.bank.sharded.ShardCalls.put`: workers fetch the value from here."""
        return self._client.scatter([value], hash=False)[0]

    def call(self, shard: int, work: Work, *arguments: Any) -> Any:
        """See :meth:`mkldist.bank.sharded.ShardCalls.call`."""
        if not self._looked:
            workers = _homes(self._client, self._admitted)
            self._homes = assigned(len(self._shards), workers, self._homes)
            self._looked = True
        known = self._versions, self._shards[shard]
        return self._submitted(self._homes[shard], work_on_shard, *known, work, *arguments)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """See :meth:`mkldist.bank.sharded.ShardCalls.results`."""
        self._looked = False
        return list(self._client.gather(list(handles)))

    def close(self) -> None:
        """Have the workers drop their shards, if they are to; those that died have none."""
        if self._forgets:
            with suppress(Exception):
                homes = set(self._homes.values())
                self._client.gather([self._submitted(home, _clear_shards) for home in homes])

    def _submitted(self, home: str, function: Any, *arguments: Any) -> Any:
        """Submit a task for a worker, or for another if it is gone."""
        return self._client.submit(
            function,
            *arguments,
            key=f"shard-{uuid.uuid4().hex}",
            pure=False,
            workers=[home],
            allow_other_workers=True,
        )


def _homes(client: Any, admitted: Collection[str] | None) -> list[str]:
    """Return the addresses of the workers that are there and may keep shards."""
    there = client.nthreads()
    return sorted(there if admitted is None else there.keys() & set(admitted))


def assigned(n_shards: int, workers: Sequence[str], before: Mapping[int, str]) -> dict[int, str]:
    """Divide shards evenly among workers; as many as possible stay where they are.

    Examples
    --------
    >>> assigned(3, ["a", "b"], {})
    {0: 'a', 1: 'b', 2: 'a'}
    >>> assigned(3, ["b", "c"], {0: "a", 1: "b", 2: "a"})
    {1: 'b', 0: 'c', 2: 'b'}
    """
    most = -(-n_shards // len(workers))
    load, homes = dict.fromkeys(workers, 0), dict[int, str]()
    for shard, home in before.items():
        if load.get(home, most) < most:
            homes[shard], load[home] = home, load[home] + 1
    for shard in range(n_shards):
        if shard not in homes:
            homes[shard] = min(workers, key=load.__getitem__)
            load[homes[shard]] += 1
    return homes
