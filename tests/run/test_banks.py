"""Banks for workers, with snapshots that are fetched; shards in the memory of processes."""

import os
import signal
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank import MemoryBank
from mkldist.bank.byte_store import ByteStore
from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.errors import OutputError, StoreError, UnfitClusterError
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.schema import RunState
from mkldist.run.bank_refs import BankRef, bank_inputs, fetched_snapshot
from mkldist.run.cluster import ConnectOptions
from mkldist.run.shards import (
    SHARDS,
    Shard,
    ShardCache,
    ShardCalls,
    assigned,
    take_rows,
    work_on_shard,
)
from mkldist.run.sweep_setup import BankKey, bank_refs
from mkldist.run.worker_pool import SnapshotPublisher
from mkldist.spec.model import SweepSpec
from tests.run.here import SchedulerInMemory
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
    return Shard(ref, slice(first, first + 4), most * ref.plan.shape.kernel_bytes)


@pytest.mark.usefixtures("small_blocks")
def test_a_process_keeps_the_shards_used_last_within_its_memory(ref):
    kept = ShardCache()
    one = ref.plan.shape.kernel_bytes
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
        calls = ShardCalls(client, ["first", "second"], admitted, forgets=False)
        for shard in range(2):
            calls.call(shard, "work")
        assert client.homes == homes


METHODS = {"level": [1.0, 10.0], "uniform": [1.0], "lp_mkl": [10.0], "rmkl": [1.0]}


def kept_bytes() -> int:
    return SHARDS.n_bytes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "execution"), [(1, "shared"), (2, "shared"), (2, "isolated")], ids=str
)
def test_a_sharded_bank_gives_the_results_of_one_in_memory_and_leaves_nothing(
    tmp_path, workers, execution
):
    sweep = many_kernels if workers == 2 else sweep_text
    for backend in ("sharded", "memory"):
        text = sweep(METHODS, backend=backend, execution=execution, fit="all")
        with ConnectOptions(n_workers=workers).connect() as client:
            run_here(text, tmp_path / backend, client.scheduler_info()["address"])
            assert not any(client.run(kept_bytes).values())
        assert (tmp_path / "banks").exists() == (backend == "memory")
    found = {name: records(tmp_path / name).values() for name in ("sharded", "memory")}
    assert [one.state for one in found["sharded"]] == [RunState.COMPLETE] * 10
    assert solutions(tmp_path / "sharded") == solutions(tmp_path / "memory")
    assert all(one.counters["bytes_moved"] > 0 for one in found["sharded"])
    assert not any("bytes_moved" in one.counters for one in found["memory"])


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


SWEEP = """
name = "s"
[[datasets]]
name = "two_moons"
options = { n = 30 }
[preprocessing]
fit = "all"
[[banks]]
name = "plain"
normalisation = "none"
kernels = [{ function = "gaussian", widths = [1.0, 2.0] }]
[[banks]]
name = "traced"
normalisation = "trace"
kernels = [{ function = "gaussian", widths = [1.0, 2.0] }]
[[banks]]
name = "other"
kernels = [{ function = "gaussian", widths = [3.0] }]
[[methods]]
name = "uniform"
"""


@pytest.fixture(scope="module")
def planned():
    spec = SweepSpec.model_validate(tomllib.loads(SWEEP))
    resolved = resolve(spec, (), Path())
    return make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None), resolved


def test_banks_of_equal_kernels_share_a_store_but_no_reference(planned, tmp_path):
    plan, resolved = planned
    wanted = {bank.id for bank in plan.banks}
    refs = bank_refs(plan, resolved, wanted, "memory://banks", tmp_path)
    assert {key.label for key in refs} == {"plain", "traced", "other"}
    ids = {key.label: key.id for key in refs}
    assert ids["plain"] == ids["traced"] != ids["other"]
    assert {key.dataset for key in refs} == {"two_moons"}
    for key, ref in refs.items():
        assert (ref.plan.id, ref.plan.spec.label, ref.root) == (key.id, key.label, "memory://banks")
    assert {BankKey.of(run) for run in plan.runs} == refs.keys()


def test_workers_read_the_data_and_splits_of_the_sweep(planned, tmp_path):
    plan, resolved = planned
    refs = bank_refs(plan, resolved, {bank.id for bank in plan.banks}, "memory://b", tmp_path)
    [snapshot] = {ref.snapshot for ref in refs.values()}
    dataset, splits = load_snapshot(Path(snapshot))
    [(own, own_splits)] = resolved.datasets.values()
    np.testing.assert_array_equal(dataset.x, own.x)
    np.testing.assert_array_equal(dataset.y, own.y)
    assert [split.train.tolist() for split in splits] == [s.train.tolist() for s in own_splits]
    assert {ref.data_fingerprint for ref in refs.values()} == {dataset.fingerprint}


def test_banks_that_no_run_waits_for_are_left_out(planned, tmp_path):
    plan, resolved = planned
    [other] = {bank.id for bank in plan.banks if bank.spec.label == "other"}
    assert {key.label for key in bank_refs(plan, resolved, {other}, "b", tmp_path)} == {"other"}
    assert bank_refs(plan, resolved, (), "b", tmp_path / "none") == {}
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_is_named(planned, tmp_path):
    plan, resolved = planned
    (tmp_path / "snapshots").write_text("a file")
    with pytest.raises(OutputError, match="snapshots"):
        bank_refs(plan, resolved, {plan.banks[0].id}, "b", tmp_path / "snapshots")


@pytest.fixture
def memory_scheduler(monkeypatch: pytest.MonkeyPatch) -> SchedulerInMemory:
    return SchedulerInMemory().install(monkeypatch)


@pytest.fixture
def publisher(memory_scheduler: SchedulerInMemory, tmp_path: Path) -> SnapshotPublisher:
    return SnapshotPublisher(memory_scheduler, tmp_path / "out")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    rows = np.arange(4)
    data = Dataset("d", np.eye(4), np.array([1.0, 1.0, -1.0, -1.0]), ("a", "b"))
    save_snapshot(tmp_path / "out" / "snapshots" / "name", data, [Split(rows[:2], rows[2:])])
    return tmp_path / "out" / "snapshots" / "name"


@pytest.mark.parametrize("banks", ["", "memory://banks-of-others"])
def test_a_machine_fetches_a_snapshot_once_and_what_is_damaged_again(
    publisher, snapshot, tmp_path, monkeypatch, banks, memory_scheduler
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    origin = publisher.publish(snapshot, banks)
    assert bool(memory_scheduler.files) == (not banks)
    folder = fetched_snapshot("name", origin)
    assert folder.is_relative_to(tmp_path / "cache")
    data, (split,) = load_snapshot(folder)
    np.testing.assert_array_equal(data.x, np.eye(4))
    np.testing.assert_array_equal(split.test, [2, 3])
    assert fetched_snapshot("name", origin) == folder
    [x] = folder.glob("x-*.npy")
    x.write_bytes(x.read_bytes()[:-1] + b"\xff")
    fetched_snapshot("name", origin)
    load_snapshot(folder)
    publisher.close()
    assert not memory_scheduler.files


@pytest.mark.parametrize("banks", ["", "memory://nothing-here"])
def test_a_snapshot_that_is_nowhere_is_told(memory_scheduler, tmp_path, monkeypatch, banks):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    with pytest.raises(StoreError, match="no such file"):
        fetched_snapshot("name", banks or "prefix")


@pytest.mark.parametrize("pattern", ["x-*.npy", "snapshot.json"])
def test_a_flipped_bit_in_an_object_store_is_told_and_mended_by_the_next_sweep(
    publisher, snapshot, tmp_path, monkeypatch, pattern
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    banks = f"memory://flipped-{pattern[0]}"
    store, [name] = ByteStore(banks, "snapshots/name"), [p.name for p in snapshot.glob(pattern)]
    origin = publisher.publish(snapshot, banks)
    whole = store.get(name)
    assert whole is not None
    place = len(whole) - 5
    store.put(name, [whole[:place], bytes([whole[place] ^ 4]), whole[place + 1 :]])
    with pytest.raises(StoreError, match=rf"{banks}: snapshot name: found {name}, which arrives"):
        fetched_snapshot("name", origin)
    put: list[str] = []
    real = ByteStore.put

    def noting(self, name, parts):
        put.append(name)
        real(self, name, parts)

    monkeypatch.setattr(ByteStore, "put", noting)
    publisher.publish(snapshot, banks)
    assert (put, store.get(name)) == ([name], whole)
    data, _ = load_snapshot(fetched_snapshot("name", origin))
    np.testing.assert_array_equal(data.x, np.eye(4))
    publisher.publish(snapshot, banks)
    assert put == [name]


def test_what_the_scheduler_hands_on_damaged_is_told(
    publisher, snapshot, tmp_path, monkeypatch, memory_scheduler
):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    origin = publisher.publish(snapshot, "")
    [name] = [name for name in memory_scheduler.files if "/x-" in name]
    memory_scheduler.files[name] = memory_scheduler.files[name][:-1] + b"\xff"
    with pytest.raises(StoreError, match=r"the scheduler: snapshot name: found x-.* damaged"):
        fetched_snapshot("name", origin)
