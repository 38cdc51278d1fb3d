"""Sweeps of many classes against solving by hand, for worker.subproblems and worker.scoring."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_digits, load_iris

import mkldist
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS, MODULES
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.export import export
from mkldist.results.journal import Journal
from mkldist.results.rows import weight_rows
from mkldist.results.schema import RunState
from mkldist.spec.model import SweepSpec
from tests.run.few_labels import do, grams, save_npz, text, zscored
from tests.run.sweeps import kill_after, record_times, records, run_here, run_process

LEVEL = '[[methods]]\nname = "level"\nC = [1.0, 20.0]\n'
SHARED = '[[methods]]\nname = "level"\nlabel = "shared"\nkernel_weights = "shared"\nC = 20.0\n'
UNIFORM = '[[methods]]\nname = "uniform"\nC = 20.0\n'
MAJORITY = '[[methods]]\nname = "majority"\n'


def iris(methods: str, **changes: str) -> str:
    settings = {"source": 'source = "iris"', "splits": "repeats = 2", "graph": ""} | changes
    return text(methods, **settings)


def solved_by_hand(done, split, fitted, C, shared):
    """Return decision values of each class at the test rows, (k, t), and kernel weights."""
    kernels = grams(zscored(done.dataset.x, fitted))
    traces = kernels[:, split.train, split.train].sum(axis=1)[:, None, None]
    own = kernels[:, split.train[:, None], split.train] / traces
    across = kernels[:, split.test[:, None], split.train] / traces
    y = np.where(done.dataset.y[split.train][:, None] == np.arange(3), 1.0, -1.0)
    if shared:
        solution = mkldist.solve("level", own, y, C=C, tol=1e-8)
        return solution.decision_function(across).T, solution.kernel_weights, [solution]
    solutions = [mkldist.solve("level", own, column, C=C, tol=1e-8) for column in y.T]
    values = np.array([one.decision_function(across) for one in solutions])
    return values, np.array([one.kernel_weights for one in solutions]), solutions


@pytest.mark.slow
@pytest.mark.parametrize("fit", ["train", "all"])
def test_a_run_is_one_solver_for_each_class(tmp_path, fit):
    done = do(iris(LEVEL + SHARED, fit=fit), tmp_path)
    assert done.dataset.multiclass == ("setosa", "versicolor", "virginica")
    assert len(done.records) == 2 * 3
    for (key, number, _), record in done.records.items():
        split, C = done.splits[number], record.params["C"]
        fitted = split.train if fit == "train" else np.arange(150)
        values, weights, solutions = solved_by_hand(done, split, fitted, C, key == "shared")
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(record.kernel_weights, weights, atol=1e-3)
        objective = sum(one.objective for one in solutions)
        assert record.objective == pytest.approx(objective, rel=1e-7)
        assert record.gap <= 1e-8
        of_classes = record.of_classes
        if key == "level":
            own = [one.objective for one in solutions]
            np.testing.assert_allclose(of_classes["class_objective"], own, rtol=1e-7)
        numbers = done.dataset.y[split.test].astype(int)
        predicted = record.decision_values.argmax(axis=0)
        assert record.scores["test_error"] == pytest.approx((predicted != numbers).mean())
        recalls = metrics.recall_score(numbers, predicted, average=None)
        np.testing.assert_allclose(of_classes["class_error"], 1 - recalls)
        balanced = 1 - metrics.balanced_accuracy_score(numbers, predicted)
        assert record.scores["balanced_error"] == pytest.approx(balanced)
        aucs = [metrics.roc_auc_score(numbers == c, v)
                for c, v in enumerate(record.decision_values)]  # fmt: skip
        assert record.scores["auc"] == pytest.approx(np.mean(aucs))
        found = metrics.confusion_matrix(numbers, predicted)
        np.testing.assert_array_equal(of_classes["confusion"], found)
        journal = Journal(tmp_path / "again.journal")
        journal.append([record])
        again = journal.read(record.id)
        np.testing.assert_array_equal(again.of_classes["confusion"], found)
        assert again.kernel_weights.shape == record.kernel_weights.shape


@pytest.mark.slow
def test_ten_classes_cost_few_more_passes_than_one(tmp_path):
    x, y = (part[:400] for part in load_digits(return_X_y=True))
    train = np.concatenate([np.flatnonzero(y == digit)[:8] for digit in range(10)])
    source = save_npz(tmp_path / "data.npz", x=x, y=y, train=train, test=np.arange(300, 400))
    method = '[[methods]]\nname = "level"\nC = 20.0\ntol = 1e-4\nacceleration = "none"\n'
    settings = {"splits": 'kind = "predefined"', "fit": "all"}
    together = do(iris(method, source=source, **settings), tmp_path)
    alone = []
    for digit in range(10):
        folder = tmp_path / f"{digit}"
        folder.mkdir()
        one = do(iris(method, source=f"{source}\npositive = {digit}", **settings), folder)
        alone.append(one.passes)
        [record], [whole] = one.records.values(), together.records.values()
        objectives = whole.of_classes["class_objective"]
        assert record.objective == pytest.approx(objectives[digit], rel=1e-9)
    assert min(alone) > 5
    # Two of the passes fit the traces, and no round of any solver is made for it alone.
    assert together.passes <= max(alone) + 2
    assert together.passes < sum(alone) / 5


@pytest.mark.slow
def test_isolated_execution_does_the_same(tmp_path):
    one = do(iris(LEVEL), tmp_path)
    other = do('execution = "isolated"\n' + iris(LEVEL), tmp_path)
    assert set(one.records) == set(other.records)
    for place, record in one.records.items():
        np.testing.assert_array_equal(record.decision_values, other.records[place].decision_values)
    assert other.passes > one.passes


def test_ties_go_to_the_larger_class(tmp_path):
    source = f'file = "{tmp_path / "data.npz"}"'
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [6, 20, 8, 6])
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(40, 2)), y=y)
    for record in do(iris(MAJORITY, source=source), tmp_path).records.values():
        assert record.scores["test_error"] == pytest.approx(0.5)
        assert (record.of_classes["confusion"].sum(axis=0) > 0).tolist() == [False, True] + 2 * [
            False
        ]


def test_unlabelled_points_of_many_classes(tmp_path):
    few = 'kind = "semi-supervised"\nlabelled_per_class = 4\ntest_fraction = 0.2'
    methods = UNIFORM + '[[methods]]\nname = "lapsvm"\ngamma_a = 0.01\ngamma_i = 0.1\n'
    done = do(iris(methods, splits=few, graph="[graph]\nneighbours = 5"), tmp_path)
    [split] = done.splits
    for record in done.records.values():
        values = record.decision_values
        assert values.shape == (3, len(split.test) + len(split.unlabelled))
        numbers = done.dataset.y[split.unlabelled]
        wrong = values[:, len(split.test) :].argmax(axis=0) != numbers
        assert record.scores["unlabelled_error"] == pytest.approx(wrong.mean())
        confusion = record.of_classes["unlabelled_confusion"]
        assert confusion.sum() == len(split.unlabelled)
        assert record.of_classes["unlabelled_class_error"] == pytest.approx(
            1 - np.diagonal(confusion) / confusion.sum(axis=1)
        )


def test_what_one_class_raises_names_it(tmp_path, monkeypatch):
    method = METHODS["uniform"]

    def refusing(problem, params):
        if (problem.y > 0).sum() > 20:
            raise ArithmeticError("no such machine")
        return (yield from method.solve(problem, params))

    monkeypatch.setitem(METHODS, "uniform", type(method)(**vars(method) | {"solve": refusing}))
    source = f'file = "{tmp_path / "data.npz"}"'
    y = np.repeat(["a", "b", "c"], [10, 50, 10])
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(0).normal(size=(70, 2)), y=y)
    with pytest.raises(AssertionError, match="class 'b': ArithmeticError: no such machine"):
        do(iris(UNIFORM, source=source, splits=""), tmp_path)


def ids(done):
    return {(run.key, run.split, str(run.params)): run.id for run in done.plan.runs}


def test_shared_weights_are_part_of_what_a_run_is(tmp_path):
    own = ids(do(iris(LEVEL), tmp_path))
    shared = ids(do(iris(LEVEL + 'kernel_weights = "shared"\n'), tmp_path))
    assert own.keys() == shared.keys()
    assert not set(own.values()) & set(shared.values())


def test_sharing_weights_takes_more_than_two_classes(tmp_path):
    toml = iris(LEVEL + SHARED, source='source = "iris"\nclasses = ["setosa", "virginica"]')
    said = r"methods\.shared\.kernel_weights: .* no data set has more than two classes"
    with pytest.raises(SpecError, match=said):
        resolve(SweepSpec.model_validate(tomllib.loads(toml)), (), tmp_path)
    toml += '[[datasets]]\nname = "three"\nsource = "iris"\n'
    spec = SweepSpec.model_validate(tomllib.loads(toml))
    resolved = resolve(spec, (), tmp_path)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None)
    runs = {(run.dataset, run.key, run.params["C"]): run for run in plan.runs}
    assert runs["three", "shared", 20.0].shared_weights
    assert not runs["moons", "shared", 20.0].shared_weights


def test_methods_that_cannot_share_weights_are_refused_by_name(tmp_path):
    with pytest.raises(SpecError) as caught:
        do(iris('[[methods]]\nname = "gmkl"\nkernel_weights = "shared"\n'), tmp_path)
    said = str(caught.value)
    for word in ("methods.gmkl.kernel_weights", "for gmkl", "level", "per-class"):
        assert word in said
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_results_have_the_classes_as_a_dim(tmp_path, scheduler):
    toml = iris(LEVEL + "trace = true\n" + SHARED + "trace = true\n")
    output = tmp_path / "out"
    outcome = run_here(toml, output, scheduler)
    assert outcome.failed == 0
    tree = mkldist.open_results(output)
    level, shared = tree["moons/level"], tree["moons/shared"]
    assert level.kernel_weights.dims == ("split", "C", "class_name", "kernel")
    assert shared.kernel_weights.dims == ("split", "C", "kernel")
    assert level.class_name.values.tolist() == ["setosa", "versicolor", "virginica"]
    confusion = level.confusion.sel(class_name="virginica", C=20.0).sum("predicted")
    assert confusion.values.tolist() == [25.0, 25.0]
    for record in records(output).values():
        node = tree[f"moons/{record.key}"].to_dataset().isel(split=record.split)
        node = node.sel(C=record.params["C"])
        if record.key == "level":
            np.testing.assert_array_equal(
                node.class_objective, record.of_classes["class_objective"]
            )
        np.testing.assert_array_equal(node.kernel_weights, record.kernel_weights)
        np.testing.assert_array_equal(node.confusion, record.of_classes["confusion"])
        values = node.decision_values.isel(sample=record.test_rows)
        np.testing.assert_array_equal(values, record.decision_values)
        rows = node.coefficients.isel(sample=record.train_rows)
        np.testing.assert_array_equal(rows, record.coefficients)
    traces = tree["moons/level/convergence"]
    assert traces.objective.dims == ("split", "C", "class_name", "iteration")
    assert tree["moons/shared/convergence"].objective.dims == ("split", "C", "iteration")
    # Upper bounds fall, so that the least is the last.
    least = traces.objective.min("iteration")
    np.testing.assert_array_equal(least, level.class_objective)
    known = {"", *level.kernel.values.tolist()}
    assert set(traces.largest_kernels.values.ravel()) <= known
    export(output, "netcdf", tmp_path / "all.nc")
    export(output, "csv", tmp_path / "all.csv")
    rows = weight_rows(tree)
    own, of_all = rows[rows["method"] == "level"], rows[rows["method"] == "shared"]
    assert set(own["class_name"]) == {"setosa", "versicolor", "virginica"}
    assert of_all["class_name"].isna().all()
    assert own["weight"].sum() == pytest.approx(2 * 2 * 3)
    assert of_all["weight"].sum() == pytest.approx(2)


@pytest.mark.slow
def test_every_method_learns_each_class_against_the_rest(tmp_path):
    rows = np.random.default_rng(3).permutation(150)
    x, y = load_iris(return_X_y=True)
    source = save_npz(
        tmp_path / "data.npz", x=x, y=y, train=rows[:24], unlabelled=rows[24:60], test=rows[60:]
    )
    settings = {"splits": 'kind = "predefined"', "fit": "all", "graph": "[graph]\nneighbours = 5"}
    names = list(MODULES)
    methods = "".join(f'[[methods]]\nname = "{name}"\ntol = 1e-4\n' for name in names)
    together = do(iris(methods, source=source, **settings), tmp_path)
    assert len(together.records) == len(names)
    for number in range(3):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        alone = do(iris(methods, source=f"{source}\npositive = {number}", **settings), folder)
        for (name, *place), record in together.records.items():
            assert record.state is RunState.COMPLETE, name
            single = alone.records[name, *place]
            found = record.of_classes["class_objective"][number]
            assert found == pytest.approx(single.objective, rel=1e-9), name


@pytest.mark.slow
def test_a_killed_sweep_of_many_classes_ends_as_one_that_was_not(tmp_path):
    slow = '[[methods]]\nname = "slow"\nC = [1.0, 2.0, 3.0, 4.0]\n'
    toml = iris(LEVEL + SHARED + slow, normalisation='"cosine"')
    toml = toml.replace("tol =", 'execution = "isolated"\ntol =')
    killed, whole = tmp_path / "killed" / "few", tmp_path / "whole" / "few"
    for output in (killed, whole):
        output.parent.mkdir()
    before = kill_after(3, toml, killed)
    assert 3 <= len(before) < 14
    for output in (killed, whole):
        code, said = run_process(toml, output)
        assert code == 0, said
    after = record_times(killed)
    assert len(after) == 14
    assert {name: after[name] for name in before} == before
    found, expected = records(killed), records(whole)
    assert set(found) == set(expected)
    for run_id, record in expected.items():
        again = found[run_id]
        assert again.state is record.state is RunState.COMPLETE
        np.testing.assert_array_equal(again.kernel_weights, record.kernel_weights)
        np.testing.assert_array_equal(again.decision_values, record.decision_values)
        for name, values in record.of_classes.items():
            np.testing.assert_array_equal(again.of_classes[name], values)
