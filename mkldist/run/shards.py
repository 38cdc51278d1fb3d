"""A bank whose kernels are divided among workers: vectors go out, sums come back.

A shard answers requests by the code of a bank in one memory, for its own kernels; their answers are
put side by side.  A combination is a sum over kernels: it goes from shard to shard, in parts that
keep all at work.  Shards begin with whole blocks of a pass, so that every sum has the order that it
has in one memory, and answers are the same to the last bit.  Combinations of few kernels, to which
solvers come back, are made here of copies of these kernels, as far as memory holds these.

Calls on shards are tasks of Dask, each for the worker that keeps the shard.  If a worker dies, Dask
gives its calls to another one, which computes the shard anew, and the next round of calls divides
the shards evenly among the workers that are there.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.bank.bank import Answer, CachedRowsBank, MemoryBank, PassCounter, slabs
from mkldist.bank.passes import add_combinations, answer, combine_sparse, points_id, weight_rows
from mkldist.bank.products import WeightedSum
from mkldist.bank.requests import Combine, Inner, Matvec, Quadratic, Radii, Request
from mkldist.bank.sources import computed
from mkldist.bank.store import BankShape
from mkldist.core.arrays import Bools, Floating, Floats, Ints
from mkldist.core.memory import row_cache_bytes, shard_bytes
from mkldist.core.threads import single_threaded
from mkldist.run.bank_refs import BankRef, bank_inputs
from mkldist.run.probe import check_equal, memory_share, versions_here, worker_memory
from mkldist.run.warm_up import warm_up_source

if TYPE_CHECKING:
    from distributed import Client

MOST_CALLS = 512  # of one combination: each costs a scheduler about a millisecond
Work = Callable[..., Any]


def answer_part(
    bank: MemoryBank, kernels: slice, requests: list[Request]
) -> tuple[list[Floats], PassCounter]:
    """Answer a shard's part of requests other than `Combine`; return the work that it took too."""
    begun = time.thread_time()
    answers = answer(bank, [_part_of(request, kernels) for request in requests])
    bank.counter.threads_cpu_seconds += time.thread_time() - begun
    return answers, bank.counter


def add_part(
    bank: MemoryBank, weights: Floats, entries: slice, before: tuple[Floats, float] | None
) -> tuple[Floats, float]:
    """Add the kernels of a shard, with weights (R, k), to combinations over the shards before.

    Returns the sums (R, e) at entries of whole slabs, and the processor time of all shards so far.
    """
    begun = time.thread_time()
    sums, spent = before or (np.zeros((len(weights), entries.stop - entries.start)), 0.0)
    values = add_combinations(bank, weights, entries, sums)
    return values, spent + time.thread_time() - begun


def take_rows(bank: MemoryBank, lines: Ints) -> Floating:
    """Return copies of some kernels of a shard, (s, E)."""
    [rows] = bank.rows(lines)
    return rows.values[rows.lines]


def _part_of(request: Request, shard: slice) -> Request:
    """Return what a request asks of a shard, in arrays that compiled functions may be given.

    Functions are compiled for arrays that can be written; those of another process may not be.
    """
    if isinstance(request, Matvec | Quadratic):
        request = replace(request, vectors=np.require(request.vectors, requirements="W"))
        if request.kernels is not None:
            own = request.kernels[_inside(request.kernels, shard)] - shard.start
            return replace(request, kernels=own)
    return request


def _inside(kernels: Ints, shard: slice) -> Bools:
    """Return which of some kernels a shard holds, (s,)."""
    held: Bools = (kernels >= shard.start) & (kernels < shard.stop)
    return held


def _named_kernels(request: Request) -> Ints | None:
    """Return the kernels that a request names; None if it is about all."""
    return request.kernels if isinstance(request, Matvec | Quadratic) else None


@dataclass(frozen=True)
class Shard:
    """A shard by name."""

    ref: BankRef
    kernels: slice
    most_bytes: int  # of all shards that a process keeps; one is kept even if it is larger

    @property
    def key(self) -> tuple[str, int, int]:
        """Bank and kernels."""
        return self.ref.plan.id, self.kernels.start, self.kernels.stop


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
                n_kernels: int = shard.kernels.stop - shard.kernels.start
                room = shard.most_bytes - n_kernels * shape.kernel_bytes
                while self._entries and self.n_bytes > room:
                    self._entries.popitem(last=False)
                source = bank_inputs(shard.ref).source()
                warm_up_source(source, shape.dtype)
                values = computed(source, shard.kernels, shape.layout, shape.dtype)
                self._entries[shard.key] = values
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


SHARDS = ShardCache()


def _clear_shards() -> None:
    SHARDS.clear()


def work_on_shard(versions: Mapping[str, str], shard: Shard, work: Work, *arguments: Any) -> Any:
    """Return ``work(bank of the shard, *arguments)``."""
    check_equal(versions)
    with single_threaded():
        return work(SHARDS.bank(shard), *arguments)


class ShardCalls:
    """Calls on the shards of one bank, in workers; a handle stands for a value that is there."""

    def __init__(
        self,
        client: Client,
        shards: Sequence[Shard],
        admitted: Collection[str] | None = None,
        *,
        forgets: bool,
    ) -> None:
        self._client: Any = client
        self._admitted, self._forgets = admitted, forgets
        self._shards = [self.put(shard) for shard in shards]
        self._versions = self.put(versions_here())
        self._homes: dict[int, str] = {}
        self._looked = False  # since the last results, where workers are

    def put(self, value: Any) -> Any:
        """Return a handle of a value, which workers fetch from here, for several calls."""
        return self._client.scatter([value], hash=False)[0]

    def call(self, shard: int, work: Work, *arguments: Any) -> Any:
        """Begin ``work(bank of the shard, *arguments)``; return a handle of what it returns.

        Values replace arguments that are handles.  Their arrays may be read-only.
        """
        if not self._looked:
            workers = _homes(self._client, self._admitted)
            self._homes = assigned(len(self._shards), workers, self._homes)
            self._looked = True
        known = self._versions, self._shards[shard]
        return self._submitted(self._homes[shard], work_on_shard, *known, work, *arguments)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for calls; return what they returned, or raise what one of them raised."""
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
    """Divide shards evenly among workers; as many as possible stay where they are."""
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


class ShardedBank(CachedRowsBank):
    """A bank of which others hold the shards, of kernels as :meth:`BankShape.shards` cuts them."""

    def __init__(
        self, calls: ShardCalls, shards: Sequence[slice], shape: BankShape, row_cache_bytes: int
    ) -> None:
        super().__init__(shape.n_kernels, shape.layout, np.dtype(shape.dtype), row_cache_bytes)
        self._calls, self._shards = calls, tuple(shards)

    @property
    def shares_rows(self) -> bool:
        """True, because requests that go out together take one journey."""
        return True

    def load(self) -> None:
        """Have all shards made, so that no request waits for that."""
        begun = (self._calls.call(i, answer_part, o, []) for i, o in enumerate(self._shards))
        self._calls.results(list(begun))

    def own_answers(self, requests: Sequence[Request]) -> dict[int, Answer]:
        """Answer all requests, as :func:`mkldist.bank.passes.answer` does for other banks."""
        combines = {at: one for at, one in enumerate(requests) if isinstance(one, Combine)}
        known, asked = dict[int, Floats](), dict[int, Request]()
        for at, one in enumerate(requests):
            name = points_id(one.index, self.n_points) if isinstance(one, Radii) else ""
            if name in self.known_radii:
                known[at] = self.known_radii[name].copy()
            elif at not in combines:
                asked[at] = one
        wanted = list(asked.values())
        # The handle lives until the answers are here: a shard that is lost answers again.
        shared = self._calls.put(wanted) if wanted else None
        named = [_named_kernels(request) for request in wanted]
        concerned = [
            i for i, own in enumerate(self._shards)
            if any(kernels is None or _inside(kernels, own).any() for kernels in named)
        ]  # fmt: skip
        arrays = [one for request in wanted for one in vars(request).values()]
        n_bytes = sum(one.nbytes for one in arrays if isinstance(one, np.ndarray))
        self.counter.bytes_moved += len(concerned) * n_bytes
        begun = [self._calls.call(i, answer_part, self._shards[i], shared) for i in concerned]
        combined, dense = combine_sparse(self, combines)
        with_columns = any(
            isinstance(one, Inner | Quadratic) and kernels is None
            for one, kernels in zip(wanted, named, strict=True)
        )
        self._combine(dense, counted=with_columns)
        joined = self._joined(wanted, concerned, begun)
        return {**known, **combined, **dict(zip(asked, joined, strict=True))}

    def _joined(self, requests: list[Request], shards: list[int], begun: list[Any]) -> list[Floats]:
        """Return the answers to requests from those of the shards."""
        found: list[tuple[list[Floats], PassCounter]] = self._calls.results(begun)
        one, every = (
            ("passes", "diagonals", "radii"),
            ("matvecs", "bytes_read", "threads_cpu_seconds"),
        )
        for name in (*one, *every):  # of `one` each shard does its part
            of_shards = [getattr(spent, name) for _, spent in found] or [0]
            spent = max(of_shards) if name in one else sum(of_shards)
            setattr(self.counter, name, getattr(self.counter, name) + spent)
        kernels, joined = [self._shards[shard] for shard in shards], []
        for at, request in enumerate(requests):
            parts = [answers[at] for answers, _ in found]
            self.counter.bytes_moved += sum(part.nbytes for part in parts)
            joined.append(_side_by_side(request, kernels, parts))
            if isinstance(request, Radii):
                self.known_radii[points_id(request.index, self.n_points)] = joined[-1].copy()
        return joined

    def _combine(self, dense: Sequence[WeightedSum], *, counted: bool) -> None:
        """Write combinations of many kernels to their targets."""
        if not dense:
            return
        weights = weight_rows(dense, self.n_kernels)
        used = [i for i, own in enumerate(self._shards) if weights[:, own].any()]
        shares = {i: self._calls.put(weights[:, self._shards[i]]) for i in used}
        sums = []
        for entries in self._pieces(len(used)):
            before = None
            for shard in used:
                before = self._calls.call(shard, add_part, shares[shard], entries, before)
            sums.append(before)
        found: list[tuple[Floats, float]] = self._calls.results(sums)
        packed = np.concatenate([values for values, _ in found], axis=1)
        for wanted, entries_of in zip(dense, packed, strict=True):
            self.layout.unpack(entries_of, out=wanted.target)
        n_kernels = sum(self._shards[i].stop - self._shards[i].start for i in used)
        self.counter.passes += not counted
        self.counter.bytes_read += n_kernels * self.layout.n_entries * self.dtype.itemsize
        self.counter.bytes_moved += 8 * len(dense) * n_kernels + len(used) * packed.nbytes
        self.counter.threads_cpu_seconds += sum(seconds for _, seconds in found)

    def _pieces(self, n_shards: int) -> Iterator[slice]:
        """Cut the entries into slices of whole slabs, enough to keep all shards at work."""
        whole = list(slabs(self.layout))
        wanted = max(1, min(2 * n_shards, MOST_CALLS // n_shards)) if n_shards > 1 else 1
        step = -(-len(whole) // wanted)
        for first in range(0, len(whole), step):
            yield slice(whole[first].start, whole[first : first + step][-1].stop)

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        """Copy kernels from their shards."""
        wanted, calls = np.array(kernels), []
        for shard, own in enumerate(self._shards):
            if len(at := np.flatnonzero(_inside(wanted, own))):
                calls.append((at, self._calls.call(shard, take_rows, wanted[at] - own.start)))
        found = self._calls.results([call for _, call in calls])
        for (at, _), values in zip(calls, found, strict=True):
            for position, row in zip(at, values, strict=True):
                rows[position][...] = row
            self.counter.bytes_read += values.nbytes
            self.counter.bytes_moved += values.nbytes


def _side_by_side(request: Request, shards: Sequence[slice], parts: Sequence[Floats]) -> Floats:
    """Return the answer to a request, given those of shards, which hold all of its kernels."""
    kernels = _named_kernels(request)
    if kernels is None:
        return np.concatenate(parts)
    vectors = request.vectors if isinstance(request, Matvec | Quadratic) else np.empty(0)
    shape = vectors.shape if isinstance(request, Matvec) else vectors.shape[1:]
    joined = np.empty((len(kernels), *shape))
    for shard, part in zip(shards, parts, strict=True):
        joined[_inside(kernels, shard)] = part
    return joined


def open_sharded(
    ref: BankRef,
    memory_limit: int | None,
    stack: ExitStack,
    admitted: Collection[str] | None = None,
    *,
    forgets: bool,
) -> ShardedBank:
    """Return a bank whose shards the workers of this task's cluster keep; all are made."""
    from distributed import worker_client

    # The task leaves its worker's pool of threads meanwhile, so that its thread can do calls.
    client: Any = stack.enter_context(worker_client())
    most, shape = shard_bytes(worker_memory(memory_limit)), ref.plan.shape
    cuts = shape.shards(most, len(_homes(client, admitted)))
    calls = ShardCalls(client, [Shard(ref, own, most) for own in cuts], admitted, forgets=forgets)
    stack.callback(calls.close)
    bank = ShardedBank(calls, cuts, shape, row_cache_bytes(memory_share(memory_limit)))
    bank.load()
    return bank
