"""Records that are carried into the tree of results, however a sweep ends."""

from __future__ import annotations

import pytest

from mkldist.errors import UnreadableError
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results
from mkldist.run import sweep_loop
from mkldist.run.consolidate import FLUSH_RUNS, Consolidator
from mkldist.run.sweep_loop import SweepLoop
from tests.run.here import TEXT, sweep


def test_a_record_that_cannot_be_read_now_waits_for_the_next_flush(tmp_path, client, monkeypatch):
    output = tmp_path / "small"
    outcome = sweep(TEXT, output)
    store = RecordStore(output / "records")
    first, second, *_ = (run.id for run in outcome.plan.runs)
    consolidator = Consolidator(output / "results.zarr", store)
    consolidator.add([first, second, "not there yet"])
    real = store.read

    def read(run_id):
        if run_id == second:
            raise UnreadableError(run_id, "cannot be read")
        return real(run_id)

    with monkeypatch.context() as patch:
        patch.setattr(store, "read", read)
        consolidator.flush()
    assert list(consolidator._waiting) == [second, "not there yet"]
    consolidator.flush()
    assert list(consolidator._waiting) == ["not there yet"]
    consolidator.add([first, second])
    assert list(consolidator._waiting) == ["not there yet"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_the_tree_holds_what_was_recorded_however_a_sweep_ends(
    tmp_path, client, monkeypatch, error
):
    real = sweep_loop.solve_batch
    done = []

    def solve_batch(task):
        if len(done) == 2:
            raise error
        done.append(real(task))
        return done[-1]

    monkeypatch.setattr(sweep_loop, "solve_batch", solve_batch)
    if error is MemoryError:
        monkeypatch.setattr(SweepLoop, "_settle_batch", lambda *_: (_ for _ in ()).throw(error()))
    output = tmp_path / "small"
    with pytest.raises(error):
        sweep(TEXT, output)
    n_records = len(RecordStore(output / "records").ids())
    assert 0 < n_records < 6
    with open_results(output) as tree:
        assert int((tree["two_moons/uniform"].state == "complete").sum()) == n_records


def test_an_interrupt_while_the_last_results_are_written_loses_none(tmp_path, client, monkeypatch):
    real = Consolidator.flush
    begun = []

    def flush(self):
        begun.append(self)
        if len(begun) == 1:
            raise KeyboardInterrupt
        real(self)

    monkeypatch.setattr(Consolidator, "flush", flush)
    with pytest.raises(KeyboardInterrupt, match="6 of 6 runs are recorded; resume with"):
        sweep(TEXT, tmp_path / "small")
    with open_results(tmp_path / "small") as tree:
        assert int((tree["two_moons/uniform"].state == "complete").sum()) == 6


def test_many_runs_do_not_wait_long(tmp_path, monkeypatch):
    consolidator = Consolidator(tmp_path / "results.zarr", RecordStore(tmp_path / "records"))
    begun = []
    monkeypatch.setattr(consolidator, "begin", lambda: begun.append(len(consolidator._waiting)))
    consolidator.add(f"{i}" for i in range(FLUSH_RUNS - 1))
    consolidator.flush_if_due()
    assert begun == []
    consolidator.add(["one more"])
    consolidator.flush_if_due()
    assert begun == [FLUSH_RUNS]
    consolidator._written.update(f"w{i}" for i in range(40 * FLUSH_RUNS))
    consolidator.flush_if_due()
    assert len(begun) == 1  # a twentieth of those written may wait
