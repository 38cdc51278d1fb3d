"""What the coordinator tells other processes of the runs and banks at work."""

from __future__ import annotations

import pytest

from mkldist.results.folder import AtWork, read_work_note
from mkldist.run.sweep_loop import StatusWriter
from mkldist.run.sweep_setup import BankKey
from mkldist.run.work_queue import BatchItem, BuildItem
from tests.run.sweeps import plan_of, sweep_text

PLAN = plan_of(sweep_text({"level": [1.0, 10.0], "uniform": [1.0]}, repeats=2))
BANKS = [BankKey(bank.id, bank.spec.label, bank.dataset) for bank in PLAN.banks]


@pytest.fixture
def now(monkeypatch):
    """Seconds of the clock, to be set."""
    seconds = [0.0]
    monkeypatch.setattr("mkldist.run.sweep_loop.time.monotonic", lambda: seconds[0])
    return seconds


def batch(split):
    runs = tuple(run for run in PLAN.runs if run.split == split)
    return BatchItem(runs[0].bank, runs)


def test_runs_are_told_by_method_without_those_recorded(tmp_path, now):
    first, second = batch(0), batch(1)
    writer = StatusWriter(tmp_path, BANKS)
    recorded = {run.id for run in first.runs if run.params["C"] == 10.0 or run.key == "uniform"}
    begun = [(first, 5.0), (second, 3.0), (BuildItem(BANKS[0].id, (0, 1)), 4.0)]
    writer.write(begun, {first.key: "solving", second.key: "solving"}, recorded)
    assert read_work_note(tmp_path) == [
        AtWork("two_moons/level", "solving", 3.0, 3, (0, 1), {"C": [1.0, 10.0]}),
        AtWork("two_moons/uniform", "solving", 3.0, 1, (1,), {"C": [1.0]}),
        AtWork("two_moons/bank", "building the bank", 4.0),
    ]
    writer.end()
    assert not list(tmp_path.iterdir())


def test_the_bank_is_named_where_there_are_several(tmp_path, now):
    item = batch(0)
    banks = [*BANKS, BankKey("id", "other", "two_moons")]
    StatusWriter(tmp_path, banks).write([(item, 0.0)], {}, ())
    assert [(one.place, one.doing) for one in read_work_note(tmp_path)] == [
        ("two_moons/bank/level", "starting"),
        ("two_moons/bank/uniform", "starting"),
    ]


def test_notes_are_written_when_something_has_changed_and_not_too_often(tmp_path, now, monkeypatch):
    written = []
    monkeypatch.setattr(
        "mkldist.run.sweep_loop.write_work_note", lambda folder, at_work: written.append(at_work)
    )
    writer, item = StatusWriter(tmp_path, BANKS), batch(0)
    for seconds, stage in [(0.0, "a"), (0.5, "b"), (1.5, "b"), (3.0, "b"), (5.0, "c")]:
        now[0] = seconds
        writer.write([(item, 0.0)], {item.key: stage}, ())
    assert [one[0].doing for one in written] == ["a", "b", "c"]
