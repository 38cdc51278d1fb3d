"""A bank whose kernels are divided among workers: vectors go out, sums come back.

Every shard answers requests by the code that answers them for a bank in one memory.  Forms, inner
products, traces and radii of a kernel depend on that kernel alone, so the answers of the shards are
put side by side.  A combination is a sum over kernels: it goes from shard to shard, and each adds
its kernels to the sum over those before, in the order in which one memory adds them.  It goes in
parts, so that all shards are at work on different parts at the same time.

Shards begin with whole blocks of a pass.  So every product has the shape that it has in one memory
and every sum the same order, and all answers are the same to the last bit.

Combinations of few kernels are made here, from copies of these kernels, because solvers come back
to their active kernels.  Where memory keeps fewer copies than one combination takes, that one goes
from shard to shard too, and its last digits are those of a pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mkldist.bank.bank import (
    Answer,
    Bank,
    Chunk,
    DiagonalPart,
    MemoryBank,
    MemoryBudget,
    PassCounter,
    RowCache,
    Rows,
    kernel_groups,
    slabs,
)
from mkldist.bank.passes import add_combinations, answer, combine_sparse, points_id, weight_rows
from mkldist.bank.products import WeightedSum
from mkldist.bank.requests import Combine, Inner, Matvec, Quadratic, Radii, Request
from mkldist.bank.store import BankShape
from mkldist.core.arrays import Bools, Floating, Floats, Ints


@dataclass(frozen=True, eq=False)
class PartialAnswers:
    """Answers of one shard to some requests, and the work that they took."""

    answers: list[Floats]
    spent: PassCounter


@dataclass(frozen=True, eq=False)
class PartialSums:
    """Combinations of the kernels up to a shard, (R, e), and the processor time that they took."""

    values: Floats
    cpu_seconds: float


def n_kernels_of(bank: MemoryBank) -> int:
    """Return the number of kernels of a shard."""
    return bank.n_kernels


def answer_part(bank: MemoryBank, kernels: slice, requests: list[Request]) -> PartialAnswers:
    """Answer the part of some requests that a shard answers."""
    begun = time.thread_time()
    answers = answer(bank, [_part_of(request, kernels) for request in requests])
    bank.counter.threads_cpu_seconds += time.thread_time() - begun
    return PartialAnswers(answers, bank.counter)


def add_part(
    bank: MemoryBank, weights: Floats, entries: slice, before: PartialSums | None
) -> PartialSums:
    """Add the kernels of a shard to combinations of those before.

    `weights` (R, k): weights of its kernels. `before`: sums over the shards before; None for the
    first.
    """
    begun, spent = time.thread_time(), 0.0
    if before is None:
        sums = np.zeros((len(weights), entries.stop - entries.start))
    else:
        sums, spent = before.values, before.cpu_seconds
    values = add_combinations(bank, weights, entries, sums)
    return PartialSums(values, spent + time.thread_time() - begun)


def take_rows(bank: MemoryBank, lines: Ints) -> Floating:
    """Return copies of some kernels of a shard, (s, E)."""
    [rows] = bank.rows(lines)
    return rows.values[rows.lines]


def take_entries(bank: MemoryBank, entries: slice) -> Floating:
    """Return copies of some entries of all kernels of a shard."""
    return bank.slab_of(slice(0, bank.n_kernels), entries).values.copy()


def take_diagonals(bank: MemoryBank, kernels: slice) -> Floating:
    """Return the self-similarities of some kernels of a shard, (k, n)."""
    lines = np.arange(kernels.start, kernels.stop)
    [rows] = bank.rows(lines)
    return rows.values[np.ix_(rows.lines, bank.layout.diagonal)]


def inside(kernels: Ints, shard: slice) -> Bools:
    """Return which of some kernels a shard holds, (s,)."""
    held: Bools = (kernels >= shard.start) & (kernels < shard.stop)
    return held


def named_kernels(request: Request) -> Ints | None:
    """Return the kernels that a request names; None if it is about all."""
    return request.kernels if isinstance(request, Matvec | Quadratic) else None


def _part_of(request: Request, shard: slice) -> Request:
    """Return what a request asks of a shard, in arrays that compiled functions may be given.

    Functions are compiled for arrays that can be written; those of another process may not be.
    """
    if isinstance(request, Matvec | Quadratic):
        request = replace(request, vectors=np.require(request.vectors, requirements="W"))
        if request.kernels is not None:
            own = request.kernels[inside(request.kernels, shard)] - shard.start
            return replace(request, kernels=own)
    return request


MOST_CALLS = 512  # of one combination: each costs a scheduler about a millisecond
Work = Callable[..., Any]


class ShardCalls(Protocol):
    """Calls of functions on the shards of one bank, wherever these are.

    A handle stands for a value that may be elsewhere.
    """

    def put(self, value: Any) -> Any:
        """Return a handle of a value, as an argument of several calls."""

    def call(self, shard: int, work: Work, *arguments: Any) -> Any:
        """Begin ``work(bank of the shard, *arguments)``; return a handle of what it returns.

        Arguments that are handles are replaced by their values.  Their arrays may be read-only.
        """

    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for calls; return what they returned, or raise what one of them raised."""


class ShardedBank(Bank):
    """A bank of which others hold the shards.

    `shards`: kernels of each shard, in order, as :func:`mkldist.bank.shards.cut` makes them.
    `row_cache_bytes`: memory for single kernels; at least one is kept.
    """

    def __init__(
        self, calls: ShardCalls, shards: Sequence[slice], shape: BankShape, row_cache_bytes: int
    ) -> None:
        super().__init__(shape.n_kernels, shape.layout, np.dtype(shape.dtype))
        self._calls, self._shards = calls, tuple(shards)
        budget = MemoryBudget(row_cache_bytes)
        self._kept = RowCache(self.layout.n_entries, self.dtype, budget, self.n_kernels)

    @property
    def sparse_limit(self) -> int:
        """Largest number of kernels that cost less one by one than by a pass."""
        return min(super().sparse_limit, self._kept.capacity)

    @property
    def shares_rows(self) -> bool:
        """True, because requests that go out together take one journey."""
        return True

    def load(self) -> None:
        """Have all shards made, so that no request waits for that."""
        self._calls.results([self._calls.call(i, n_kernels_of) for i in range(len(self._shards))])

    def own_answers(self, requests: Sequence[Request]) -> dict[int, Answer]:
        """Answer all requests, as :func:`mkldist.bank.passes.answer` does for other banks."""
        combines = {at: one for at, one in enumerate(requests) if isinstance(one, Combine)}
        others = {at: one for at, one in enumerate(requests) if at not in combines}
        known = {at: found for at, one in others.items() if (found := self._known(one)) is not None}
        asked = {at: one for at, one in others.items() if at not in known}
        wanted = list(asked.values())
        # The handle lives until the answers are here: a shard that is lost answers again.
        shared = self._calls.put(wanted) if wanted else None
        begun = self._ask(wanted, shared)
        combined, dense = combine_sparse(self, combines)
        self._combine(dense, counted=any(map(_is_of_columns, wanted)))
        joined = self._joined(wanted, begun)
        return {**known, **combined, **dict(zip(asked, joined, strict=True))}

    def chunks(self) -> Iterator[Chunk]:
        """Fetch the entries of one shard after the other."""
        for entries in slabs(self.layout):
            for shard, kernels in enumerate(self._shards):
                yield Chunk(kernels, entries, self._fetched({shard: entries}, take_entries)[shard])

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Return some kernels, fetched from their shards unless they are kept."""
        yield from self._kept.rows(kernels, self._fetch)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Fetch the diagonals of one shard after the other."""
        for shard, kernels in enumerate(self._shards):
            for some in kernel_groups(kernels.stop - kernels.start, self.n_points):
                values = self._fetched({shard: some}, take_diagonals)[shard]
                own = slice(kernels.start + some.start, kernels.start + some.stop)
                yield DiagonalPart(own, slice(0, self.n_points), values)

    def close(self) -> None:
        """Give back the memory of kept kernels."""
        self._kept.clear()

    def _known(self, request: Request) -> Floats | None:
        """Return radii that were computed before; None for any other answer."""
        if not isinstance(request, Radii):
            return None
        found = self.known_radii.get(points_id(request.index, self.n_points))
        return None if found is None else found.copy()

    def _ask(self, requests: list[Request], shared: Any) -> dict[int, Any]:
        """Send requests, and their list's handle, to shards; return handles of answers."""
        concerned = [i for i, own in enumerate(self._shards) if _concern(requests, own)]
        self.counter.bytes_moved += len(concerned) * sum(map(_n_bytes, requests))
        return {i: self._calls.call(i, answer_part, self._shards[i], shared) for i in concerned}

    def _joined(self, requests: list[Request], begun: dict[int, Any]) -> list[Floats]:
        """Return the answers to requests from those of the shards."""
        found: list[PartialAnswers] = self._calls.results(list(begun.values()))
        self._count([part.spent for part in found])
        kernels = [self._shards[shard] for shard in begun]
        joined = []
        for place, request in enumerate(requests):
            parts = [part.answers[place] for part in found]
            self.counter.bytes_moved += sum(part.nbytes for part in parts)
            joined.append(_side_by_side(request, kernels, parts))
            if isinstance(request, Radii):
                self.known_radii[points_id(request.index, self.n_points)] = joined[-1].copy()
        return joined

    def _count(self, spent: Sequence[PassCounter]) -> None:
        """Count the work of shards: what each does to its part of the bank is done once."""
        for name in ("passes", "diagonals", "radii"):
            most = max((getattr(one, name) for one in spent), default=0)
            setattr(self.counter, name, getattr(self.counter, name) + most)
        for name in ("matvecs", "bytes_read", "threads_cpu_seconds"):
            total = sum(getattr(one, name) for one in spent)
            setattr(self.counter, name, getattr(self.counter, name) + total)

    def _combine(self, dense: Sequence[WeightedSum], *, counted: bool) -> None:
        """Write combinations of many kernels to their targets.

        `counted` is True if requests beside them count as this pass.
        """
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
        found: list[PartialSums] = self._calls.results(sums)
        packed = np.concatenate([part.values for part in found], axis=1)
        for wanted, entries_of in zip(dense, packed, strict=True):
            self.layout.unpack(entries_of, out=wanted.target)
        n_kernels = sum(self._shards[i].stop - self._shards[i].start for i in used)
        self.counter.passes += not counted
        self.counter.bytes_read += n_kernels * self.layout.n_entries * self.dtype.itemsize
        self.counter.bytes_moved += 8 * len(dense) * n_kernels + len(used) * packed.nbytes
        self.counter.threads_cpu_seconds += sum(part.cpu_seconds for part in found)

    def _pieces(self, n_shards: int) -> Iterator[slice]:
        """Cut the entries into slices of whole slabs, enough to keep all shards at work."""
        whole = list(slabs(self.layout))
        wanted = max(1, min(2 * n_shards, MOST_CALLS // n_shards)) if n_shards > 1 else 1
        step = -(-len(whole) // wanted)
        for first in range(0, len(whole), step):
            yield slice(whole[first].start, whole[first : first + step][-1].stop)

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        """Copy kernels from their shards."""
        wanted = np.array(kernels)
        places = {i: np.flatnonzero(inside(wanted, own)) for i, own in enumerate(self._shards)}
        places = {i: place for i, place in places.items() if len(place)}
        lines = {i: wanted[place] - self._shards[i].start for i, place in places.items()}
        for shard, values in self._fetched(lines, take_rows).items():
            for place, row in zip(places[shard], values, strict=True):
                rows[place][...] = row

    def _fetched(self, wanted: dict[int, Any], take: Work) -> dict[int, Floating]:
        """Return entries that some shards hold."""
        begun = [self._calls.call(shard, take, what) for shard, what in wanted.items()]
        found = dict(zip(wanted, self._calls.results(begun), strict=True))
        n_bytes = sum(values.nbytes for values in found.values())
        self.counter.bytes_read += n_bytes
        self.counter.bytes_moved += n_bytes
        return found


def _is_of_columns(request: Request) -> bool:
    """Return True for a request that a pass answers together with combinations."""
    return isinstance(request, Inner | Quadratic) and named_kernels(request) is None


def _concern(requests: Sequence[Request], shard: slice) -> bool:
    """Return True if any request is about all kernels or one of a shard."""
    named = (named_kernels(request) for request in requests)
    return any(kernels is None or bool(inside(kernels, shard).any()) for kernels in named)


def _side_by_side(request: Request, shards: Sequence[slice], parts: Sequence[Floats]) -> Floats:
    """Return the answer to a request, given those of shards, which hold all of its kernels."""
    match request:
        case Matvec(kernels, vectors):
            joined = np.empty((len(kernels), *vectors.shape))
        case Quadratic(vectors, np.ndarray() as kernels):
            joined = np.empty((len(kernels), *vectors.shape[1:]))
        case _:
            return np.concatenate(parts)
    for shard, part in zip(shards, parts, strict=True):
        joined[inside(kernels, shard)] = part
    return joined


def _n_bytes(request: Request) -> int:
    """Return the bytes of the arrays of a request."""
    return sum(value.nbytes for value in vars(request).values() if isinstance(value, np.ndarray))
