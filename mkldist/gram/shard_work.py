"""What a shard of a bank does: its part of requests and of sums, and copies of its entries.

The functions are called where the shard is.  Arrays from other processes may be read-only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from mkldist.arrays import Bools, Floating, Floats, Ints
from mkldist.gram.bank import MemoryBank, PassCounter
from mkldist.gram.passes import add_combinations, answer
from mkldist.gram.requests import Matvec, Quadratic, Request


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
    """Answer the part of some requests that a shard answers.

    Parameters
    ----------
    bank : MemoryBank
        The shard.
    kernels : slice
        Its kernels in the whole bank.
    requests : list of requests
        Requests to the whole bank, of any kinds but `Combine`.
    """
    begun = time.thread_time()
    answers = answer(bank, [_part_of(request, kernels) for request in requests])
    bank.counter.threads_cpu_seconds += time.thread_time() - begun
    return PartialAnswers(answers, bank.counter)


def add_part(
    bank: MemoryBank, weights: Floats, entries: slice, before: PartialSums | None
) -> PartialSums:
    """Add the kernels of a shard to combinations of those before.

    Parameters
    ----------
    bank : MemoryBank
        The shard.
    weights : (R, k) float64
        Weights of its kernels.
    entries : slice
        The e entries to add, of whole slabs.
    before : PartialSums or None
        Sums over the shards before; None for the first.
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
