"""Shards of a bank as a plan expects them, and the bytes that go to and from them."""

from __future__ import annotations

from dataclasses import dataclass

from mkldist.gram.shards import cut, kernel_bytes
from mkldist.memory import FLOAT_BYTES, shard_bytes
from mkldist.planning.model import BankPlan


@dataclass(frozen=True)
class ShardTraffic:
    """Shards of a bank, and what requests move between them and the solver.

    Parameters
    ----------
    n_shards : int
        Number of shards.
    largest_bytes : int
        Bytes of the largest shard.
    pass_bytes : int
        Bytes that a pass moves for one vector: the vector to every shard, its forms back.
    sum_bytes : int
        Bytes that a combination of all kernels moves: the weights, and the sum from shard to shard.
    """

    n_shards: int
    largest_bytes: int
    pass_bytes: int
    sum_bytes: int


def shard_traffic(bank: BankPlan, memory_limit: int | None, n_workers: int) -> ShardTraffic:
    """Return the shards of a bank and their traffic.

    Parameters
    ----------
    bank : BankPlan
        The bank.
    memory_limit : int or None
        Bytes that a worker may take; None without a limit.
    n_workers : int
        Number of workers.
    """
    shards = cut(bank.shape, shard_bytes(memory_limit), n_workers)
    largest = max(shard.stop - shard.start for shard in shards) * kernel_bytes(bank.shape)
    of_kernels = FLOAT_BYTES * bank.n_kernels
    return ShardTraffic(
        n_shards=len(shards),
        largest_bytes=largest,
        pass_bytes=FLOAT_BYTES * len(shards) * bank.n_points + of_kernels,
        sum_bytes=FLOAT_BYTES * len(shards) * bank.shape.layout.n_entries + of_kernels,
    )
