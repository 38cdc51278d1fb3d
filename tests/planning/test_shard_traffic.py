"""Traffic of shards that a plan expects, beside that of a bank that moves them."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.bank import TileLayout, block_kernels
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.sharded import kernel_bytes
from mkldist.bank.store import BankShape
from mkldist.core.memory import shard_bytes
from mkldist.planning.costs import shard_traffic
from mkldist.planning.model import BankPlan
from tests.bank.bank_suite import random_grams
from tests.bank.test_sharded import sharded
from tests.planning.plans import dataset, grid, plan_of


def bank_plan(n_points: int, n_kernels: int) -> BankPlan:
    plan = plan_of(
        {"d": dataset("d", 2 * n_points, n_splits=1)},
        {"level": grid("level", C=[1.0])},
        n_kernels=n_kernels,
        banks=[{"family": "xu2008", "backend": "sharded", "dtype": "float64"}],
    )
    return plan.banks[0]


@pytest.mark.parametrize("n_workers", [1, 2, 5])
def test_a_bank_of_shards_moves_what_its_plan_expects(monkeypatch, n_workers):
    monkeypatch.setattr("mkldist.bank.bank.BLOCK_KERNELS", 8)
    bank = sharded(random_grams(40, 30), n_shards=n_workers)
    expected = shard_traffic(bank_plan(n_points=30, n_kernels=40), None, n_workers)
    assert expected.n_shards == n_workers
    answer(bank, [Quadratic(np.ones(30))])
    assert bank.counter.bytes_moved == expected.pass_bytes
    answer(bank, [Combine(np.ones(40))])
    assert bank.counter.bytes_moved == expected.pass_bytes + expected.sum_bytes


def test_no_shard_is_larger_than_a_worker_holds():
    shape = BankShape(100_000, TileLayout.for_points(200), "float64")
    block = block_kernels(shape.layout) * kernel_bytes(shape)
    limit = 64 * block
    found = shard_traffic(bank_plan(n_points=200, n_kernels=100_000), limit, 2)
    assert found.largest_bytes <= shard_bytes(limit)
    assert found.n_shards * found.largest_bytes >= 100_000 * kernel_bytes(shape)
