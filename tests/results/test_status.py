"""Progress of a sweep, from its records and the claim on its folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from mkldist.core.durable import machine_id
from mkldist.errors import StoreError
from mkldist.results.folder import (
    AtWork,
    Claim,
    OutputFolder,
    claimed,
    write_manifest,
    write_work_note,
)
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState
from mkldist.results.status import Recorded, lacking_runs, recorded_runs, sweep_status
from mkldist.results.tree import open_results
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.run.sweeps import plan_of, record_times, records, run_here, sweep_text
from tests.variants import quick


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


PLAIN = sweep_text({"uniform": [1.0, 10.0]}).replace("predictions = true", "predictions = false")
BY_DEFAULT = PLAIN.replace("predictions = false", "")


def asking(*words: str) -> str:
    return BY_DEFAULT.replace("[outputs]", "\n".join(("[outputs]", *words)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "variable"),
    quick([("predictions = true", "decision_values"), ("coefficients = true", "coefficients")]),
)
def test_what_is_asked_for_later_is_computed_once(tmp_path, words, variable):
    output, asked = tmp_path / "r", asking(words)
    run_here(PLAIN, output, None)
    before = records(output)
    store = Journal(output / "records.journal")
    assert set(lacking_runs(plan_of(asked), store, output)) == before.keys()
    assert run_here(asked, output, None).computed == len(before)
    node = open_results(output)["two_moons/uniform"]
    assert variable in node
    assert np.isfinite(node[variable].to_numpy()).any(axis=-1).all()
    after = records(output)
    assert {i: one.objective for i, one in after.items()} == {
        i: one.objective for i, one in before.items()
    }
    times = record_times(output)
    assert lacking_runs(plan_of(asked), store, output) == []
    run_here(asked, output, None)
    assert record_times(output) == times


@pytest.mark.slow
def test_few_decision_values_are_kept_by_default_with_facts_of_the_data(tmp_path, monkeypatch):
    for most, name in ((10**6, "few"), (1, "many")):
        monkeypatch.setattr("mkldist.run.rounds.MOST_VALUES", most)
        run_here(BY_DEFAULT, tmp_path / name, None)
    tree = open_results(tmp_path / "few")
    node, many = tree["two_moons/uniform"], open_results(tmp_path / "many")["two_moons/uniform"]
    tested = np.isfinite(node["decision_values"].to_numpy()).sum(axis=-1)
    assert (tested == node["n_test"].to_numpy()[:, None]).all()
    assert "decision_values" not in many
    (data,) = json.loads(tree.attrs["data"]).values()
    assert data["rows"] == node.sizes["sample"] == sum(data["classes"].values())
    assert (data["features"], data["missing"]) == (2, 0)


@pytest.mark.slow
def test_what_is_kept_is_not_done_again_where_less_is_asked_for(tmp_path):
    output, asked = tmp_path / "r", asking("predictions = true")
    run_here(asked, output, None)
    times = record_times(output)
    run_here(PLAIN, output, None)
    run_here(asked, output, None)
    assert record_times(output) == times
