"""Shards in the memory of processes, and sweeps on banks that workers hold together."""

from __future__ import annotations

import os
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.bank import MemoryBank
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.sharded import kernel_bytes, take_rows
from mkldist.errors import UnfitClusterError
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.schema import RunState
from mkldist.run.bank_refs import BankRef, bank_inputs
from mkldist.run.cluster import ConnectOptions
from mkldist.run.shards import (
    SHARDS,
    Shard,
    ShardCache,
    WorkerShardCalls,
    assigned,
    open_sharded,
    work_on_shard,
)
from mkldist.run.sweep_setup import bank_refs
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import (
    many_kernels,
    misbehaving_methods,
    records,
    run_here,
    solutions,
    sweep_text,
    wait_until,
)


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


@pytest.fixture
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


@pytest.mark.usefixtures("small_blocks")
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


@pytest.mark.usefixtures("small_blocks")
def test_the_shards_of_a_process_hold_the_values_of_the_bank(ref):
    whole = in_one_memory(ref)
    for first in (0, 4, 8):
        found = ShardCache().bank(shard_of(ref, first, 4))
        assert_array_equal(found._values, whole._values[first : first + 4])
        assert found.counter.bytes_read == 0


@pytest.mark.usefixtures("small_blocks")
def test_no_worker_of_another_version_works_on_a_shard(ref):
    with pytest.raises(UnfitClusterError, match="of mkldist"):
        work_on_shard({"mkldist": "version 0"}, shard_of(ref, 0, 4), take_rows)


@pytest.mark.usefixtures("small_blocks")
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


@pytest.mark.usefixtures("small_blocks")
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
    assert assigned(4, workers, before) == after


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


@pytest.mark.usefixtures("small_blocks")
def test_workers_that_are_not_admitted_keep_no_shard():
    for admitted, homes in ((None, [["a"], ["b"]]), (["b", "gone"], [["b"], ["b"]])):
        client = Workers()
        calls = WorkerShardCalls(client, ["first", "second"], admitted, forgets=False)
        for shard in range(2):
            calls.call(shard, "work")
        assert client.homes == homes


METHODS = {"level": [1.0, 10.0], "uniform": [1.0], "lp_mkl": [10.0], "rmkl": [1.0]}


def kept_bytes() -> int:
    return SHARDS.n_bytes


@pytest.mark.slow
def test_a_sharded_bank_gives_the_results_of_one_in_memory_and_leaves_nothing(tmp_path, scheduler):
    run_here(sweep_text(METHODS, backend="sharded"), tmp_path / "sharded", scheduler)
    assert not (tmp_path / "banks").exists()
    with Client(scheduler, set_as_default=False) as client:
        assert not any(client.run(kept_bytes).values())
    run_here(sweep_text(METHODS, backend="memory"), tmp_path / "memory", scheduler)
    assert (tmp_path / "banks").exists()
    found = {name: records(tmp_path / name).values() for name in ("sharded", "memory")}
    assert [one.state for one in found["sharded"]] == [RunState.COMPLETE] * 10
    assert solutions(tmp_path / "sharded") == solutions(tmp_path / "memory")
    assert all(one.counters["bytes_moved"] > 0 for one in found["sharded"])
    assert not any("bytes_moved" in one.counters for one in found["memory"])


@pytest.mark.slow
@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_two_workers_with_a_shard_each_give_the_results_of_one_memory(tmp_path, execution):
    for backend in ("memory", "sharded"):
        text = many_kernels(METHODS, backend=backend, execution=execution, fit="all")
        with ConnectOptions(n_workers=2).connect() as client:
            run_here(text, tmp_path / backend, client.scheduler_info()["address"])
    assert len(solutions(tmp_path / "memory")) == 10
    assert solutions(tmp_path / "sharded") == solutions(tmp_path / "memory")


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["of the solver", "of a shard"])
def test_a_worker_killed_in_the_middle_has_its_shard_made_again(tmp_path, whose):
    """All solvers have asked for forms, and will ask for combinations, when the worker dies."""
    text = many_kernels({"slow": [float(c) for c in range(1, 12)]}, backend="sharded", repeats=1)
    killed: list[str] = []

    def kill(client: Any) -> None:
        workers: list[int] = []

        def both_hold_shards() -> bool:
            workers[:] = client.run(kept_bytes).values()
            return len(workers) == 2 and all(workers)

        wait_until(both_hold_shards, "both workers hold a shard")
        solving = [w for w, keys in client.processing().items() if any("solve" in k for k in keys)]
        others = client.run(os.getpid)
        for worker, pid in others.items():
            if (worker in solving) == (whose == "of the solver"):
                killed.append(worker)
                os.kill(pid, signal.SIGKILL)

    with misbehaving_methods(), ConnectOptions(n_workers=2).connect() as client:
        killer = threading.Thread(target=kill, args=(client,))
        killer.start()
        outcome = run_here(text, tmp_path / "killed", client.scheduler_info()["address"])
        killer.join()
        run_here(text, tmp_path / "quiet", client.scheduler_info()["address"])
    assert len(killed) == 1
    assert outcome.counts[RunState.COMPLETE] == 11
    assert solutions(tmp_path / "killed") == solutions(tmp_path / "quiet")


def limit_memory(further_bytes: int) -> None:
    """Allow this process so many bytes beyond those that it has."""
    import resource

    lines = Path("/proc/self/status").read_text().splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith("VmData:")]
    most = 1024 * int(kib) + further_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_two_workers_solve_what_one_of_them_cannot_hold(tmp_path):
    """The system refuses each worker more than 600 MiB, and the bank has over 800 MiB."""
    outcomes = {}
    for backend in ("sharded", "memory"):
        text = many_kernels({"level": [10.0]}, backend=backend, repeats=1, fit="all")
        text = (
            text.replace("n = 80", "n = 320")
            .replace("num = 500", "num = 640")
            .replace("[splits]", "[splits]\ntrain_fraction = 0.9")
        )
        with ConnectOptions(n_workers=2).connect() as client:
            address = client.scheduler_info()["address"]
            warm = text.replace("num = 640", "num = 2")  # libraries and compiled code
            run_here(warm, tmp_path / f"{backend}-small", address)
            client.run(limit_memory, 600 * 2**20)
            outcomes[backend] = run_here(text, tmp_path / backend, address)
    [plan] = outcomes["sharded"].plan.banks
    assert plan.n_bytes > 800 * 2**20
    assert outcomes["sharded"].counts[RunState.COMPLETE] == 1
    assert outcomes["memory"].counts[RunState.FAILED] == 1
    [error] = [one.error for one in records(tmp_path / "memory").values()]
    assert "Unable to allocate" in error
