"""Batches on a bank of factors: certificates, inner folds, classes, growth and failures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mkldist.bank import factor_bank, factored_kernels
from mkldist.bank.build import StoredPieces
from mkldist.bank.cache import NodeFolders
from mkldist.results.journal import RunRecord
from mkldist.results.schema import RunState
from mkldist.run import tasks
from mkldist.run.record_queue import unpacked
from mkldist.run.tasks import BatchTask, solve_batch
from mkldist.solvers import on_factors
from tests.run.sweeps import run_process, running_process, solutions, sweep_text, wait_until
from tests.run.test_tasks import task_of

pytestmark = pytest.mark.slow

TEXT = """
name = "factors"
tol = 1e-3
{more}
[[datasets]]
{data}
[preprocessing]
fit = "{fit}"
[splits]
repeats = 1
[[banks]]
backend = "{backend}"
dtype = "{dtype}"
{rank}
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 0.5, 2.0]
features = ["all", "each"]
[outputs]
predictions = true
[[methods]]
name = "level"
C = [10.0, 100.0]
[[methods]]
name = "uniform"
C = 10.0
{chosen}
"""
LONG = "rank = 120"  # all columns, where sums of the kernels would be taken instead
MOONS = 'name = "two_moons"\noptions = { n = 120, noise = 0.3 }'


@pytest.fixture(autouse=True)
def few(monkeypatch, tmp_path):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 5)
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))


def task(folder: Path, backend: str = "factors", **changes: str) -> BatchTask:
    settings = {
        "more": "",
        "data": MOONS,
        "fit": "train",
        "chosen": "",
        "dtype": "auto",
        "rank": "",
    } | changes
    return task_of(TEXT.format(backend=backend, **settings), folder)


def records(wanted: BatchTask) -> dict[str, RunRecord]:
    """Do a batch; return its records by method and C."""
    settings = replace(wanted.settings, predictions=True)
    found = solved(replace(wanted, settings=settings))
    return {f"{run.method} {run.params['C']:g}": found[run.id] for run in wanted.runs}


def solved(wanted: BatchTask) -> dict[str, RunRecord]:
    """Do a batch; return its records by run."""
    return {one.id: one for one in map(unpacked, solve_batch(wanted).records)}


@pytest.mark.parametrize("dtype", ["auto", "float32"])
def test_runs_on_factors_are_those_on_the_kernels(tmp_path, dtype):
    wanted = task(tmp_path / "factors", fit="all", dtype=dtype, rank=LONG)
    on_factors, store = records(wanted), wanted.ref.store()
    exact = records(task(tmp_path / "memory", "memory", fit="all"))
    assert list(on_factors) == ["level 10", "level 100", "uniform 10"]
    assert store.dtype == StoredPieces(store, 8).get(0).columns.dtype
    assert (store.dtype == np.float32) == (dtype == "float32")
    assert store.shape.chunk_bytes == store.dtype.itemsize * store.shape.chunk_entries + 4
    for name, record in on_factors.items():
        assert record.state is RunState.COMPLETE
        assert record.stop_reason == "converged"
        assert record.gap <= record.extra["exact_gap"] <= 1e-3
        assert dtype == "auto" or record.gap == record.extra["exact_gap"]
        assert record.extra["largest_rank"] > 5 or record.method == "uniform"  # of one sum
        assert record.extra["exact_dual_objective"] <= exact[name].objective
        assert record.objective >= exact[name].dual_objective
        values, expected = record.decision_values, exact[name].decision_values
        assert np.abs(values - expected).max() <= 0.1 * np.abs(expected).max()
        assert record.counters["pass_bytes"] > 0
        assert "exact_gap" not in exact[name].extra


def test_runs_do_not_depend_on_the_memory_of_factors(tmp_path, monkeypatch):
    shelves, begin = [], tasks.begin_factors

    def noted(*arguments, **options):
        factored = begin(*arguments, **options)
        shelves.append(factored.factors.cache)
        return factored

    monkeypatch.setattr(tasks, "begin_factors", noted)
    monkeypatch.setattr(factored_kernels, "PIECE", 0)
    monkeypatch.setattr(factor_bank, "MOST_VALUES", 0)  # sums of copies round otherwise
    roomy, wanted = (
        records(task(tmp_path / "roomy", rank=LONG)),
        task(tmp_path / "tight", rank=LONG),
    )
    column = 8 * 60
    settings = replace(wanted.settings, memory_limit=2 * 3 * 60 * column)  # one in the making
    tight = records(replace(wanted, settings=settings))
    by_default, in_file = shelves
    assert (by_default.n_read, by_default.n_written) == (0, 0)
    assert in_file.n_bytes == 3 * 60 * column
    assert min(in_file.n_read, in_file.n_written) > 0
    for name, record in tight.items():
        assert record.state is RunState.COMPLETE, record.error
        if record.method == "uniform":  # whose sum this memory does not hold
            assert record.objective == pytest.approx(roomy[name].objective, rel=1e-3)
            continue
        assert record.objective == roomy[name].objective
        assert record.extra == roomy[name].extra
        assert (record.decision_values == roomy[name].decision_values).all()


def test_factors_of_one_machine_take_the_room_of_banks_used_longest_ago(tmp_path, monkeypatch):
    own = NodeFolders("built", budget_bytes=1)
    monkeypatch.setattr(tasks, "OWN_BANKS", own)
    with own.used("old") as folder:
        (folder / "values").write_bytes(b"0")
    wanted = task(tmp_path)
    records(replace(wanted, ref=replace(wanted.ref, root="")))
    assert [path.name for path in own.root.glob("[!.]*")] == [wanted.ref.plan.id]


def test_inner_folds_are_solved_on_factors_and_scored_on_the_bank(tmp_path):
    words = {"more": "[selection]\nfolds = 3\n", "chosen": '[[methods]]\nname = "best_single"\n'}
    found = records(task(tmp_path / "factors", **words))
    exact = records(task(tmp_path / "memory", "memory", **words))
    assert list(found) == ["level 10", "level 100", "uniform 10", "best_single 1"]
    for name, record in found.items():
        assert record.state is RunState.COMPLETE, record.error
        assert record.extra["exact_gap"] <= 1e-3
        error = exact[name].scores["validation_error"]
        assert record.scores["validation_error"] == pytest.approx(error, abs=0.05)


def test_each_class_is_certified_and_all_together(tmp_path):
    found = records(task(tmp_path, data='name = "wine"'))
    for record in found.values():
        assert record.of_classes["class_exact_gap"].shape == (3,)
        assert (record.of_classes["class_exact_gap"] <= 1e-3).all()
        assert record.extra["exact_gap"] <= 1e-3
        assert record.objective >= record.extra["exact_dual_objective"]


def test_factors_that_may_not_grow_leave_a_run_that_did_not_converge(tmp_path):
    wanted = task(tmp_path)
    spec = wanted.ref.plan.spec.model_copy(update={"rank": 6})
    plan = replace(wanted.ref.plan, spec=spec)
    found = records(replace(wanted, ref=replace(wanted.ref, plan=plan)))
    for record in found.values():
        assert record.state is RunState.COMPLETE
        if record.method == "uniform":  # which takes the sum of the kernels themselves
            assert record.stop_reason == "converged"
            continue
        assert record.stop_reason == "rank_limit"
        assert record.extra["exact_gap"] > 1e-3
        assert record.extra["largest_rank"] <= 6


def test_a_run_that_fails_leaves_the_others(tmp_path, monkeypatch):
    solve, seen = on_factors.solve_on_factors, []

    def failing(kernels, method, problem, params):
        seen.append(method.name)
        if len(seen) == 1:
            raise ArithmeticError("no digits left")
        return solve(kernels, method, problem, params)

    monkeypatch.setattr(on_factors, "solve_on_factors", failing)
    found = records(task(tmp_path))
    states = [record.state for record in found.values()]
    assert states == [RunState.FAILED, RunState.COMPLETE, RunState.COMPLETE]
    assert "no digits left" in found["level 10"].error


def test_a_run_does_not_depend_on_those_beside_it(tmp_path):
    together = records(task(tmp_path / "together"))
    wanted = task(tmp_path / "alone")
    [alone] = records(replace(wanted, runs=wanted.runs[1:2])).values()
    assert alone.objective == together["level 100"].objective
    assert alone.extra == together["level 100"].extra
    assert (alone.decision_values == together["level 100"].decision_values).all()


def test_a_sweep_killed_while_it_makes_factors_ends_as_if_it_had_not_been(tmp_path):
    text = sweep_text({"level": [1.0, 10.0], "uniform": [1.0, 10.0]}, backend="factors")
    whole, output = tmp_path / "a" / "whole", tmp_path / "b" / "killed"
    for folder in (whole, output):
        folder.parent.mkdir()
    code, said = run_process(text, whole)
    assert code == 0, said
    pieces = "banks/*/c/*/*/0"
    with running_process(text, output, "--workers", "1") as one:
        wait_until(lambda: len(list(output.parent.glob(pieces))) > 3, "factors", one)
    code, said = run_process(text, output)
    assert code == 0, said
    assert solutions(output) == solutions(whole)
    assert len(solutions(output)) == 8
    assert len(list(output.parent.glob(pieces))) == len(list(whole.parent.glob(pieces)))
