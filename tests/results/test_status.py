"""Progress of a sweep, from its records and the claim on its folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from mkldist.core.durable import machine_id
from mkldist.errors import StoreError
from mkldist.results.folder import AtWork, Claim, claimed, write_manifest, write_work_note
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState
from mkldist.results.status import sweep_status
from mkldist.results.tree import open_results
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


@pytest.fixture
def folder(tmp_path):
    write_manifest(tmp_path, "made-up", None)
    return tmp_path


def test_runs_are_counted_by_state_and_node(folder):
    plan = made_up_plan(datasets=["heart", "wdbc"], n_splits=2)
    records = Journal(folder / "records.journal")
    lay_out(folder, plan, made_up_facts(plan))
    for run in plan.runs[:5]:
        records.append([made_up_record(run)])
    records.append([RunRecord.failed(plan.runs[5], "worker lost")])
    status = sweep_status(folder)
    assert (status.name, status.n_runs, status.path) == ("made-up", len(plan.runs), folder)
    assert status.counts == {RunState.COMPLETE: 5, RunState.FAILED: 1, RunState.WAITING: 26}
    assert status.by_node["heart/level"] == {RunState.COMPLETE: 3, RunState.WAITING: 3}
    assert sum(sum(counts.values()) for counts in status.by_node.values()) == status.n_runs
    [failed] = status.failed
    assert (failed.error, failed.id) == ("worker lost", plan.runs[5].id)
    assert (failed.node, failed.split) == ("heart/simplemkl", 0)
    params = plan.runs[5].params
    assert failed.params == {name: params[name] for name in ("C", "variant")}


def test_a_sweep_that_has_not_planned_yet_has_no_runs(folder):
    status = sweep_status(folder)
    assert (status.n_runs, dict(status.counts), status.without_layout) == (0, {}, 0)


def test_recorded_runs_are_counted_where_the_layout_is_gone(folder):
    plan, records = made_up_plan(n_splits=1), Journal(folder / "records.journal")
    for run in plan.runs[:2]:
        records.append([made_up_record(run)])
    assert sweep_status(folder).without_layout == 2
    lay_out(folder, plan, made_up_facts(plan))
    assert sweep_status(folder).without_layout is None


def test_a_claim_says_which_process_is_at_work(folder):
    assert sweep_status(folder).claim is None
    with claimed(folder, "made-up"):
        claim = sweep_status(folder).claim
        assert claim == Claim(os.getpid(), socket.gethostname(), machine_id())
        assert claim.is_live
    assert sweep_status(folder).claim is None


def test_the_claim_of_a_dead_process_is_not_live_and_one_elsewhere_is_unknown(folder):
    """Containers may share a host name, and see other processes."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    note = {"pid": child.pid, "host": socket.gethostname()}
    for machine, live in (
        ({"machine": machine_id()}, False),
        ({"machine": "another-container"}, None),
        ({}, None),
    ):
        (folder / ".owner").write_text(json.dumps(note | machine))
        claim = sweep_status(folder).claim
        assert claim is not None
        assert claim.is_live is live
    (folder / ".owner").write_text("{")
    assert sweep_status(folder).claim is None


@pytest.mark.parametrize("name", ["", "missing"])
def test_a_folder_of_no_sweep_is_an_error(tmp_path, name):
    with pytest.raises(StoreError, match="output folder of a sweep"):
        sweep_status(tmp_path / name)


def test_a_sweep_file_in_place_of_its_output_is_said_to_be_a_file(tmp_path):
    (tmp_path / "s.toml").write_text("")
    for look in (sweep_status, open_results):
        with pytest.raises(StoreError, match=r"s\.toml: found a file, not a folder; expected"):
            look(tmp_path / "s.toml")


def test_a_layout_cut_short_is_an_error(folder):
    plan = made_up_plan(n_splits=2)
    lay_out(folder, plan, made_up_facts(plan))
    layout = folder / "tree.layout"
    layout.write_bytes(layout.read_bytes()[:200])
    with pytest.raises(StoreError, match="cannot be read"):
        sweep_status(folder)


def test_runs_at_work_are_those_that_a_living_process_noted(folder):
    at_work = AtWork("heart/level", "solving", 1.0, 2, (0,), {"C": [1.0]})
    with claimed(folder, "made-up"):
        assert sweep_status(folder).at_work == ()
        write_work_note(folder, [at_work])
        assert sweep_status(folder).at_work == (at_work,)
    assert sweep_status(folder).at_work == ()  # as after a kill, which leaves the note


def test_recorded_runs_outside_the_plan_are_counted(folder):
    plan = made_up_plan()
    records = Journal(folder / "records.journal")
    lay_out(folder, plan, made_up_facts(plan))
    records.append([made_up_record(plan.runs[0])])
    assert sweep_status(folder).others == 0
    for run in made_up_plan(datasets=["wdbc"]).runs[:3]:
        records.append([made_up_record(run)])
    assert sweep_status(folder).others == 3
    assert sweep_status(folder).counts[RunState.COMPLETE] == 1
