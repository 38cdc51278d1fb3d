"""The command that tells how far a sweep is, of a sweep at work on many runs."""

from __future__ import annotations

from click.testing import CliRunner

from mkldist.cli.status import command
from mkldist.results.output import claimed
from mkldist.results.records import RecordStore
from mkldist.results.tree import prepare
from mkldist.results.work_note import AtWork, write_work_note
from tests.results.sweeps import made_up_facts, made_up_plan


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
        said = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False).output
    assert "heart/level: 1200 runs solving, since" in said
    assert (
        ": splits 0, 1, 2, 3, 4, 5, 6, 7, … 4 more, C = 0, 1, 2, 3, 4, 5, 6, 7, … 92 more" in said
    )
