"""The command that tells how far a sweep is, of a sweep at work on many runs."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from mkldist.cli.status import command
from mkldist.results.notes import AtWork, write_work_note
from mkldist.results.output import claimed
from mkldist.results.records import RecordStore
from mkldist.results.tree import prepare
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


def said_of(folder: Path) -> str:
    return CliRunner().invoke(command, [str(folder)], catch_exceptions=False).output


def test_a_folder_without_a_tree_is_told(tmp_path):
    store = RecordStore(tmp_path / "records")
    with claimed(tmp_path, "made-up"):
        assert "; there is no results.zarr yet\n" in said_of(tmp_path)
    assert "stopped; there is no results.zarr yet; the same mkldist sweep" in said_of(tmp_path)
    for run in made_up_plan().runs[:3]:
        store.write(made_up_record(run))
    said = said_of(tmp_path)
    assert "there is no results.zarr, though 3 runs are recorded; the same mkldist sweep" in said
    assert "every run has an outcome" not in said


def test_the_first_of_many_values_are_named(tmp_path):
    plan = made_up_plan()
    grid = {"C": [float(c) for c in range(100)]}
    with claimed(tmp_path, "made-up"):
        prepare(
            tmp_path / "results.zarr", plan, made_up_facts(plan), RecordStore(tmp_path / "records")
        )
        write_work_note(
            tmp_path, [AtWork("heart/level", "solving", 1.0, 1200, tuple(range(12)), grid)]
        )
        said = said_of(tmp_path)
    assert "heart/level: 1200 runs solving, since" in said
    assert (
        ": splits 0, 1, 2, 3, 4, 5, 6, 7, … 4 more, C = 0, 1, 2, 3, 4, 5, 6, 7, … 92 more" in said
    )
