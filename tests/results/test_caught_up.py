"""Results after a sweep that was killed: caught up where nobody is at work, else told."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import pandas as pd
import pytest

from mkldist.analysis.pairing import Results
from mkldist.errors import LaterRunsWarning, StoreError
from mkldist.report.facts import Facts
from mkldist.results.caught_up import caught_up
from mkldist.results.export import export
from mkldist.results.manifest import write_manifest
from mkldist.results.output import claimed
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results, prepare
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.results.tree_checks import assert_holds

PLAN = made_up_plan()
RECORDS = [made_up_record(run) for run in PLAN.runs]
LATER = len(RECORDS) - 2


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Return the folder of a sweep that was killed when its results held two of its runs."""
    folder = tmp_path / "made-up"
    store = RecordStore(folder / "records")
    for record in RECORDS[:2]:
        store.write(record)
    prepare(folder / "results.zarr", PLAN, made_up_facts(PLAN), store)
    for record in RECORDS[2:]:
        store.write(record)
    write_manifest(folder, "made-up", None)
    return folder


def exported(folder: Path) -> int:
    """Return the number of complete runs in an export of a folder."""
    target, *_ = export(folder, "csv", folder.parent / "rows.csv", overwrite=True)
    return int((pd.read_csv(target)["state"] == "complete").sum())


READERS = pytest.mark.parametrize(
    "read",
    [lambda folder: Results.of(folder).tree, lambda folder: Facts.of(folder).tree, caught_up],
    ids=["compare-and-explain", "report-and-scale", "export"],
)


@READERS
@pytest.mark.parametrize("lost", ["test_error/c/0/0", "run_id/c/0/0", "."])
def test_a_tree_that_lacks_a_file_is_refused(killed, read, lost):
    caught_up(killed)
    (node,) = killed.glob("results.zarr/*/level")
    path = node / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(StoreError, match="the file is not there"):
        read(killed)


@READERS
def test_what_commands_read_holds_every_record(killed, read):
    tree = read(killed)
    assert tree.attrs["later_runs"] == 0
    assert_holds(tree, PLAN, RECORDS)
    assert sorted(path.name for path in killed.iterdir() if path.name != ".lock") == [
        "records", "results.zarr", "sweep.json",
    ]  # fmt: skip


def test_an_export_after_a_kill_has_all_recorded_runs(killed):
    assert exported(killed) == len(RECORDS)


def test_results_of_a_sweep_at_work_say_how_far_they_are(killed):
    with claimed(killed, "made-up"):
        assert exported(killed) == 2
        facts = Facts.of(killed)
    assert facts.tree.attrs["later_runs"] == LATER
    assert facts.later == f"{LATER} runs were recorded after the results were last written."
    assert exported(killed) == len(RECORDS)


def test_opening_results_changes_nothing_and_warns(killed):
    before = {path: path.stat().st_mtime_ns for path in killed.rglob("*")}
    with pytest.warns(LaterRunsWarning, match=f"made-up.*: {LATER} runs were recorded after"):
        tree = open_results(killed)
    assert tree.attrs["later_runs"] == LATER
    assert before == {path: path.stat().st_mtime_ns for path in killed.rglob("*")}
    caught_up(killed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_results(killed).attrs["later_runs"] == 0


def test_a_tree_apart_from_its_folder_is_read_as_it_is(killed, tmp_path):
    (killed / "results.zarr").rename(tmp_path / "alone.zarr")
    tree = caught_up(tmp_path / "alone.zarr")
    assert tree.attrs["later_runs"] == 0
    assert_holds(tree, PLAN, RECORDS[:2])
