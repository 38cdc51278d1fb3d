"""Shards in the memory of a process, and `shard_calls` on them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.bank import MemoryBank
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.sharded import kernel_bytes, take_rows
from mkldist.errors import UnfitClusterError
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.run.bank_refs import BankRef, bank_inputs
from mkldist.run.shards import (
    SHARDS,
    CallsToWorkers,
    Shard,
    ShardCache,
    open_sharded,
    placed,
    work_on_shard,
)
from mkldist.run.sweep_setup import bank_refs
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import sweep_text


@pytest.fixture
def ref(tmp_path: Path) -> BankRef:
    """Bank of 12 kernels, in blocks of 4."""
    text = sweep_text({"uniform": [1.0]}, repeats=1, backend="sharded")
    spec = SweepSpec.model_validate(tomllib.loads(text))
    resolved = resolve(spec, (), tmp_path)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None)
    [bank] = plan.banks
    [found] = bank_refs(plan, resolved, {bank.id}, "", tmp_path / "snapshots").values()
    return found


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("mkldist.bank.bank.BLOCK_KERNELS", 4)
    yield
    SHARDS.clear()


def in_one_memory(ref: BankRef) -> MemoryBank:
    shape, source = ref.plan.shape, bank_inputs(ref).source()
    size = (shape.n_kernels, shape.layout.n_tiles, shape.layout.tile, shape.layout.tile)
    values = np.empty(size)
    source.fill(slice(0, size[0]), slice(0, size[1]), shape.layout, values)
    return MemoryBank(values.reshape(size[0], -1), shape.layout)


def shard_of(ref: BankRef, first: int, most: int) -> Shard:
    """Return the shard of four kernels, for a process that keeps so many kernels."""
    return Shard(ref, slice(first, first + 4), most * kernel_bytes(ref.plan.shape))


def test_a_process_keeps_the_shards_used_last_within_its_memory(ref):
    kept = ShardCache()
    one = kernel_bytes(ref.plan.shape)
    first = kept.bank(shard_of(ref, 0, 8))
    kept.bank(shard_of(ref, 4, 8))
    assert kept.n_bytes == 8 * one
    again = kept.bank(shard_of(ref, 0, 8))
    assert np.shares_memory(first._values, again._values)
    kept.bank(shard_of(ref, 8, 8))  # in place of the second, which was used longest ago
    assert kept.n_bytes == 8 * one
    assert np.shares_memory(first._values, kept.bank(shard_of(ref, 0, 8))._values)
    kept.bank(shard_of(ref, 4, 1))  # one shard is kept, however large
    assert kept.n_bytes == 4 * one
    kept.clear()
    assert kept.n_bytes == 0


def test_the_shards_of_a_process_hold_the_values_of_the_bank(ref):
    whole = in_one_memory(ref)
    for first in (0, 4, 8):
        found = ShardCache().bank(shard_of(ref, first, 4))
        assert_array_equal(found._values, whole._values[first : first + 4])
        assert found.counter.bytes_read == 0


def test_no_worker_of_another_version_works_on_a_shard(ref):
    with pytest.raises(UnfitClusterError, match="of mkldist"):
        work_on_shard({"mkldist": "version 0"}, shard_of(ref, 0, 4), take_rows)


@pytest.mark.parametrize("limit", [None, 2**20])
def test_a_process_without_a_cluster_answers_alone(ref, limit):
    """With little memory it makes one shard after the other, in every pass again."""
    limit = limit and 4 * 4 * kernel_bytes(ref.plan.shape)
    rng = np.random.default_rng(0)
    n, m = ref.plan.n_points, ref.plan.n_kernels
    asked = [Quadratic(rng.standard_normal((n, 3))), Combine(rng.random(m))]
    with ExitStack() as stack:
        bank = open_sharded(ref, limit, stack, forgets=False)
        all_expected = answer(in_one_memory(ref), asked)
        for found, expected in zip(answer(bank, asked), all_expected, strict=True):
            assert_allclose(found, expected, rtol=1e-14)
        assert SHARDS.n_bytes == (bank.n_bytes if limit is None else bank.n_bytes // 3)
        assert bank.counter.threads_cpu_seconds > 0
    assert SHARDS.n_bytes == 0


@pytest.mark.parametrize(
    ("before", "workers", "after"),
    [
        ({}, "ab", {0: "a", 1: "b", 2: "a", 3: "b"}),
        ({0: "a", 1: "b", 2: "a", 3: "b"}, "abc", {0: "a", 1: "b", 2: "a", 3: "b"}),
        ({0: "a", 1: "b", 2: "a", 3: "b"}, "bc", {1: "b", 3: "b", 0: "c", 2: "c"}),
        ({0: "a", 1: "a", 2: "a", 3: "a"}, "abcd", {0: "a", 1: "b", 2: "c", 3: "d"}),
        ({0: "a", 1: "b", 2: "a", 3: "b"}, "b", {0: "b", 1: "b", 2: "b", 3: "b"}),
    ],
)
def test_shards_stay_where_they_are_unless_a_worker_has_more_than_its_share(before, workers, after):
    assert placed(4, workers, before) == after


class Workers:
    """A client of two workers that notes where calls go."""

    def __init__(self) -> None:
        self.homes: list[list[str]] = []

    def nthreads(self):
        return {"a": 1, "b": 1}

    def scatter(self, values, hash):
        return values

    def submit(self, function, *arguments, workers, **_):
        self.homes.append(workers)


def test_workers_that_are_not_admitted_keep_no_shard():
    for admitted, homes in ((None, [["a"], ["b"]]), (["b", "gone"], [["b"], ["b"]])):
        client = Workers()
        calls = CallsToWorkers(client, ["first", "second"], admitted, forgets=False)
        for shard in range(2):
            calls.call(shard, "work")
        assert client.homes == homes
