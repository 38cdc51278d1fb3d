"""The work queue and its items (`work_items`): every run ends exactly once, however tasks fail."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.planning.model import BatchPlan, RunPlan
from mkldist.planning.planner import shares_of
from mkldist.run.work_queue import MAX_ATTEMPTS, BatchItem, BuildItem, WorkQueue


def run_plan(bank: str, number: int, split: int = 0) -> RunPlan:
    return RunPlan(f"{bank}-{number}", "d", bank, "xu2008", split, "level", "level", {"C": number})


class Bench:
    """A work queue with a storage of sets."""

    def __init__(
        self, n_banks=1, n_runs=4, n_batches=1, n_blocks=3, n_threads=2, backend="stream",
        sharded=(),
    ):  # fmt: skip
        self.recorded: set[str] = set()
        self.complete: set[tuple[str, int]] = set()
        self.n_blocks, self.sharded = n_blocks, {*sharded}
        banks = [f"b{i}" for i in range(n_banks)]
        batches = [
            BatchPlan(
                f"{bank}/{k}",
                bank,
                tuple(run_plan(bank, k * n_runs + i, split=k) for i in range(n_runs)),
            )
            for bank in banks
            for k in range(n_batches)
        ]
        self.runs = {run.id for batch in batches for run in batch.runs}
        self.work_queue = WorkQueue(
            {bank: "sharded" if bank in self.sharded else backend for bank in banks},
            batches, self.missing, lambda run: run in self.recorded, lambda: n_threads,
        )  # fmt: skip

    def missing(self, bank):
        blocks = () if bank in self.sharded else range(self.n_blocks)
        return [i for i in blocks if (bank, i) not in self.complete]

    def build(self, item: BuildItem):
        self.complete |= {(item.bank, block) for block in item.blocks}
        self.work_queue.built(item)

    def record(self, item: BatchItem):
        if item.builds:
            self.complete |= {(item.bank, block) for block in range(self.n_blocks)}
        for run in item.runs:
            assert run.id not in self.recorded
            self.recorded.add(run.id)

    def do(self, item: BatchItem):
        self.record(item)
        self.work_queue.batch_done(item)

    def finish(self):
        for item in iter(self.work_queue.next, None):
            self.do(item)

    def abandon(self, abandoned):
        for one in abandoned:
            assert one.run.id not in self.recorded
            self.recorded.add(one.run.id)

    def build_all(self):
        while isinstance(item := self.work_queue.next(), BuildItem):
            self.build(item)
        return item


def test_batches_wait_for_the_last_block_and_go_before_further_banks():
    bench = Bench(n_banks=2, n_blocks=2)
    first, second = bench.work_queue.next(), bench.work_queue.next()
    assert [item.blocks for item in (first, second)] == [(0,), (1,)]
    bench.build(first)
    third = bench.work_queue.next()
    assert isinstance(third, BuildItem)
    assert third.bank == "b1"
    bench.build(second)
    batch = bench.work_queue.next()
    assert isinstance(batch, BatchItem)
    assert batch.bank == "b0"


def test_batches_are_unfinished_until_they_end_however_they_are_divided():
    bench = Bench(n_banks=2, n_batches=2, n_blocks=0, n_threads=1)
    assert bench.work_queue.unfinished_batches == 4
    batch = bench.work_queue.next()
    assert bench.work_queue.unfinished_batches == 4
    bench.work_queue.batch_failed(batch, "worker died")
    assert bench.work_queue.unfinished_batches == 3 + len(batch.runs)
    bench.finish()
    assert bench.work_queue.unfinished_batches == 0


def test_the_batches_of_a_sharded_bank_stay_whole_and_have_all_workers_for_themselves():
    bench = Bench(n_banks=2, n_batches=2, n_blocks=0, n_threads=4, backend="mmap", sharded=["b0"])
    for _ in range(2):
        item = bench.work_queue.next()
        assert (item.bank, len(item.runs)) == ("b0", 4)
        assert bench.work_queue.next() is None
        bench.do(item)
    assert {bench.work_queue.next().bank for _ in range(2)} == {"b1"}


def test_a_batch_that_killed_its_worker_is_taken_apart_and_only_the_culprit_abandoned():
    bench = Bench(n_runs=4, n_blocks=0)
    batch = bench.work_queue.next()
    bench.recorded.add("b0-0")
    assert bench.work_queue.batch_failed(batch, "worker died") == []
    attempts = []
    while (item := bench.work_queue.next()) is not None:
        assert len(item.runs) == 1
        if item.runs[0].id == "b0-2":
            attempts.append(item.attempt)
            bench.abandon(bench.work_queue.batch_failed(item, "worker died"))
        else:
            bench.do(item)
    assert attempts == list(range(2, MAX_ATTEMPTS + 1))
    assert bench.recorded == bench.runs
    assert bench.work_queue.finished_banks() == ["b0"]
    assert bench.work_queue.finished_banks() == []


def test_a_bank_that_cannot_be_built_takes_only_its_own_runs_along():
    bench = Bench(n_banks=2, n_blocks=1)
    abandoned = []
    while (item := bench.work_queue.next()) is not None:
        if isinstance(item, BatchItem):
            bench.do(item)
        elif item.bank == "b0":
            abandoned += bench.work_queue.build_failed(item, "overflow")
        else:
            bench.build(item)
    assert {one.run.id for one in abandoned} == {f"b0-{i}" for i in range(4)}
    assert {one.error for one in abandoned} == {"overflow"}
    assert bench.recorded == {f"b1-{i}" for i in range(4)}


def test_batches_build_banks_that_they_load_while_there_is_one_for_every_thread():
    bench = Bench(n_banks=3, n_blocks=4, n_threads=2, backend="memory")
    items = [bench.work_queue.next() for _ in range(4)]
    assert [(type(item), item.bank) for item in items] == [
        (BatchItem, "b0"), (BatchItem, "b1"), (BuildItem, "b2"), (BuildItem, "b2"),
    ]  # fmt: skip
    assert all(item.builds for item in items[:2])
    for item in items[2:]:
        bench.build(item)
    assert not bench.work_queue.next().builds


def test_a_batch_that_cannot_build_its_bank_is_not_tried_again():
    bench = Bench(n_banks=2, n_threads=1, backend="memory")
    bench.abandon(bench.work_queue.batch_failed(bench.work_queue.next(), "not finite", final=True))
    assert bench.recorded == {f"b0-{i}" for i in range(4)}
    bench.do(bench.work_queue.next())
    assert bench.recorded == bench.runs
    assert bench.work_queue.finished_banks() == ["b0", "b1"]


def test_a_damaged_bank_that_a_batch_was_to_build_is_built_before_it_goes_on():
    bench = Bench(n_threads=1, backend="memory")
    batch = bench.work_queue.next()
    assert batch.builds
    bench.work_queue.bank_damaged(batch, "flipped bit")
    again = bench.build_all()
    assert not again.builds
    assert again.runs == batch.runs


def test_a_damaged_bank_is_built_again_before_its_batches_go_on():
    bench = Bench(n_batches=2)
    batch = bench.build_all()
    bench.complete.discard(("b0", 1))
    assert bench.work_queue.bank_damaged(batch, "block 1") == []
    rebuild = bench.work_queue.next()
    assert rebuild == BuildItem("b0", (1,))
    assert bench.work_queue.next() is None
    bench.build(rebuild)
    bench.finish()
    assert bench.recorded == bench.runs


def test_a_bank_that_is_damaged_for_ever_is_abandoned():
    bench = Bench(n_blocks=1)
    item = bench.build_all()
    abandoned = []
    for _ in range(MAX_ATTEMPTS):
        assert not abandoned
        bench.complete.clear()
        abandoned = bench.work_queue.bank_damaged(item, "block 0")
        if not abandoned:
            item = bench.build_all()
    assert len(abandoned) == 4
    assert bench.work_queue.next() is None


def test_batches_that_met_the_same_damage_count_as_one_repair():
    bench = Bench(n_batches=6, n_blocks=2, n_threads=3)
    in_flight = [bench.build_all()] + [bench.work_queue.next() for _ in range(5)]
    bench.complete.discard(("b0", 0))
    for late in in_flight:
        # The damage of each report is repaired before the next report comes.
        assert bench.work_queue.bank_damaged(late, "block 0") == []
        while isinstance(item := bench.work_queue.next(), BuildItem):
            bench.build(item)
        if item is not None:
            bench.do(item)
    bench.finish()
    assert bench.recorded == bench.runs


def test_batches_that_met_different_damage_at_once_count_as_one_repair():
    bench = Bench(n_batches=5, n_blocks=5, n_threads=5)
    in_flight = [bench.build_all()] + [bench.work_queue.next() for _ in range(4)]
    for block, batch in enumerate(in_flight):
        bench.complete.discard(("b0", block))
        assert bench.work_queue.bank_damaged(batch, f"block {block}") == []
    rebuilt = []
    while (item := bench.work_queue.next()) is not None:
        if isinstance(item, BuildItem):
            rebuilt += item.blocks
            bench.build(item)
        else:
            assert len(bench.complete) == 5
            bench.do(item)
    assert sorted(rebuilt) == list(range(5))
    assert bench.recorded == bench.runs


def test_batches_are_divided_among_the_threads_that_are_there():
    def sizes(n_threads):
        bench = Bench(n_runs=3, n_batches=12, n_blocks=0, n_threads=n_threads)
        items = [*iter(bench.work_queue.next, None)]
        for item in items:
            bench.do(item)
        assert bench.recorded == bench.runs
        assert bench.work_queue.finished_banks() == ["b0"]
        return [len({run.split for run in item.runs}) for item in items]

    assert sizes(1) == [6, 6]
    assert sizes(3) == [2] * 6
    assert sizes(100) == [1] * 12


def test_the_last_batches_are_divided_among_idle_threads():
    def sizes(n_threads, **changes):
        bench = Bench(n_runs=5, n_blocks=0, n_threads=n_threads, backend="mmap", **changes)
        items = [*iter(bench.work_queue.next, None)]
        assert bench.work_queue.unfinished_batches == len(items)
        for item in items:
            bench.do(item)
        assert bench.recorded == bench.runs
        return [len(item.runs) for item in items]

    assert sizes(1) == [5]
    assert sizes(2) == [2, 1, 1, 1]
    assert sizes(2, n_banks=3) == [5, 5, 2, 1, 1, 1]  # a thread that ends early takes more
    assert sizes(8, n_batches=2) == [1] * 10
    assert sizes(0, n_batches=2) == [5, 5]  # no thread is known to be idle


def test_a_bank_that_is_abandoned_does_not_keep_other_batches_from_being_divided():
    bench = Bench(n_banks=2, n_runs=5, n_blocks=2, backend="mmap")
    builds = [bench.work_queue.next() for _ in range(4)]
    hopeless = next(item for item in builds if item.bank == "b0")
    bench.abandon(bench.work_queue.build_failed(hopeless, "no such kernel", final=True))
    for item in builds:
        if item.bank == "b1":
            bench.build(item)
    assert [len(bench.work_queue.next().runs) for _ in range(4)] == [2, 1, 1, 1]
    assert bench.work_queue.next() is None


def test_runs_of_a_path_are_in_one_share():
    path = [replace(run_plan("b", i), on_path=True) for i in range(4)]
    alone = [run_plan("b", i) for i in range(4, 9)]
    shares = shares_of([*path, *alone], 3)
    assert sorted(run.id for share in shares for run in share) == sorted(
        run.id for run in [*path, *alone]
    )
    assert sum(any(run in share for run in path) for share in shares) == 1
    assert [len({run.chain for run in share}) for share in shares] == [2, 2, 2]


def test_banks_without_batches_are_built_too():
    built = []
    work_queue = WorkQueue(
        {"a": "stream", "b": "stream"}, [], lambda bank: [0, 1], lambda run: False, lambda: 1
    )
    while (item := work_queue.next()) is not None:
        built.append((item.bank, item.blocks))
        work_queue.built(item)
    assert built == [("a", (0, 1)), ("b", (0, 1))]
    assert work_queue.finished_banks() == []


def test_a_bank_without_batches_that_cannot_be_built_is_abandoned():
    work_queue = WorkQueue({"a": "stream"}, [], lambda bank: [0], lambda run: False, lambda: 1)
    for _ in range(MAX_ATTEMPTS):
        work_queue.build_failed(work_queue.next(), "no answer")
    assert work_queue.next() is None


@pytest.mark.slow
@settings(deadline=None)
@given(st.data())
def test_every_run_ends_exactly_once(data):
    bench = Bench(
        n_banks=data.draw(st.integers(1, 3)),
        n_runs=data.draw(st.integers(1, 3)),
        n_batches=data.draw(st.integers(1, 2)),
        n_blocks=data.draw(st.integers(0, 5)),
        n_threads=data.draw(st.integers(1, 3)),
        backend=data.draw(st.sampled_from(["stream", "mmap", "memory"])),
        sharded=data.draw(st.sets(st.sampled_from(["b0", "b1", "b2"]))),
    )
    in_flight, finished = [], []
    while True:
        while len(in_flight) < 3 and (item := bench.work_queue.next()) is not None:
            in_flight.append(item)
            assert len(in_flight) == 1 or not bench.sharded & {one.bank for one in in_flight}
        if not in_flight:
            break
        item = in_flight.pop(data.draw(st.integers(0, len(in_flight) - 1)))
        event = data.draw(st.sampled_from(["well", "well", "failed", "damaged"]))
        if isinstance(item, BuildItem):
            if event == "well":
                bench.build(item)
            else:
                bench.abandon(bench.work_queue.build_failed(item, "no", final=event == "damaged"))
        elif event == "well":
            bench.do(item)
        else:
            done = data.draw(st.integers(0, len(item.runs) - 1))
            bench.recorded |= {run.id for run in item.runs[:done]}
            if event == "failed":
                final = item.builds and data.draw(st.booleans())
                bench.abandon(bench.work_queue.batch_failed(item, "died", final=final))
            else:
                bench.complete = {c for c in bench.complete if c[0] != item.bank}
                bench.abandon(bench.work_queue.bank_damaged(item, "bad"))
        finished += bench.work_queue.finished_banks()
    assert bench.recorded == bench.runs
    assert sorted(finished) == sorted({run.rsplit("-", 1)[0] for run in bench.runs})


def test_a_path_is_tried_alone_as_a_whole_and_then_run_by_run():
    path = tuple(replace(run_plan("b", i), on_path=True) for i in range(3))
    batch = BatchPlan("b/0", "b", (*path, run_plan("b", 3)))
    work_queue = WorkQueue({"b": "stream"}, [batch], lambda _: (), {"b-0"}.__contains__, lambda: 1)
    work_queue.batch_failed(work_queue.next(), "killed")
    whole, other = work_queue.next(), work_queue.next()
    assert (whole.runs, other.runs) == (path[1:], batch.runs[3:])
    work_queue.batch_failed(whole, "killed")
    for run in path[1:]:
        item = work_queue.next()
        assert (item.runs, item.attempt) == ((run,), 2)
