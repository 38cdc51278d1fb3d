"""Recorded runs of a plan, counted by the names of their records."""

from __future__ import annotations

from mkldist.results.folder import OutputFolder
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.status import Recorded, recorded_runs
from tests.results.sweeps import made_up_plan, made_up_record


def test_runs_of_the_plan_failed_ones_and_others_are_counted(tmp_path):
    plan = made_up_plan()
    store = Journal(OutputFolder(tmp_path).records)
    for run in plan.runs[:4]:
        store.append([made_up_record(run)])
    store.append([RunRecord.failed(plan.runs[4], "worker lost")])
    for run in made_up_plan(datasets=["wdbc"]).runs[:2]:
        store.append([made_up_record(run)])
    assert recorded_runs(plan, tmp_path) == Recorded(tmp_path, total=5, failed=1, others=2)


def test_a_missing_folder_has_none(tmp_path):
    place = tmp_path / "nowhere"
    assert recorded_runs(made_up_plan(), place) == Recorded(place, 0, 0, 0)
    assert not place.exists()
