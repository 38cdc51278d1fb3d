"""Searches end to end, for `sweep_notes`: results, kills, failures, warm starts, the test part."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import mkldist
from mkldist.core.metrics import METRICS
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.results.status import sweep_status
from mkldist.run.sweep import round_note
from mkldist.run.sweep_loop import SweepLoop
from mkldist.run.tasks import STATES
from tests.run.sweeps import (
    end,
    record_times,
    records,
    run_here,
    run_process,
    start_process,
    wait_until,
)

pytestmark = pytest.mark.slow

SWEEP = """
name = "searched"
{top}
[[datasets]]
name = "moons"
{source}
[splits]
{splits}
[selection]
folds = 2
{search}
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 0.3, 1.0, 3.0]
features = ["all", "each"]
[outputs]
{outputs}
[[methods]]
name = "{method}"
C = {C}
"""
LOG = '{ low = 0.01, high = 1000, scale = "log" }'
RANDOM = '[search]\nkind = "random"\ntrials = 6'
HALVING = '[search]\nkind = "halving"\ntrials = 9'
ADAPTIVE = '[search]\nkind = "adaptive"\ntrials = 16\nbatch = 5'
IN_A_THREAD = "import mkldist.run.sweep as s; s.is_small = lambda *_: True; "
NEEDS_OPTUNA = pytest.mark.skipif(
    find_spec("optuna") is None, reason="adaptive search needs the extra `search`"
)
KINDS = [RANDOM, HALVING, pytest.param(ADAPTIVE, marks=NEEDS_OPTUNA)]


def text(search: str, **changes: str) -> str:
    settings = {
        "source": 'source = "two_moons"\noptions = { n = 60, noise = 0.3 }',
        "splits": "repeats = 2", "method": "level", "C": LOG, "top": "", "outputs": "",
    } | changes  # fmt: skip
    return SWEEP.format(search=search, **settings)


def node_of(output: Path, method: str = "level") -> xr.Dataset:
    return mkldist.open_results(output)[f"moons/{method}"].to_dataset().load()


def test_trials_are_ordinary_runs_with_their_settings_as_coordinates(tmp_path, scheduler):
    output = tmp_path / "out"
    outcome = run_here(text(RANDOM), output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == outcome.computed == 12
    node = node_of(output)
    assert node.validation_error.dims == ("split", "trial")
    assert node.C.dims == ("split", "trial")
    np.testing.assert_array_equal(node.C[0], node.C[1])
    for record in records(output).values():
        errors = node.validation_error[record.split]
        found = errors.values[node.C[record.split] == record.params["C"]]
        assert found.tolist() == [record.scores["validation_error"]]
    # The same settings in a list are the same runs.
    grid = text("", C=str(node.C[0].values.tolist()))
    again = run_here(grid, output, scheduler)
    assert (again.computed, again.skipped, again.others) == (0, 12, 0)
    as_grid = node_of(output)
    for trial in range(6):
        at = as_grid.sel(C=float(node.C[0, trial]))
        np.testing.assert_array_equal(at.test_error, node.test_error[:, trial])


@pytest.mark.parametrize("search", KINDS)
def test_the_best_by_validation_is_selected_and_a_finished_search_does_nothing(
    tmp_path, scheduler, search
):
    output = tmp_path / "out"
    outcome = run_here(text(search), output, scheduler)
    assert outcome.failed == outcome.waiting == 0
    before = record_times(output)
    again = run_here(text(search), output, scheduler)
    assert (again.computed, again.skipped) == (0, outcome.computed)
    assert record_times(output) == before
    tree = mkldist.open_results(output)
    node = tree["moons/level"].to_dataset()
    last = node.isel(tol=-1) if "tol" in node.dims else node
    chosen = mkldist.selected(tree)["moons/level"]
    assert chosen.validation_error.dims == ("split",)
    np.testing.assert_array_equal(chosen.validation_error, last.validation_error.min("trial"))
    for split in range(2):
        trial = int(last.validation_error[split].argmin("trial"))
        assert float(chosen.C[split]) == float(node.C[split, trial])
    rows = mkldist.to_frame(tree)
    assert set(rows["C"]) == set(node.C.values.ravel()[~np.isnan(node.C.values.ravel())])


def test_halving_fills_few_trials_of_the_later_rungs(tmp_path, scheduler):
    output = tmp_path / "out"
    run_here(text(HALVING), output, scheduler)
    node = node_of(output)
    assert dict(node.validation_error.sizes) == {"split": 2, "trial": 9, "tol": 3}
    np.testing.assert_allclose(node.tol, [0.3, 0.0548, 0.01])
    done = np.isfinite(node.validation_error).values
    assert done.sum(axis=1).tolist() == [[9, 3, 1]] * 2
    for split in range(2):
        for rung, kept in ((0, 3), (1, 1)):
            errors = node.validation_error[split, :, rung].values
            best = np.argsort(np.where(np.isnan(errors), np.inf, errors), kind="stable")[:kept]
            assert sorted(best) == np.flatnonzero(done[split, :, rung + 1]).tolist()
    assert (node.gap.max(("split", "trial")) <= node.tol).all()
    tree = mkldist.open_results(output)  # as if the last rung had no results yet
    tree["moons/level"]["validation_error"] = node.validation_error.where(node.tol > 0.02)
    chosen = mkldist.selected(tree)["moons/level"]
    assert chosen.tol.values.tolist() == [float(node.tol[1])] * 2
    least = node.validation_error[..., 1].min("trial")
    np.testing.assert_array_equal(chosen.validation_error, least)


def test_shares_of_the_training_rows_are_a_dimension(tmp_path, scheduler):
    output = tmp_path / "out"
    search = HALVING + '\nresource = "training-size"\nrungs = 2\nfactor = 3'
    outcome = run_here(text(search), output, scheduler)
    assert outcome.computed == 2 * (9 + 3)
    node = node_of(output)
    assert node.training_fraction.values.tolist() == [0.333, 1.0]
    assert (node.n_train.dims, node.n_train.values.tolist()) == (("split",), [30, 30])
    plan = {run.id: run for run in outcome.plan.runs}
    sizes = {len(record.coefficients) for record in records(output).values()}
    assert sizes == {10, 30}
    for record in records(output).values():
        place = plan[record.id].at
        at = node.sel(training_fraction=place["training_fraction"], trial=place["trial"])
        assert str(at.run_id[place["split"]].values) == record.id
        assert float(at.test_error[place["split"]]) == record.scores["test_error"]


def test_a_rung_starts_from_the_solutions_of_the_last(tmp_path, scheduler, monkeypatch):
    # In this process, whose states a test can take away.
    monkeypatch.setattr("mkldist.run.sweep.is_small", lambda *_: True)
    found = {}
    for start in ("warm", "cold"):
        if start == "cold":
            monkeypatch.setattr(STATES, "take", lambda name: None)
        output = tmp_path / start
        run_in_a_thread(text(HALVING, top="tol = 1e-4"), output)
        found[start] = {r.id: r for r in records(output).values()}
    warm, cold = found["warm"], found["cold"]
    assert warm.keys() >= {i for i, r in cold.items() if r.params["tol"] == 0.3}
    for run_id in warm.keys() & cold.keys():
        one, other = warm[run_id], cold[run_id]
        assert one.dual_objective <= other.objective * (1 + 1e-9)
        assert other.dual_objective <= one.objective * (1 + 1e-9)
        assert one.gap <= one.params["tol"]

    def passes(runs, tol):
        return sum(r.counters["passes"] for r in runs.values() if r.params["tol"] == tol)

    assert passes(warm, 0.3) == passes(cold, 0.3)
    assert passes(warm, 1e-4) < 0.5 * passes(cold, 1e-4)


def run_in_a_thread(toml: str, output: Path) -> None:
    import tomllib

    from mkldist.run.sweep import run_sweep
    from mkldist.spec.model import SweepSpec

    spec = SweepSpec.model_validate(tomllib.loads(toml))
    run_sweep(spec, origin=output.parent / "sweep.toml", output=output)


def in_a_thread(toml: str, output: Path, until: int | None = None) -> str:
    """Do a search in a thread of the command; kill it when so many runs are recorded."""
    with start_process(toml, output, setup=IN_A_THREAD) as process:
        try:
            if until is not None:
                there = f"{until} runs are recorded"
                wait_until(lambda: len(record_times(output)) >= until, there, process)
                os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate(timeout=120)
        finally:
            end(process)
    assert process.returncode == (0 if until is None else -signal.SIGKILL), said
    return said


@pytest.mark.parametrize(
    ("search", "until"),
    [
        ('[search]\nkind = "halving"\ntrials = 4\nfactor = 2', 5),
        pytest.param(ADAPTIVE.replace("16", "12"), 11, marks=NEEDS_OPTUNA),
    ],
)
def test_a_killed_search_resumes_with_the_same_proposals_and_repeats_nothing(
    tmp_path, search, until
):
    toml = text(search, method="slow", splits="repeats = 1", top='execution = "isolated"')
    output, whole = tmp_path / "searched", tmp_path / "whole"
    in_a_thread(toml, output, until)
    before = record_times(output)
    assert until <= len(before)
    most = sweep_status(output).most_runs
    said = in_a_thread(toml, output)
    assert f"{len(before)} are recorded already" in said
    after = record_times(output)
    assert len(before) < len(after)
    assert {name: after[name] for name in before} == before
    assert most == len(after)
    in_a_thread(toml, whole)
    assert after.keys() == record_times(whole).keys()
    for name in ("C", "validation_error", "run_id"):
        np.testing.assert_array_equal(node_of(output, "slow")[name], node_of(whole, "slow")[name])


def test_labels_of_the_test_part_decide_nothing(tmp_path, scheduler):
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(60, 3)), np.where(np.arange(60) % 2, 1.0, -1.0)
    x[:, 0] += y
    found = []
    for name, labels in (("one", y), ("other", np.where(np.arange(60) < 40, y, -y))):
        np.savez(tmp_path / f"{name}.npz", x=x, y=labels, train=np.arange(40),
                 test=np.arange(40, 60))  # fmt: skip
        toml = text(HALVING, source=f'file = "{tmp_path / name}.npz"',
                    splits='kind = "predefined"')  # fmt: skip
        run_here(toml, tmp_path / name, scheduler)
        found.append(node_of(tmp_path / name))
    one, other = found
    np.testing.assert_array_equal(one.C, other.C)
    np.testing.assert_array_equal(one.validation_error, other.validation_error)
    np.testing.assert_allclose(one.test_error, 1 - other.test_error)


def test_trials_share_the_passes_over_a_bank(tmp_path, scheduler, monkeypatch):
    passes = []
    plain = SweepLoop._note_cache

    def counted(self, receipt):
        passes.append(receipt.passes)
        plain(self, receipt)

    monkeypatch.setattr(SweepLoop, "_note_cache", counted)
    found = {}
    for trials in (1, 8):
        C = '{ low = 1.0, high = 10.0, scale = "log" }\ntol = 1e-4\nacceleration = "none"'
        toml = text(RANDOM.replace("6", str(trials)), C=C, splits="repeats = 1")
        toml = toml.replace("[[banks]]", '[[banks]]\nbackend = "stream"')
        run_here(toml, tmp_path / str(trials), scheduler)
        found[trials] = sum(passes)
        passes.clear()
    assert found[1] > 5
    assert found[8] < 2 * found[1]


def test_failed_trials_are_recorded_and_the_search_goes_on(tmp_path, scheduler):
    output = tmp_path / "out"
    toml = text(HALVING, method="raising")  # raises where C is above 5
    outcome = run_here(toml, output, scheduler)
    node = node_of(output, "raising")
    failed = (node.state == "failed").values
    assert outcome.failed == failed.sum() > 0
    np.testing.assert_array_equal(failed[:, :, 0], (node.C > 5).values)
    assert not failed[:, :, 1:].any()
    assert np.isfinite(node.validation_error[:, :, -1]).sum() == 2
    status = sweep_status(output)
    assert len(status.failed) == outcome.failed
    assert all(run.params["C"] > 5 for run in status.failed)
    again = run_here(toml, output, scheduler, retry_failed=True)
    assert again.failed == again.computed == outcome.failed


@pytest.mark.parametrize("search", [HALVING, HALVING + '\nresource = "training-size"'])
def test_banks_that_are_not_kept_are_built_once_and_deleted(
    tmp_path, scheduler, search, monkeypatch
):
    built = []
    plain = SweepLoop.work

    def counted(self):
        plain(self)
        built.append(self.counts.blocks_done)

    monkeypatch.setattr(SweepLoop, "work", counted)
    output = tmp_path / "out"
    outcome = run_here(text(search, outputs="keep_banks = false"), output, scheduler)
    assert len(built) == 3
    n_banks = len({bank.id for bank in outcome.plan.banks})
    assert sum(built) == n_banks
    assert built[1:] == ([0, 0] if search == HALVING else [2, 2])
    assert not list((output / "banks").rglob("c"))


def test_the_progress_tells_the_best_so_far(tmp_path):
    output = tmp_path / "searched"
    code, said = run_process(text(HALVING), output)
    assert code == 0, said
    assert "at most 26 runs to do" in said
    lines = [line for line in said.splitlines() if "search:" in line]
    assert [line.split(";")[0] for line in lines] == [
        f"search: {n} of at most 26 runs" for n in (18, 24, 26)
    ]
    error = 100 * float(mkldist.selected(mkldist.open_results(output))["moons/level"]
                        .validation_error.mean())  # fmt: skip
    assert f"moons/level: validation error {error:.2f} %, C = " in said


def test_a_note_spans_the_settings_of_all_splits():
    from types import SimpleNamespace

    rounds = SimpleNamespace(
        spec=SimpleNamespace(sized_banks=["one", "two"]),
        most=SimpleNamespace(runs=[SimpleNamespace(at={"trial": 0})] * 4),
        compared=2,
        metric_of=lambda dataset: METRICS["rmse"],
        best=lambda: {
            ("d", "b", "m", 0): (1.0, {"C": 2.0, "loss": "squared"}),
            ("d", "b", "m", 1): (2.0, {"C": 12.5, "loss": "hinge"}),
        },
    )
    assert round_note(rounds).splitlines() == [
        "search: 2 of at most 4 runs; best so far:",
        "  d/b/m: validation RMSE 1.500, C = 2…12.5, loss = squared|hinge",
    ]


def test_records_of_a_search_are_found_by_ids_alone(tmp_path, scheduler):
    output = tmp_path / "out"
    outcome = run_here(text(RANDOM), output, scheduler)
    store = Journal(output / "records.journal")
    gone = outcome.plan.runs[3].id
    store.remove([gone])
    again = run_here(text(RANDOM), output, scheduler)
    assert (again.computed, again.skipped) == (1, 11)
    assert store.read(gone) is not None
