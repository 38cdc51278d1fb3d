"""Sweeps with inner folds, for worker.bank_inputs: each fold is scored, and hidden in training."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.svm import SVC

import mkldist
from mkldist.errors import DataError, InputError
from mkldist.kernels.graph import graph_laplacian
from mkldist.methods.registry import METHODS
from mkldist.run.bank_refs import cached_inputs, laplacian
from mkldist.spec.datasets import GraphSpec
from tests.run.few_labels import do, grams, save_npz, text, zscored
from tests.run.sweeps import run_here

UNIFORM = '[[methods]]\nname = "uniform"\nC = [1.0, 10.0]\n'
LAPSVM = '[[methods]]\nname = "lapsvm"\ngamma_a = 0.01\ngamma_i = [0.0, 0.1]\n'
SELECTION = "[selection]\nfolds = 3\nrepeats = 2"
SEED = 4


@pytest.fixture(autouse=True)
def nothing_kept():
    """Have every sweep of this process read its own files."""
    cached_inputs.cache_clear()
    laplacian.cache_clear()


def sweep(methods: str, selection: str = SELECTION, **changes: str) -> str:
    settings = {"splits": "train_fraction = 0.6", "graph": ""} | changes
    settings["graph"] += f"\n{selection}"
    return f"seed = {SEED}\n" + text(methods, **settings)


def unit_traces(kernels, rows):
    return kernels / kernels[:, rows, rows].sum(axis=1)[:, None, None]


@pytest.mark.parametrize("source", ['source = "two_moons"', 'source = "iris"'])
def test_validation_error_is_that_of_scikit_learn(tmp_path, source):
    done = do(sweep(UNIFORM, source=source), tmp_path)
    [split] = done.splits
    kernels = grams(zscored(done.dataset.x, split.train))
    y, train = done.dataset.y, split.train
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=SEED)
    for record in done.records.values():
        wrong = []
        for inner, held_out in folds.split(train[:, None], y[train]):
            rows, others = train[inner], train[held_out]
            mean = unit_traces(kernels, rows).mean(axis=0)
            machine = SVC(C=record.params["C"], kernel="precomputed", tol=1e-9)
            values = []
            for label in np.unique(y)[1:] if len(np.unique(y)) == 2 else np.unique(y):
                machine.fit(mean[rows[:, None], rows], np.where(y[rows] == label, 1, -1))
                values.append(machine.decision_function(mean[others[:, None], rows]))
            if len(values) == 1:
                wrong.append((values[0] >= 0) != (y[others] > 0))
            else:
                wrong.append(np.argmax(values, axis=0) != y[others])
        expected = np.concatenate(wrong).mean()
        assert record.scores["validation_error"] == pytest.approx(expected, abs=1e-12)
        assert record.times["validation_seconds"] > 0


@pytest.mark.parametrize("target", ["none", "zscore"])
def test_validation_rmse_is_in_units_of_the_labels(tmp_path, target):
    methods = (
        '[[methods]]\nname = "spicymkl"\nloss = "squared"\nregularizer = "uniform"\nC = 10.0\n'
    )
    toml = sweep(methods, source='source = "friedman1"\noptions = { n = 60, d = 5 }')
    toml = toml.replace('fit = "train"', f'fit = "train"\ntarget = "{target}"')
    done = do(toml, tmp_path)
    [split], [record] = done.splits, done.records.values()
    kernels = grams(zscored(done.dataset.x, split.train))
    y, train = done.dataset.y, split.train
    folds = RepeatedKFold(n_splits=3, n_repeats=2, random_state=SEED)
    errors = []
    for inner, held_out in folds.split(train):
        rows, others = train[inner], train[held_out]
        own = unit_traces(kernels, rows)
        centre, spread = (y[rows].mean(), y[rows].std()) if target == "zscore" else (0.0, 1.0)
        solution = mkldist.solve(
            "spicymkl", own[:, rows[:, None], rows], (y[rows] - centre) / spread, tol=1e-8, C=10.0,
            loss="squared", regularizer="uniform",
        )  # fmt: skip
        values = solution.decision_function(own[:, others[:, None], rows])
        errors.append(centre + spread * values - y[others])
    expected = np.sqrt(np.mean(np.concatenate(errors) ** 2))
    assert record.scores["validation_rmse"] == pytest.approx(expected, rel=1e-5)


def test_held_out_points_are_unlabelled_to_semi_supervised_methods(tmp_path):
    few = 'kind = "semi-supervised"\nlabelled_per_class = 6\ntest_fraction = 0.2'
    graph = "[graph]\nneighbours = 5"
    done = do(sweep(LAPSVM, splits=few, graph=graph), tmp_path)
    [split] = done.splits
    points = zscored(done.dataset.x, split.known)
    known, y = split.known, done.dataset.y
    own = unit_traces(grams(points), known)[:, known[:, None], known]
    smooth = graph_laplacian(points[known], GraphSpec(neighbours=5))
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=SEED)
    for record in done.records.values():
        wrong = []
        for inner, held_out in folds.split(split.train[:, None], y[split.train]):
            labels = np.where(np.isin(known, split.train[inner]), y[known], 0.0)
            said = {name: record.params[name] for name in ("gamma_a", "gamma_i")}
            solution = mkldist.solve("lapsvm", own, labels, laplacian=smooth, tol=1e-8, **said)
            others = np.isin(known, split.train[held_out])
            values = solution.decision_function(own)[others]
            wrong.append((values >= 0) != (y[known][others] > 0))
        assert record.scores["validation_error"] == pytest.approx(np.concatenate(wrong).mean())


def test_labels_of_test_and_unlabelled_points_select_nothing(tmp_path):
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(50, 3)), np.where(np.arange(50) % 2, 1.0, -1.0)
    rows = {"idx_labs": np.arange(12), "idx_unls": np.arange(12, 40), "idx_test": np.arange(40, 50)}
    found = []
    for name, labels in (("one", y), ("other", np.where(np.arange(50) < 12, y, -y))):
        (tmp_path / name).mkdir()
        source = save_npz(tmp_path / name / "data.npz", x=x, y=labels, **rows)
        toml = sweep(UNIFORM + LAPSVM, source=source, splits='kind = "predefined"',
                      graph="[graph]\nneighbours = 5")  # fmt: skip
        found.append(do(toml, tmp_path / name).records)
    assert len(found[0]) == 4
    for place, record in found[0].items():
        turned = found[1][place].scores
        assert turned["validation_error"] == record.scores["validation_error"]
        assert turned["unlabelled_error"] == pytest.approx(1 - record.scores["unlabelled_error"])


@pytest.mark.slow
def test_folds_share_the_passes_of_their_bank(tmp_path):
    method = '[[methods]]\nname = "level"\nC = 10.0\ntol = 1e-4\nacceleration = "none"\n'
    (tmp_path / "without").mkdir()
    without = do(sweep(method, selection=""), tmp_path / "without")
    within = do(sweep(method), tmp_path)
    assert [run.n_jobs for run in within.plan.runs] == [1 + 3 * 2]
    assert without.passes > 5
    assert within.passes <= 2 * without.passes
    assert within.plan.estimated_passes <= without.plan.estimated_passes + 1
    isolated = do('execution = "isolated"\n' + sweep(method), tmp_path)
    assert isolated.passes > 3 * within.passes
    assert isolated.plan.estimated_passes > 6 * within.plan.estimated_passes
    [one], [other] = within.records.values(), isolated.records.values()
    assert one.scores == other.scores


def test_selection_is_part_of_what_a_run_is(tmp_path):
    def ids(toml):
        return [run.id for run in do(toml, tmp_path).plan.runs]

    without = ids(sweep(UNIFORM, selection=""))
    within = ids(sweep(UNIFORM))
    assert not set(without) & set(within)
    assert within == ids(sweep(UNIFORM))
    assert not set(within) & set(ids(sweep(UNIFORM, selection="[selection]\nfolds = 4")))


def test_folds_that_nobody_named_are_cut_to_the_smallest_class(tmp_path):
    few = 'kind = "semi-supervised"\nlabelled_per_class = 2'
    done = do(sweep(UNIFORM, selection="[selection]", splits=few), tmp_path)
    assert {run.n_jobs for run in done.plan.runs} == {1 + 2}
    assert all(0 <= r.scores["validation_error"] <= 1 for r in done.records.values())
    one = 'kind = "semi-supervised"\nlabelled_per_class = 1'
    with pytest.raises(DataError) as caught:
        do(sweep(UNIFORM, splits=one), tmp_path)
    for word in ("selection on data set 'moons', split 0", "1 of class", "at least two", "remove"):
        assert word in str(caught.value)
    with pytest.raises(DataError, match=r"folds = 3; expected at most 2, the training points of"):
        do(sweep(UNIFORM, selection="[selection]\nfolds = 3", splits=few), tmp_path)


def test_what_an_inner_fold_raises_names_it(tmp_path, monkeypatch):
    method = METHODS["uniform"]

    def refusing(problem, params):
        if problem.n_points < 45:
            raise ArithmeticError("too few points")
        return (yield from method.solve(problem, params))

    monkeypatch.setitem(METHODS, "uniform", type(method)(**vars(method) | {"solve": refusing}))
    with pytest.raises(AssertionError, match=r"inner fold 0 \(from 0\): ArithmeticError: too few"):
        do(sweep(UNIFORM, splits="train_fraction = 0.65"), tmp_path)


@pytest.mark.slow
def test_selected_settings_are_those_of_least_validation_error(tmp_path, scheduler):
    methods = '[[methods]]\nname = "level"\nC = [0.001, 1.0, 1000.0]\ntrace = true\n'
    methods += '[[methods]]\nname = "majority"\n'
    toml = sweep(methods, splits="repeats = 3")
    outcome = run_here(toml, tmp_path / "out", scheduler)
    assert outcome.failed == 0
    tree = mkldist.open_results(tmp_path / "out")
    chosen = mkldist.selected(tree)
    level, whole = chosen["moons/level"], tree["moons/level"]
    assert level.test_error.dims == ("split",)
    for split in range(3):
        errors = whole.validation_error.isel(split=split)
        C = whole.C.values[int(np.argmin(errors.values))]
        assert level.C.values[split] == C
        wanted = whole.sel(C=C).isel(split=split)
        for name in ("test_error", "objective", "run_id", "validation_error"):
            assert level[name].values[split] == wanted[name].values
        weights = level.kernel_weights.isel(split=split)
        np.testing.assert_array_equal(weights, wanted.kernel_weights)
        trace = chosen["moons/level/convergence"].objective.isel(split=split)
        np.testing.assert_array_equal(
            trace, tree["moons/level/convergence"].objective.sel(C=C).isel(split=split)
        )
    assert (chosen["moons/majority"].test_error == tree["moons/majority"].test_error).all()
    ties = tree.copy(deep=True)
    ties["moons/level"]["validation_error"] = whole.validation_error.load() * 0
    assert (whole.C[0] == mkldist.selected(ties)["moons/level"].C).all()


def test_without_selection_there_is_nothing_to_select_by(tmp_path, scheduler):
    toml = sweep('[[methods]]\nname = "majority"\n', selection="")
    run_here(toml, tmp_path / "out", scheduler)
    with pytest.raises(InputError, match=r"without inner folds"):
        mkldist.selected(mkldist.open_results(tmp_path / "out"))
