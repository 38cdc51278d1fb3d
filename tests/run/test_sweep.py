"""Whole sweeps against scikit-learn on kernels made by hand; paths; small work; time; progress."""

import errno
import io
import math
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster
from rich.console import Console
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mkldist.core.metrics import METRICS
from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot
from mkldist.data.splits import repeated_folds
from mkldist.errors import EXIT_OUT_OF_TIME, ClusterError, OutOfTimeError, SpecError
from mkldist.fit.api import solve
from mkldist.fit.engine import Subproblem, TrainingView, chains_of
from mkldist.planning.model import RunPlan
from mkldist.results.folder import WORK_NOTE
from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from mkldist.results.tree import open_results
from mkldist.run.cluster import ConnectOptions
from mkldist.run.progress import (
    Counts,
    NotebookProgress,
    Pace,
    Progress,
    TerminalProgress,
    describe,
    duration,
    make_progress,
)
from mkldist.run.sweep_setup import (
    SMALL_SECONDS,
    WallTime,
    described,
    is_small,
    parse_wall_time,
    scored_rows,
    split_coordinates,
    sweep_rounds,
)
from mkldist.spec.datasets import SplitsSpec
from mkldist.spec.load import load_sweep, sweep_file
from mkldist.spec.model import SelectionSpec, SweepSpec
from tests.run import damage
from tests.run.here import sweep
from tests.run.sweeps import (
    misbehaving_methods,
    plan_of,
    record_times,
    records,
    rounds_of,
    run_here,
    sweep_text,
)
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
    again = run_here(sweep_text({"uniform": [1.0, 10.0]}), output, scheduler)
    assert (again.computed, again.skipped) == (0, 4)
    assert record_times(output) == before
    changed = run_here(sweep_text({"uniform": [10.0, 100.0]}), output, scheduler)
    assert (changed.computed, changed.skipped) == (2, 2)
    assert {k: v for k, v in record_times(output).items() if k in before} == before
    with open_results(output) as tree:
        assert (tree["two_moons/uniform"].state == "complete").all()


@pytest.mark.slow
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


@pytest.mark.slow
def test_runs_of_another_sweep_of_the_same_name_are_said_to_be_set_aside(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    said = io.StringIO()
    console = Console(file=said, width=300)
    for grid in ([1.0], [1.0, 10.0], [100.0]):
        run_here(sweep_text({"uniform": grid}), output, scheduler, console=lambda: console)
        assert ("another sweep of the name" in said.getvalue()) == (grid == [100.0])
    assert "its 4 runs are set aside, not removed" in said.getvalue()


@pytest.mark.slow
def test_banks_are_deleted_when_nobody_needs_them_unless_they_are_kept(tmp_path, scheduler):
    output = tmp_path / "out" / "small"
    text = sweep_text({"uniform": [1.0]}).replace("keep_banks = true", "")
    run_here(text, output, scheduler)
    assert not list((tmp_path / "out").rglob("banks/*/zarr.json"))


@pytest.mark.slow
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


@pytest.mark.slow
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


C = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
STRENGTHS = [3.0, 10.0, 30.0, 100.0]  # of the paper: 1 / lambda
MANY = [round(0.1 * 1.15**k, 4) for k in range(20)]


def text_of(execution: str, methods: dict[str, list[float]], **changes: str) -> str:
    text = sweep_text(methods, execution=execution, fit="all", **changes)
    return text.replace("[0.1, 0.3, 1.0, 3.0]", str(MANY))


def passes_of(record) -> float:
    return record.counters["passes"] + record.extra.get("partial_passes", 0.0)


@pytest.mark.slow
def test_a_path_agrees_with_separate_runs_in_fewer_passes(tmp_path, scheduler):
    methods = {"spicymkl": STRENGTHS, "level": C, "uniform": [1.0, 10.0]}
    found = {}
    for execution in ("shared", "path"):
        output = tmp_path / execution / "small"
        outcome = run_here(text_of(execution, methods), output, scheduler)
        assert outcome.counts[RunState.COMPLETE] == outcome.computed == 2 * 12
        found[execution] = {(r.method, r.params["C"], r.split): r for r in records(output).values()}
    shared, path = found["shared"], found["path"]
    assert not {r.id for r in shared.values()} & {r.id for r in path.values()}
    assert shared.keys() == path.keys()
    for place, record in path.items():
        other, slack = shared[place], 1e-9 * abs(record.objective)
        assert record.dual_objective <= other.objective + slack
        assert other.dual_objective <= record.objective + slack
        assert record.objective - record.dual_objective <= 0.01 * abs(record.objective)
    for method, first in (("level", C[0]), ("spicymkl", STRENGTHS[0])):
        further = [place for place in path if place[0] == method and place[1] != first]
        warm = sum(passes_of(path[place]) for place in further)
        assert warm < 0.6 * sum(passes_of(shared[place]) for place in further)
        assert warm <= 3 * len(further)


@pytest.mark.slow
def test_a_path_goes_on_from_what_is_recorded(tmp_path, scheduler):
    output, text = tmp_path / "out" / "small", text_of("path", {"level": C})
    run_here(text, output, scheduler)
    before, times = records(output), record_times(output)
    gone = {r.id for r in before.values() if r.split == 0 and r.params["C"] in (10.0, 30.0, 300.0)}
    store = Journal(output / "records.journal")
    for run_id in gone:
        store.remove([run_id])
    outcome = run_here(text, output, scheduler)
    after = records(output)
    assert outcome.computed == len(gone) == 3
    assert outcome.skipped == len(before) - 3
    again = {name for name, written in record_times(output).items() if written != times[name]}
    assert {name.split(".")[0] for name in again} == gone
    for run_id, record in after.items():
        assert record.objective == pytest.approx(before[run_id].objective, rel=0.01)


@pytest.mark.slow
def test_classes_have_paths_of_their_own(tmp_path, scheduler):
    text = text_of("path", {"level": [1.0, 10.0]}, repeats="1")
    text = text.replace('name = "two_moons"\noptions = { n = 80, noise = 0.3 }', 'name = "iris"')
    output = tmp_path / "out" / "small"
    outcome = run_here(text, output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == 2
    passes = {r.params["C"]: passes_of(r) for r in records(output).values()}
    assert passes[10.0] <= passes[1.0]


WHOLE = TrainingView(0)
FOLD = TrainingView(0, selection=SelectionSpec(folds=2), fold=1)


def run(C: float, tol: float = 0.01, *, on_path: bool = True) -> RunPlan:
    params = {"C": C, "tol": tol}
    return RunPlan(f"{C}-{tol}", "d", "b", "b", 0, "level", "level", params, on_path=on_path)


def links(runs: list[RunPlan], *views: TrainingView, classes=(None,)) -> list[list[float]]:
    """Return the values of C in each chain."""
    subproblems = [[Subproblem(r, view, c) for view in views for c in classes] for r in runs]
    return [[s.run.params["C"] for s in chain] for chain in chains_of(subproblems)]


def test_runs_without_a_path_are_chains_by_themselves():
    assert links([run(C, on_path=False) for C in (3.0, 1.0)], WHOLE) == [[3.0], [1.0]]


def test_a_path_begins_with_the_strongest_regularisation():
    assert links([run(C) for C in (3.0, 1.0, 2.0)], WHOLE) == [[1.0, 2.0, 3.0]]


def test_folds_classes_and_other_parameters_have_chains_of_their_own():
    runs = [run(C, tol) for tol in (0.1, 0.2) for C in (2.0, 1.0)]
    assert links(runs, WHOLE, FOLD, classes=(0, 1, 2)) == [[1.0, 2.0]] * (2 * 2 * 3)


MANY_WIDTHS = '{ start = 0.1, stop = 10, num = 5000, scale = "log" }'
BYTES_BUILT_A_SECOND = 4e8  # as the text of a plan says


@pytest.mark.parametrize(
    ("changes", "small"),
    [
        ({}, True),
        ({"execution": "path"}, True),
        ({"execution": "isolated"}, False),
        ({"repeats": 300}, False),
    ],
)
def test_what_small_sweeps_are(changes, small):
    rounds = rounds_of(sweep_text({"level": [1.0, 10.0, 100.0]}, **changes))
    assert is_small(rounds, rounds.most.batches) is small


def test_the_quickstart_is_not_small_but_the_rest_of_it_may_be():
    file = sweep_file(Path("quickstart"))
    spec = load_sweep(file, (), None)
    rounds = sweep_rounds(spec, file, (), ConnectOptions(n_workers=1))
    assert not is_small(rounds, rounds.most.batches)
    assert is_small(rounds, [min(rounds.most.batches, key=lambda batch: len(batch.runs))])


def test_a_bank_that_takes_long_to_build_is_no_small_work():
    """A run that looks at no kernel still waits for its bank."""
    text = sweep_text({}, repeats=1) + '[[methods]]\nname = "majority"'
    few = rounds_of(text)
    text = text.replace("[0.1, 0.3, 1.0, 3.0]", MANY_WIDTHS).replace("n = 80", "n = 800")
    many = rounds_of(text)
    [bank] = many.most.banks
    assert bank.stored
    assert bank.n_bytes / BYTES_BUILT_A_SECOND > SMALL_SECONDS
    assert is_small(few, few.most.batches)
    assert not is_small(many, many.most.batches)


def test_methods_from_elsewhere_get_processes():
    with misbehaving_methods():
        rounds = rounds_of(sweep_text({"killing": [1.0]}))
        assert not is_small(rounds, rounds.most.batches)


TEXT = sweep_text({"uniform": [1.0, 10.0], "level": [100.0]}, execution="isolated")


@pytest.mark.parametrize(
    ("words", "seconds"), [("90m", 5400.0), ("2h", 7200.0), ("1.5 hours", 5400.0), (None, math.inf)]
)
def test_words_are_seconds(words, seconds):
    assert parse_wall_time(words) == seconds


@pytest.mark.parametrize("words", ["soon", "", "0s", "-2h", "inf h", "2 fortnights", "1e400h"])
def test_other_words_are_refused(words):
    with pytest.raises(SpecError, match=r"^wall_time: found .*; expected a time such as '90m'"):
        parse_wall_time(words)


def test_a_time_ends_when_it_is_over(monkeypatch):
    WallTime().check()
    own = WallTime.from_now("2h")
    own.check()
    over = time.monotonic() + 7200.0
    monkeypatch.setattr("mkldist.run.sweep_setup.time.monotonic", lambda: over)
    with pytest.raises(OutOfTimeError, match=r"^wall_time: found 2h to be over$"):
        own.check()


@pytest.mark.slow
def test_a_sweep_waits_for_workers_as_long_as_it_says(tmp_path):
    text = 'worker_wait = "2s"\n' + sweep_text({"uniform": [1.0]})
    with (
        LocalCluster(n_workers=0, dashboard_address=":0", processes=False) as cluster,
        pytest.raises(ClusterError, match="none within 2 s"),
    ):
        run_here(text, tmp_path / "small", cluster.scheduler_address)
    default, queued = WallTime.from_now(None), WallTime.from_now(None, patient=True)
    assert (default.worker_wait, queued.worker_wait) == (600.0, math.inf)


@pytest.mark.slow
def test_a_sweep_ends_at_its_time_and_the_same_call_resumes(tmp_path, monkeypatch):
    output = tmp_path / "small"
    text = TEXT.replace("[[datasets]]", 'wall_time = "2h"\n[[datasets]]', 1)

    def over_after_a_record(own: WallTime) -> None:
        if records(output):
            raise OutOfTimeError("wall_time", f"{own.words} to be over")

    with monkeypatch.context() as patched:
        patched.setattr(WallTime, "check", over_after_a_record)
        with pytest.raises(OutOfTimeError) as caught:
            run_here(text, output, None, resume_command="mkldist sweep small.toml")
    said = str(caught.value)
    assert said.startswith("wall_time: found 2h to be over. ")
    assert said.endswith("of 6 runs are recorded; resume with: mkldist sweep small.toml.")
    assert caught.value.exit_code == EXIT_OUT_OF_TIME
    recorded = len(records(output))
    assert 1 <= recorded <= 6
    outcome = run_here(text, output, None)
    assert outcome.skipped == recorded
    assert outcome.computed == 6 - recorded


TEN = Dataset("d", np.zeros((10, 1)), np.zeros(10), None)


def test_the_folds_of_a_repetition_divide_the_rows():
    tests = list(repeated_folds(3, 2, 0, 10))
    splits = tuple(Split(np.setdiff1d(np.arange(10), test), test) for test in tests)
    found = split_coordinates(SplitsSpec(kind="kfold", folds=3, repeats=2), splits, TEN)
    for repeat in (0, 1):
        own = [
            split.test for split, of in zip(splits, found["repeat"], strict=True) if of == repeat
        ]
        assert sorted(np.concatenate(own)) == list(range(10))
    assert found["fold"].tolist() == [0, 1, 2, 0, 1, 2]
    assert (found["n_train"] + found["n_test"]).tolist() == [10] * 6
    assert found["n_test"].tolist() == [len(test) for test in tests]
    assert found["n_unlabelled"].tolist() == [0] * 6


def test_other_splits_are_repetitions_and_times_are_folds():
    split = Split(np.arange(4), np.arange(4, 6), np.arange(6, 9))
    found = split_coordinates(SplitsSpec(repeats=3), (split,) * 3, TEN)
    assert (found["repeat"].tolist(), found["fold"].tolist()) == ([0, 1, 2], [0, 0, 0])
    assert found["n_unlabelled"].tolist() == [3, 3, 3]
    by_group = SplitsSpec(kind="leave-one-group-out", groups="site")
    found = split_coordinates(by_group, (split,) * 3, TEN)
    assert found["repeat"].tolist() == [0, 0, 0]
    assert found["fold"].tolist() == [0, 1, 2]
    found = split_coordinates(SplitsSpec(kind="time", folds=3), (split,) * 3, TEN)
    assert (found["repeat"].tolist(), found["fold"].tolist()) == ([0, 0, 0], [0, 1, 2])


VISITS = """
name = "visits"
[[datasets]]
name = "visits"
file = "visits.csv"
label = "y"
groups = { own = ["own0", "own1", "own2"] }
[splits]
repeats = 1
GROUPS
[[banks]]
[[banks.kernels]]
function = "linear"
features = ["signal"]
[[banks.kernels]]
function = "gaussian"
widths = [0.5]
features = ["own"]
[[methods]]
name = "best_single"
C = 1.0
"""


def test_a_single_kernel_is_chosen_by_folds_that_keep_groups_together(tmp_path):
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(40), 3)  # three visits, of which each tells the next
    y = rng.permutation(40)[patients] < 20
    columns = {"y": y, "patient": patients, "signal": rng.normal(size=120) + 1.6 * y}
    own = rng.normal(size=(40, 3))[patients]
    table = pd.DataFrame(columns | {f"own{i}": own[:, i] for i in range(3)})
    table.to_csv(tmp_path / "visits.csv", index=False)
    chosen = []
    for place, groups in (("divided", ""), ("together", 'groups = "patient"')):
        sweep(VISITS.replace("GROUPS", groups), tmp_path / place)
        found = open_results(tmp_path / place)["visits/best_single/kernel_weights"]
        chosen.append(int(found.values.argmax()))
    assert chosen == [1, 0]


def test_rows_that_score_are_counted_once_and_a_constant_is_scored():
    y = np.array([1.0, -1.0, -1.0, -1.0, 1.0, -1.0])
    dataset = Dataset(
        name="d", x=np.zeros((6, 1)), y=y, classes=("no", "yes"), feature_names=("a",)
    )
    splits = [
        Split(np.array([0, 1, 2]), np.array([3, 4, 5])),
        Split(np.array([1, 2, 4]), np.array([0, 3, 5])),
    ]
    found = scored_rows(dataset, splits, METRICS["error"], np.arange(2))
    assert (found["n_new"].tolist(), found["n_rarest"].tolist()) == ([3, 1], [1, 1])
    assert found["constant_score"].tolist() == pytest.approx([1 / 3, 1 / 3])
    balanced = scored_rows(dataset, splits, METRICS["balanced_error"], np.arange(2))
    assert balanced["constant_score"].tolist() == [0.5, 0.5]


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120)


class ClosedTerminal(io.StringIO):
    """A terminal that takes nothing once it is closed."""

    is_closed = False

    def write(self, text: str) -> int:
        if self.is_closed:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(text)


def test_lines_are_timed_and_not_repeated():
    now = [100.0]
    target = console(terminal=False)
    with Progress(target, lambda: now[0]) as progress:
        for second in range(25):
            now[0] = 100.0 + second
            progress.show(Counts(runs=50, runs_done=2 * second, doing="solving"))
        progress.show(Counts(runs=50, runs_done=50, runs_failed=3))
    lines = target.file.getvalue().splitlines()
    assert [line[:7] for line in lines] == ["[00:02]", "[00:12]", "[00:22]", "[00:24]"]
    assert lines[0].endswith("] solving: 4 of 50 runs")
    assert lines[1].endswith("] solving: 24 of 50 runs, 2.0 a second, at least 00:13 left")
    assert lines[-1].endswith("3 failed")


@pytest.mark.parametrize("terminal", [True, False])
def test_stale_numbers_are_not_what_an_interruption_leaves(terminal):
    target = console(terminal=terminal)
    progress = make_progress(target)
    progress.__enter__()
    progress.show(Counts(runs=50, runs_done=7))
    progress.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert "7 of 50" not in target.file.getvalue().rpartition("\x1b[2K")[2]


def test_what_is_waited_for_is_news_that_does_not_wait_for_the_next_line():
    now, target = [0.0], console(terminal=False)
    doings = {0: "waiting for workers", 1: "building banks", 3: "compiling", 9: "solving"}
    with Progress(target, lambda: now[0]) as progress:
        counts = Counts(runs=4)
        for second in range(12):
            now[0], counts.doing = float(second), doings.get(second, counts.doing)
            progress.show(counts)
        counts.runs_done = 4
    assert target.file.getvalue().splitlines() == [
        "[00:02] building banks: 0 of 4 runs",
        "[00:04] compiling: 0 of 4 runs",
        "[00:09] solving: 0 of 4 runs",
        "[00:11] solving: 4 of 4 runs",
    ]


def rates(*done: int, doing: str = "solving") -> list[float | None]:
    """Return what the pace says each second, given the runs that have ended by then."""
    pace = Pace()
    return [
        pace.rate(Counts(runs=100, runs_done=n, doing=doing), float(second))
        for second, n in enumerate(done)
    ]


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (range(7), [None] * 5 + [1.0, 1.0]),
        ([0] * 7 + [4], [None] * 8),  # too few runs
        ([0] + [20] * 7, [None] * 8),  # a burst, then nothing
        ([0] * 7 + [20], [None] * 8),  # nothing, then a burst
    ],
)
def test_a_remaining_time_needs_some_seconds_and_runs_at_a_steady_rate(done, expected):
    assert rates(*done) == expected


def test_time_before_the_first_run_is_solved_is_no_part_of_the_rate():
    pace = Pace()
    for second in range(100):
        assert pace.rate(Counts(runs=50, doing="compiling"), float(second)) is None
    found = [
        pace.rate(Counts(runs=50, runs_done=2 * n, doing="solving"), 100.0 + n) for n in range(9)
    ]
    assert found == [None] * 5 + [2.0] * 4


BUILT = {"bytes": 4 * 2**20, "bytes_done": 2**20, "built": {"a"}}
TENTH = {"runs": 100, "runs_done": 10}


@pytest.mark.parametrize(
    ("counts", "rate", "said"),
    [
        ({"runs": 5, "banks": 4, **BUILT}, None, "1 of 4 banks built, 0 of 5 runs"),
        ({"runs": 5, "banks": 1, **BUILT}, None, "0 of 5 runs"),
        ({"runs": 5, "banks": 1}, None, "0 of 5 runs"),
        # A least time while quick runs of batches at work have set the rate.
        (TENTH, 2.0, "10 of 100 runs, 2.0 a second, at least 00:45 left"),
        ({**TENTH, "runs_of_ended_batches": 4}, 2.0,
         "10 of 100 runs, 2.0 a second, at least 00:45 left"),
        ({**TENTH, "runs_of_ended_batches": 5}, 2.0, "10 of 100 runs, 2.0 a second, 00:45 left"),
        ({"runs": 10, "runs_done": 5, "runs_of_ended_batches": 5}, 0.5,
         "5 of 10 runs, 30.0 a minute, 00:10 left"),
        ({"runs": 10, "runs_done": 10}, 0.5, "10 of 10 runs"),
        ({"runs": 9, "runs_done": 4, "runs_failed": 1, "may_be_fewer": True}, None,
         "4 of at most 9 runs, 1 failed"),
    ],
)  # fmt: skip
def test_counts_are_told_in_words(counts, rate, said):
    assert describe(Counts(**counts), rate) == said


def test_hours_are_told_where_there_are_any():
    assert duration(7322) == "2:02:02"


def test_a_terminal_gets_a_line_that_changes_and_a_pipe_lines():
    assert type(make_progress(None)) is Progress
    assert type(make_progress(console(terminal=False))) is Progress
    target = console(terminal=True)
    with make_progress(target) as progress:
        assert isinstance(progress, TerminalProgress)
        progress.note("[not markup]")
        progress.show(Counts(runs=8, runs_done=8, bytes=2**20, banks=2, built={"a"}))
    shown = target.file.getvalue()
    assert "[not markup]" in shown
    assert "8 of 8 runs" in shown
    assert "1 of 2 banks built" in shown


def test_a_notebook_gets_one_display_that_changes_in_place(monkeypatch):
    """A stand-in for IPython, which the tests do not need."""
    shown: list[str] = []

    class Place:
        def update(self, content, *, raw):
            shown[-1] = content["text/plain"]

    def display(content, *, raw, display_id):
        shown.append(content["text/plain"])
        return Place()

    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(kernel=object())
    shell.display = ModuleType("IPython.display")
    shell.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell.display)
    assert isinstance(make_progress(console(terminal=False)), NotebookProgress)
    now = [10.0]
    with NotebookProgress(clock=lambda: now[0]) as progress:
        progress.note("some: 4 runs to do")
        now[0] = 14.0
        progress.show(Counts(runs=4, runs_done=1, doing="solving"))
        progress.show(Counts(runs=4, runs_done=2, doing="solving"))  # too soon to be shown
        assert shown == ["some: 4 runs to do\n[00:04] solving: 1 of 4 runs"]
        progress.note("a second note")
        now[0] = 90.0
        progress.show(Counts(runs=4, runs_done=4))
    assert shown == ["some: 4 runs to do\na second note\n[01:20] 4 of 4 runs"]
    shell.get_ipython = lambda: None  # a program that has imported IPython
    assert type(make_progress(console(terminal=False))) is Progress


def test_a_later_round_goes_on_counting():
    first = Counts(runs=9, runs_done=4, runs_failed=1, banks=3, built={"a"}, bytes=8, bytes_done=8)
    second = first.of_next_round(2)
    assert (second.runs, second.runs_done, second.runs_failed) == (9, 4, 1)
    assert (second.banks, second.built, second.bytes, second.bytes_done) == (2, set(), 0, 0)


def test_a_terminal_that_is_closed_does_not_hide_what_ended_the_work():
    file = ClosedTerminal()

    def work() -> None:
        with TerminalProgress(Console(file=file, force_terminal=True, width=120)) as progress:
            progress.show(Counts(runs=4, runs_done=1))
            file.is_closed = True
            raise KeyboardInterrupt("of the terminal")

    with pytest.raises(KeyboardInterrupt, match="of the terminal"):
        work()


def test_an_empty_category_is_a_missing_cell():
    x = np.array([[1.0, 0.0, 0.0], [np.nan, 0.0, 1.0], [2.0, 1.0, 0.0]])
    data = Dataset("d", x, np.array([1.0, 1, -1]), None, feature_names=("a", "k=x", "k=?"))
    assert described(data)["missing"] == 2
