"""The note of what a sweep is at work on: written by one process, read by another."""

from __future__ import annotations

from mkldist.results.folder import (
    WORK_NOTE,
    AtWork,
    put_together,
    read_work_note,
    remove_work_note,
    write_work_note,
)

FIRST = AtWork("heart/level", "solving", 20.0, 2, (0,), {"C": [1.0, 100.0]})
SECOND = AtWork("heart/level", "solving", 10.0, 3, (0, 2), {"C": [10.0, 1.0], "loss": ["b", "a"]})
BANK = AtWork("heart/xu2008", "building the bank", 5.0)


def test_tasks_of_one_method_are_put_together():
    [runs, bank] = put_together([BANK, FIRST, SECOND])
    assert bank == BANK
    assert (runs.since, runs.n_runs, runs.splits) == (10.0, 5, (0, 2))
    assert runs.params == {"C": [1.0, 10.0, 100.0], "loss": ["b", "a"]}
    assert len(put_together([FIRST, AtWork("heart/level", "compiling", 1.0, 1, (3,), {})])) == 2


def test_a_note_is_read_as_it_was_written(tmp_path):
    assert read_work_note(tmp_path) == []
    write_work_note(tmp_path, [FIRST, BANK])
    assert read_work_note(tmp_path) == [FIRST, BANK]
    remove_work_note(tmp_path)
    remove_work_note(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_note_that_cannot_be_read_or_written_says_nothing(tmp_path):
    (tmp_path / WORK_NOTE).write_text("[{}]")
    assert read_work_note(tmp_path) == []
    write_work_note(tmp_path / "nowhere", [FIRST])
