"""Scaling studies: lists of sizes in the sweep file, from plan to results side by side."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import mkldist
from mkldist.bank.store import GramStore
from mkldist.data.snapshot import load_snapshot
from mkldist.errors import InputError
from mkldist.results.journal import Journal
from mkldist.results.rows import method_nodes
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep import run_sweep
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import (
    kill_after,
    misbehaving_methods,
    plan_of,
    record_times,
    records,
    run_here,
    sweep_text,
)

METHODS = {"uniform": [10.0], "level": [10.0]}
PLAIN = sweep_text(METHODS, execution="isolated").replace(
    '["all", "each"]', '["all", "each", {count = 5}]'
)
BANKS = ("[[banks.kernels]]", 'name = "grid"\nn_kernels = [4, 8, 16]\n[[banks.kernels]]')
SPLITS = ("repeats = 2", "repeats = 2\nn_train = [10, 30]")
SECONDS = 0.4  # that a run of the misbehaving method `slow` takes at least
STUDY = PLAIN.replace(*BANKS).replace(*SPLITS)


def in_this_process(text: str, output: Path):
    return run_sweep(
        SweepSpec.model_validate(tomllib.loads(text)),
        origin=output.parent / "sweep.toml",
        output=output,
        connect_options=ConnectOptions(in_this_process=True),
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("study") / "out"
    outcome = in_this_process(STUDY, output)
    assert outcome.computed == 3 * 2 * 2 * 2
    assert not outcome.failed
    return output


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


def test_several_series_keep_their_names(study):
    with open_results(study) as tree:
        renamed = tree.copy()
        for node in method_nodes(renamed):
            if node.parent.name == "grid-16":
                node.attrs["bank_series"] = "grid-16"
        joined = mkldist.concat(renamed, "n_kernels")
        assert set(joined["two_moons-10"].children) == {"grid", "grid-16"}
        assert joined["two_moons-10/grid/level"].n_kernels.values.tolist() == [4, 8]


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


def test_the_data_of_all_sizes_are_stored_once(study):
    files = list((study / "snapshots").rglob("x-*.npy"))
    assert len(files) == 2
    assert len({file.stat().st_ino for file in files}) == 1


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


@pytest.mark.slow
def test_a_study_goes_on_after_a_kill(study, tmp_path):
    output = tmp_path / "out"
    before = kill_after(5, STUDY, output)
    outcome = in_this_process(STUDY, output)
    assert outcome.skipped >= 5
    assert outcome.skipped + outcome.computed == 24
    assert before.items() <= record_times(output).items()
    assert {i: r.objective for i, r in records(output).items()} == {
        i: pytest.approx(r.objective) for i, r in records(study).items()
    }


@pytest.mark.slow
def test_a_search_halves_the_training_parts_of_each_size(tmp_path, scheduler):
    text = PLAIN.replace(*SPLITS).replace("C = [10.0]", "C = {low = 1.0, high = 100.0}")
    text += (
        "\n[selection]\nfolds = 2\n[search]\nkind = \"halving\"\n"
        "resource = \"training-size\"\ntrials = 2\nfirst = 0.5\nfactor = 2\nrungs = 2\n"
    )  # fmt: skip
    outcome = run_here(text, tmp_path / "out", scheduler)
    assert not outcome.failed
    sizes = {run.dataset for run in outcome.plan.runs}
    assert sizes == {"two_moons-10", "two_moons-30"}
    with open_results(tmp_path / "out") as tree:
        assert tree["two_moons-10/level"].training_fraction.values.tolist() == [0.5, 1.0]


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
def test_isolated_runs_do_not_overlap_though_more_workers_are_asked_for(tmp_path):
    text = sweep_text({"slow": [1.0, 2.0, 3.0]}, execution="isolated").replace(*SPLITS)
    output = tmp_path / "out"
    with misbehaving_methods():
        outcome = run_sweep(
            SweepSpec.model_validate(tomllib.loads(text)),
            origin=tmp_path / "sweep.toml",
            output=output,
            connect_options=ConnectOptions(n_workers=2),
        )
    assert outcome.computed == 12
    walls = {i: record.times["wall_seconds"] for i, record in records(output).items()}
    ends = {name.split(".")[0]: end / 1e9 for name, end in record_times(output).items()}
    spans = sorted((ends[i] - walls[i], ends[i]) for i in walls)
    assert all(wall >= SECONDS for wall in walls.values())
    assert not sum(later[0] < earlier[1] for earlier, later in pairwise(spans))


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
                store = GramStore.open(study.parent / "banks", bank.id)
                spent = store.build_time()
                assert spent is not None
                assert node.build_seconds[split] == spent.seconds > 0
                assert node.build_cpu_seconds[split] == spent.cpu_seconds > 0
                assert node.bank_bytes[split] == store.n_kernels * store.layout.n_entries * 8


@pytest.mark.slow
def test_records_without_the_new_times_read_as_missing(study, tmp_path):
    output = tmp_path / "out"
    copytree(study, output)
    store, gone = Journal(output / "records.journal"), ("build_seconds", "pass_cpu_seconds")
    for record in records(output).values():
        times = {name: seconds for name, seconds in record.times.items() if name not in gone}
        store.append([replace(record, times=times)])
    assert in_this_process(STUDY, output).computed == 0
    with open_results(output) as tree:
        for node in method_nodes(tree):
            assert np.isnan(node.build_seconds).all()
            assert np.isnan(node.pass_cpu_seconds).all()
            assert (node.build_cpu_seconds > 0).all()


@pytest.mark.slow
def test_banks_that_passes_compute_cost_no_time_to_build(tmp_path):
    text = STUDY.replace('backend = "auto"', 'backend = "recompute"')
    in_this_process(text.replace("n_kernels = [4, 8, 16]", "n_kernels = [4]"), tmp_path / "out")
    with open_results(tmp_path / "out") as tree:
        for node in method_nodes(tree):
            assert node.attrs["bank"] == "grid-4"
            assert (node.build_seconds == 0).all()
            assert (node.bytes_read == 0).all()
            if node.name == "uniform":
                assert (node.pass_bytes == node.passes * node.bank_bytes).all()
