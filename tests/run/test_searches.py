"""Searches, given C and scaling studies end to end: results, kills, failures, warm starts."""

import os
import signal
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import mkldist
from mkldist.bank.store import BankStore
from mkldist.data.snapshot import load_snapshot
from mkldist.errors import InputError
from mkldist.fit.select import choose, prepared_fit
from mkldist.results.journal import Journal
from mkldist.results.rows import method_nodes
from mkldist.results.schema import RunState
from mkldist.results.status import sweep_status
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep_loop import SweepLoop
from tests.run.sweeps import (
    plan_of,
    record_times,
    records,
    run_here,
    running_process,
    sweep_text,
    wait_until,
)

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
IN_A_THREAD = "import mkldist.run.sweep as s; s.is_small = lambda *_: True; "


def text(search: str, **changes: str) -> str:
    settings = {
        "source": 'source = "two_moons"\noptions = { n = 60, noise = 0.3 }',
        "splits": "repeats = 2", "method": "level", "C": LOG, "top": "", "outputs": "",
    } | changes  # fmt: skip
    return SWEEP.format(search=search, **settings)


def node_of(output: Path, method: str = "level") -> xr.Dataset:
    return mkldist.open_results(output)[f"moons/{method}"].to_dataset().load()


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("search", [RANDOM, HALVING])
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


@pytest.mark.slow
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


def in_a_thread(toml: str, output: Path, until: int | None = None) -> str:
    """Do a search in a thread of the command; kill it when so many runs are recorded."""
    with running_process(toml, output, setup=IN_A_THREAD) as process:
        if until is not None:
            there = f"{until} runs are recorded"
            wait_until(lambda: len(record_times(output)) >= until, there, process)
            os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == (0 if until is None else -signal.SIGKILL), said
    return said


@pytest.mark.slow
def test_a_killed_search_resumes_with_the_same_proposals_and_repeats_nothing(tmp_path):
    search, until = '[search]\nkind = "halving"\ntrials = 4\nfactor = 2', 5
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_banks_that_are_not_kept_are_built_once_and_deleted(tmp_path, scheduler, monkeypatch):
    built = []
    plain = SweepLoop.work

    def counted(self):
        plain(self)
        built.append(self.counts.blocks_done)

    monkeypatch.setattr(SweepLoop, "work", counted)
    output = tmp_path / "out"
    outcome = run_here(text(HALVING, outputs="keep_banks = false"), output, scheduler)
    assert len(built) == 3
    n_banks = len({bank.id for bank in outcome.plan.banks})
    assert sum(built) == n_banks
    assert built[1:] == [0, 0]
    assert not list((output / "banks").rglob("c"))


SPICY = sweep_text({"spicymkl": [10.0, 2.5]}, execution="isolated")
TEXT = SPICY.replace("[[datasets]]", "tol = 1e-7\n[[datasets]]", 1) + (
    'loss = "hinge"\n'
    '[[methods]]\nname = "level"\nC = { from = "spicymkl" }\n'
    '[[methods]]\nname = "silp"\nC = { from = "spicymkl" }\ntol = [1e-4, 1e-6]\n'
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    output, said = tmp_path_factory.mktemp("given") / "small", StringIO()
    outcome = run_here(TEXT, output, None, console=lambda: Console(file=said, width=200))
    assert outcome.computed == len(outcome.plan.runs) == 2 * (2 + 2 + 4)
    assert not outcome.failed
    assert "16 of 16 runs" in said.getvalue()  # of both rounds
    return output


@pytest.mark.slow
def test_both_methods_solve_one_problem(folder):
    with open_results(folder) as tree:
        moons = tree["two_moons"]
        spicy = moons["spicymkl"].to_dataset().load().rename(C="strength")
        level = moons["level"].to_dataset().load().rename(source_C="strength")
    norms = spicy.norm_sum
    np.testing.assert_allclose(level.C, norms * spicy.strength, rtol=1e-5)
    losses = spicy.objective - norms / spicy.strength
    np.testing.assert_allclose(level.objective, level.C * losses + norms**2 / 2, rtol=1e-4)
    np.testing.assert_allclose(level.kernel_weights, spicy.kernel_weights, atol=1e-2)
    np.testing.assert_allclose(level.decision_values, spicy.decision_values, atol=1e-2)


@pytest.mark.slow
def test_every_setting_of_a_method_runs_at_every_c(folder):
    with open_results(folder) as tree:
        silp = tree["two_moons/silp"].to_dataset()
        assert silp.objective.dims == ("split", "source_C", "tol")
        np.testing.assert_array_equal(silp.C[..., 0], tree["two_moons/level"].C)
        assert "C" not in silp.attrs["settings"]


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on(folder):
    kept = records(folder)
    gone = [i for i, record in kept.items() if record.key == "level"][:1]
    gone += [i for i, record in kept.items() if record.key == "spicymkl"][:1]
    Journal(folder / "records.journal").remove(gone)
    outcome = run_here(TEXT, folder, None)
    assert outcome.computed == 2
    assert records(folder).keys() == kept.keys()


def test_a_model_needs_one_c(folder):
    with pytest.raises(InputError, match=r"whose C comes from spicymkl on each split.*--set C="):
        prepared_fit(folder, choose(folder, method="level"))
    _, run = prepared_fit(folder, choose(folder, method="level", settings={"C": 7.0}))
    assert run.params["C"] == 7.0


@pytest.mark.slow
def test_solutions_without_kernels_give_no_c(tmp_path):
    text = TEXT.replace("[10.0, 2.5]", "[1e-6]").replace("isolated", "shared")
    said = StringIO()
    outcome = run_here(
        text, tmp_path / "small", None, console=lambda: Console(file=said, width=200)
    )
    assert outcome.computed == len(outcome.plan.runs) == 2
    assert "small: at most 8 runs to do" in said.getvalue()
    left_out = "2 runs of spicymkl failed or found no kernel, and so gave no C"
    assert said.getvalue().count(left_out) == 1
    assert "2 of 2 runs" in said.getvalue()
    assert sweep_status(tmp_path / "small").most_runs == 2
    with open_results(tmp_path / "small") as tree:
        assert list(tree["two_moons"].children) == ["spicymkl"]


METHODS = {"uniform": [10.0], "level": [10.0]}
PLAIN = sweep_text(METHODS, execution="isolated").replace(
    '["all", "each"]', '["all", "each", {count = 5}]'
)
BANKS = ("[[banks.kernels]]", 'name = "grid"\nn_kernels = [4, 8, 16]\n[[banks.kernels]]')
SPLITS = ("repeats = 2", "repeats = 2\nn_train = [10, 30]")
SECONDS = 0.4  # that a run of the misbehaving method `slow` takes at least
STUDY = PLAIN.replace(*BANKS).replace(*SPLITS)


def in_this_process(text: str, output: Path):
    options = ConnectOptions(in_this_process=True)
    return run_here(text, output, None, connect_options=options)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("study") / "out"
    outcome = in_this_process(STUDY, output)
    assert outcome.computed == 3 * 2 * 2 * 2
    assert not outcome.failed
    return output


@pytest.mark.slow
def test_every_size_has_its_node_with_the_names_of_the_sweep_file(study):
    with open_results(study) as tree:
        nodes = {node.path: node.attrs for node in method_nodes(tree)}
        assert set(nodes) == {
            f"/two_moons-{n}/grid-{m}/{method}"
            for n in (10, 30) for m in (4, 8, 16) for method in METHODS
        }  # fmt: skip
        assert all(a["dataset_series"] == "two_moons" for a in nodes.values())
        assert all(a["bank_series"] == "grid" for a in nodes.values())
        node = tree["two_moons-30/grid-8/level"]
        assert node.n_train.values.tolist() == [30, 30]
        assert int(node.n_kernels) == 8


@pytest.mark.slow
def test_sizes_lie_side_by_side_in_either_order(study):
    with open_results(study) as tree:
        joined = mkldist.concat(mkldist.concat(tree, "n_kernels"), "n_train")
        other = mkldist.concat(mkldist.concat(tree, "n_train"), "n_kernels")
        assert {node.path for node in method_nodes(joined)} == {
            "/two_moons/level", "/two_moons/uniform",
        }  # fmt: skip
        level = joined["two_moons/level"].to_dataset()
        assert level.n_kernels.values.tolist() == [4, 8, 16]
        assert level.n_train.values.tolist() == [10, 30]
        assert level.attrs["bank"] == "grid"
        for n in (10, 30):
            for m in (4, 8, 16):
                own = tree[f"two_moons-{n}/grid-{m}/level"].to_dataset()
                there = level.sel(n_train=n, n_kernels=m)
                np.testing.assert_array_equal(there.objective, own.objective)
                weights = there.kernel_weights.sel(kernel=own.kernel)
                np.testing.assert_array_equal(weights, own.kernel_weights)
                np.testing.assert_array_equal(level.width.sel(kernel=own.kernel), own.width)
        again = other["two_moons/level"].to_dataset()
        np.testing.assert_array_equal(
            again.objective.transpose(*level.objective.dims), level.objective
        )


@pytest.mark.slow
def test_several_series_keep_their_names(study):
    with open_results(study) as tree:
        renamed = tree.copy()
        for node in method_nodes(renamed):
            if node.parent.name == "grid-16":
                node.attrs["bank_series"] = "grid-16"
        joined = mkldist.concat(renamed, "n_kernels")
        assert set(joined["two_moons-10"].children) == {"grid", "grid-16"}
        assert joined["two_moons-10/grid/level"].n_kernels.values.tolist() == [4, 8]


@pytest.mark.slow
def test_larger_sizes_hold_the_smaller_ones_and_have_the_same_test_part(study):
    with open_results(study) as tree:
        names = [tree[f"two_moons-10/grid-{m}"].kernel.values.tolist() for m in (4, 8, 16)]
    assert names[0] == names[2][:4]
    assert names[1] == names[2][:8]
    found = {}
    for path in (study / "snapshots").iterdir():
        dataset, splits = load_snapshot(path)
        found[dataset.name] = splits
    for small, large in zip(found["two_moons-10"], found["two_moons-30"], strict=True):
        assert set(small.train) < set(large.train)
        np.testing.assert_array_equal(small.test, large.test)


def test_one_size_is_that_of_the_list_and_keeps_the_name(study, tmp_path):
    text = STUDY.replace("n_kernels = [4, 8, 16]", "n_kernels = 8")
    text = text.replace("n_train = [10, 30]", "n_train = 30")
    alone = {run.id for run in plan_of(text).runs}
    assert alone < {run.id for run in plan_of(STUDY).runs}
    assert {run.bank_label for run in plan_of(text).runs} == {"grid"}
    with open_results(study) as tree:
        assert alone == {
            run_id
            for method in METHODS
            for run_id in tree[f"two_moons-30/grid-8/{method}"].run_id.values.ravel()
        }


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("[4, 8, 16]", "[4, 800]", r"banks\.grid\.n_kernels: found 800; expected at most 32"),
        ("[10, 30]", "[10, 90]", r"two_moons': n_train: found 90; expected at most 40"),
        ("[10, 30]", "[1, 30]", r"no point of class.*Raise n_train"),
    ],
)
def test_sizes_that_there_are_not_are_refused(right, wrong, message):
    with pytest.raises(InputError, match=message):
        plan_of(STUDY.replace(right, wrong))


@pytest.mark.slow
def test_runs_tell_what_passes_cost_and_nodes_what_banks_cost(study):
    """Compare with the passes of `uniform`, which reads everything, and with the bank's store."""
    with open_results(study) as tree:
        for n in (10, 30):
            node = tree[f"two_moons-{n}/grid-16/uniform"].to_dataset()
            assert (node.pass_bytes == node.passes * node.bank_bytes).all()
            assert (node.pass_bytes == node.bytes_read).all()
            assert (node.pass_cpu_seconds > 0).all()
            for split in (0, 1):
                [bank] = [
                    bank for bank in plan_of(STUDY).banks
                    if (bank.dataset, bank.spec.label, bank.split)
                    == (f"two_moons-{n}", "grid-16", split)
                ]  # fmt: skip
                store = BankStore.open(study.parent / "banks", bank.id)
                spent = store.build_time()
                assert spent is not None
                assert node.build_seconds[split] == spent.seconds > 0
                assert node.build_cpu_seconds[split] == spent.cpu_seconds > 0
                assert (
                    node.bank_bytes[split]
                    == store.shape.n_kernels * store.shape.layout.n_entries * 8
                )
