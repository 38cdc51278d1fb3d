"""Whole sweeps against scikit-learn on kernels made by hand, and their `outcome`."""

from __future__ import annotations

import io
import time
import tomllib

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mkldist.data.snapshot import load_snapshot
from mkldist.fit.api import solve
from mkldist.results.folder import WORK_NOTE
from mkldist.results.schema import RunState
from mkldist.results.tree import open_results
from mkldist.spec.model import SweepSpec
from tests.run import damage
from tests.run.sweeps import plan_of, record_times, records, run_here, sweep_text
from tests.variants import quick

WIDTHS = (0.1, 0.3, 1.0, 3.0)


def hand_made_kernels(x, split, fit):
    """Return training and test kernels of unit trace on the training part."""
    scaler = StandardScaler().fit(x[split.train] if fit == "train" else x)
    train, test = scaler.transform(x[split.train]), scaler.transform(x[split.test])
    pairs = [
        (
            rbf_kernel(train[:, columns], gamma=1 / (2 * width**2)),
            rbf_kernel(test[:, columns], train[:, columns], gamma=1 / (2 * width**2)),
        )
        for columns in ([0, 1], [0], [1])
        for width in WIDTHS
    ]
    traces = [np.trace(k) for k, _ in pairs]
    return (
        np.array([k / t for (k, _), t in zip(pairs, traces, strict=True)]),
        np.array([k / t for (_, k), t in zip(pairs, traces, strict=True)]),
    )


@pytest.mark.parametrize(
    ("fit", "backend", "execution"),
    quick(
        [
            ("train", "memory", "shared"),
            ("all", "mmap", "isolated"),
            ("all", "stream", "shared"),
            ("train", "recompute", "shared"),
        ],
        2,
    ),
)
def test_results_are_those_of_other_software(tmp_path, scheduler, fit, backend, execution):
    output = tmp_path / "out" / "small"
    text = sweep_text(
        {"uniform": [10.0, 1000.0], "level": [100.0]}, fit=fit, backend=backend, execution=execution
    ).replace("[[datasets]]", "tol = 1e-6\n[[datasets]]", 1)
    outcome = run_here(text, output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == outcome.computed == 6
    [snapshot] = (output / "snapshots").iterdir()
    dataset, splits = load_snapshot(snapshot)
    for record in records(output).values():
        split = splits[record.split]
        train, test = hand_made_kernels(dataset.x, split, fit)
        y = dataset.y[split.train]
        np.testing.assert_array_equal(record.test_rows, split.test)
        if record.method == "uniform":
            machine = SVC(C=record.params["C"], kernel="precomputed", tol=1e-8)
            machine.fit(train.mean(axis=0), y)
            expected = machine.decision_function(test.mean(axis=0))
            np.testing.assert_allclose(record.decision_values, expected, atol=2e-3)
        else:
            solution = solve("level", train, y, C=record.params["C"], tol=1e-6)
            assert record.objective == pytest.approx(solution.objective, rel=2e-6)
            values = sum(
                w * (k @ record.coefficients)
                for w, k in zip(record.kernel_weights, test, strict=True)
            )
            np.testing.assert_allclose(record.decision_values, values + record.bias, atol=1e-8)
        wrong = np.where(record.decision_values >= 0, 1, -1) != dataset.y[split.test]
        assert record.scores["test_error"] == pytest.approx(wrong.mean())
        assert record.provenance["blas_threads"] == 1
    check_tree(output)


def check_tree(output):
    with open_results(output) as tree:
        node = tree["two_moons/uniform"]
        assert (node.state == "complete").all()
        np.testing.assert_array_equal(node.C, [10.0, 1000.0])
        for record in records(output).values():
            found = tree[f"two_moons/{record.key}"].sel(split=record.split, C=record.params["C"])
            assert found.test_error.item() == record.scores["test_error"]
            np.testing.assert_array_equal(found.kernel_weights, record.kernel_weights)


def test_a_finished_sweep_is_not_done_again_and_a_changed_one_only_where_it_changed(
    tmp_path, scheduler
):
    output = tmp_path / "out" / "small"
    run_here(sweep_text({"uniform": [1.0, 10.0]}), output, scheduler)
    before = record_times(output)
    started = time.perf_counter()
    again = run_here(sweep_text({"uniform": [1.0, 10.0]}), output, scheduler)
    assert time.perf_counter() - started < 3
    assert (again.computed, again.skipped) == (0, 4)
    assert record_times(output) == before
    changed = run_here(sweep_text({"uniform": [10.0, 100.0]}), output, scheduler)
    assert (changed.computed, changed.skipped) == (2, 2)
    assert {k: v for k, v in record_times(output).items() if k in before} == before
    with open_results(output) as tree:
        assert (tree["two_moons/uniform"].state == "complete").all()


@pytest.mark.parametrize(
    ("asked", "n_left_out"),
    [({"uniform": [10.0]}, 0), ({"uniform": [10.0, 100.0]}, 2)],
    ids=["a part of the file", "more than the file"],
)
def test_a_call_that_asks_for_a_part_of_the_file_keeps_its_recorded_runs(
    tmp_path, scheduler, asked, n_left_out
):
    output = tmp_path / "out" / "small"
    text = sweep_text({"uniform": [1.0, 10.0, 1000.0]})
    run_here(sweep_text({"uniform": [1.0, 10.0]}), output, scheduler)
    of_file = SweepSpec.model_validate(tomllib.loads(text))
    outcome = run_here(sweep_text(asked), output, scheduler, of_file=of_file)
    assert (len(outcome.plan.runs), outcome.waiting, outcome.others) == (4, 0, n_left_out)
    with open_results(output) as tree:
        states = tree["two_moons/uniform"].state
        assert tree.attrs["other_runs"] == n_left_out
        assert states.size - (states == "complete").sum() == (2 if not n_left_out else 0)


def test_the_note_of_a_killed_process_goes_though_nothing_is_left_to_do(tmp_path):
    output = tmp_path / "small"
    damage.sweep(output)
    (output / WORK_NOTE).write_text("[]")
    assert damage.sweep(output).computed == 0
    assert not (output / WORK_NOTE).exists()


def test_runs_of_another_sweep_of_the_same_name_are_said_to_be_set_aside(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    said = io.StringIO()
    console = Console(file=said, width=300)
    for grid in ([1.0], [1.0, 10.0], [100.0]):
        run_here(sweep_text({"uniform": grid}), output, scheduler, console=lambda: console)
        assert ("another sweep of the name" in said.getvalue()) == (grid == [100.0])
    assert "its 4 runs are set aside, not removed" in said.getvalue()


def test_a_damaged_record_is_computed_again(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    run_here(sweep_text({"uniform": [1.0, 10.0]}), output, scheduler)
    path = output / "records.journal"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    # A changed sweep makes its tree anew from the records.
    outcome = run_here(sweep_text({"uniform": [1.0, 10.0, 100.0]}), output, scheduler)
    assert (outcome.computed, outcome.skipped) == (3, 3)
    assert len(records(output)) == 6


def test_banks_are_deleted_when_nobody_needs_them_unless_they_are_kept(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    text = sweep_text({"uniform": [1.0]}).replace("keep_banks = true", "")
    run_here(text, output, scheduler)
    assert not list((tmp_path / "out").rglob("banks/*/zarr.json"))


def test_banks_that_differ_in_normalisation_alone_share_a_store_and_not_results(
    tmp_path, scheduler
):
    output = tmp_path / "out" / "small"
    bank = sweep_text({}, normalisation='"none"').partition("[[banks]]")[2]
    plain = bank.partition("[outputs]")[0]
    text = sweep_text({"uniform": [1.0]}, repeats=1).replace(
        "[outputs]", f'[[banks]]\nname = "plain"{plain}[outputs]'
    )
    outcome = run_here(text, output, scheduler)
    assert len({plan.id for plan in outcome.plan.banks}) == 1
    found = {record.bank: record.objective for record in records(output).values()}
    assert len(found) == 2
    assert found["plain"] != pytest.approx(found["bank"], rel=0.01)


@pytest.mark.parametrize("normalisation", quick(["trace", "cosine"]))
def test_precomputed_matrices_go_the_same_way(tmp_path, scheduler, normalisation):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(40, 3))
    y = np.where(x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=40) > 0, 1, -1)
    grams = np.array([(1 + x @ x.T) ** k for k in (1, 2, 3)])
    np.savez(tmp_path / "mine.npz", grams=grams, y=y)
    text = f"""
        name = "given"
        tol = 1e-6
        datasets = [{{ name = "mine", grams = "mine.npz" }}]
        splits = {{ repeats = 2, train_fraction = 0.7 }}
        banks = [{{ family = "precomputed", normalisation = "{normalisation}" }}]
        methods = [{{ name = "level", C = 10.0 }}]
        outputs = {{ predictions = true }}
    """
    output = tmp_path / "given"
    run_here(text, output, scheduler)
    [snapshot] = (output / "snapshots").iterdir()
    _, splits = load_snapshot(snapshot)
    found = records(output).values()
    assert len(found) == 2
    for record in found:
        train, test = splits[record.split].train, splits[record.split].test
        if normalisation == "cosine":
            roots = np.sqrt(np.einsum("mii->mi", grams))
            scaled = grams / roots[:, :, None] / roots[:, None, :]
        else:
            scaled = grams / np.einsum("mii->m", grams[:, train][:, :, train])[:, None, None]
        solution = solve("level", scaled[:, train][:, :, train], y[train], C=10.0, tol=1e-6)
        assert record.objective == pytest.approx(solution.objective, rel=2e-6)
        values = np.einsum(
            "m,mts,s->t", record.kernel_weights, scaled[:, test][:, :, train], record.coefficients
        )
        np.testing.assert_allclose(record.decision_values, values + record.bias, atol=1e-9)


def test_data_sets_that_differ_in_their_splits_alone(tmp_path, scheduler):
    text = sweep_text({"level": [1.0]}, fit="all", repeats=1)
    entry = '[[datasets]]\nname = "two_moons"\noptions = { n = 80, noise = 0.3 }\n'
    fewer = entry.replace('"two_moons"', '"fewer"\nsource = "two_moons"')
    text = text.replace(entry, f"{entry}{fewer}splits = {{ train_fraction = 0.2 }}\n")
    outcome = run_here(text, tmp_path / "out", scheduler)
    assert len({bank.id for bank in outcome.plan.banks}) == 1
    found = {record.dataset: record for record in records(outcome.path).values()}
    assert {name: len(record.test_rows) for name, record in found.items()} == {
        "two_moons": 40,
        "fewer": 64,
    }
    assert {name: len(record.coefficients) for name, record in found.items()} == {
        "two_moons": 40,
        "fewer": 16,
    }


def test_kernels_on_the_same_features_are_a_group_of_group_mkl(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    text = sweep_text({"group_mkl": [10.0]}, repeats=1)
    text = text.replace("[[datasets]]", "tol = 1e-6\n[[datasets]]", 1)
    run_here(text, output, scheduler)
    [snapshot] = (output / "snapshots").iterdir()
    dataset, [split] = load_snapshot(snapshot)
    train, _ = hand_made_kernels(dataset.x, split, "train")
    groups = np.repeat(["all", "x0", "x1"], len(WIDTHS))
    expected = solve("group_mkl", train, dataset.y[split.train], C=10.0, tol=1e-6, groups=groups)
    [record] = records(output).values()
    assert record.objective == pytest.approx(expected.objective, rel=2e-6)
    node = open_results(output)["two_moons/group_mkl"].to_dataset()
    weights = node.kernel_weights.to_numpy().reshape(3, len(WIDTHS))
    assert (weights == weights[:, :1]).all()
    assert node["kernel_groups"].item() == 3
    assert node["active_groups"].item() == (weights[:, 0] > 0).sum()


@pytest.mark.slow
def test_parameters_on_one_data_set_are_those_of_its_own_sweep(tmp_path):
    text = sweep_text({"uniform": [10.0], "level": [100.0]})
    moons = "[[datasets]]\nname = "
    circles = f'{moons}"two_circles"\noptions = {{ n = 80 }}\n'
    both = text.replace(moons, circles + moons, 1)
    both += "on = { two_circles = { C = [1.0, 1000.0] } }\n"
    run_here(both, tmp_path / "both", None)
    with open_results(tmp_path / "both") as tree:
        assert tree["two_moons/level"].C.values.tolist() == [100.0]
        assert tree["two_circles/level"].C.values.tolist() == [1.0, 1000.0]
        assert tree["two_circles/uniform"].C.values.tolist() == [10.0]
        assert (tree["two_circles/level"].state == "complete").all()
    alone = text.replace(
        '"two_moons"\noptions = { n = 80, noise = 0.3 }', '"two_circles"\noptions = { n = 80 }'
    )
    alone = alone.replace("[100.0]", "[1.0, 1000.0]")
    assert {run.id for run in plan_of(text).runs} < {run.id for run in plan_of(both).runs}
    assert {run.id for run in plan_of(alone).runs} < {run.id for run in plan_of(both).runs}


def test_a_sweep_says_what_was_damaged_and_is_made_anew(tmp_path):
    output = tmp_path / "small"
    assert damage.sweep(output).mended == ()
    damage.flip(damage.kinds(output)["layout"][-1], np.random.default_rng(0))
    again = damage.sweep(output)
    assert again.computed == 0
    assert again.mended == ("the layout of the results was damaged, and is made anew",)
    assert damage.sweep(output).mended == ()
