"""Many classes, real values, inner folds and scores, against solving by hand and scikit-learn."""

import tomllib

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.svm import SVC

import mkldist
from mkldist.errors import DataError
from mkldist.fit.score import failed_record
from mkldist.kernels.graph import graph_laplacian
from mkldist.methods.registry import METHODS
from mkldist.planning.model import RunPlan
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.export import export
from mkldist.results.rows import weight_rows
from mkldist.results.schema import RunState
from mkldist.results.tree import open_results
from mkldist.spec.datasets import GraphSpec
from mkldist.spec.model import SweepSpec
from tests.run.few_labels import WIDTHS as FEW_WIDTHS
from tests.run.few_labels import do, grams, save_npz, text, zscored
from tests.run.sweeps import plan_of, records, run_here

LEVEL = '[[methods]]\nname = "level"\nC = [1.0, 20.0]\n'
SHARED = '[[methods]]\nname = "level"\nlabel = "shared"\nkernel_weights = "shared"\nC = 20.0\n'
UNIFORM = '[[methods]]\nname = "uniform"\nC = 20.0\n'
MAJORITY = '[[methods]]\nname = "majority"\n'


def iris(methods: str, **changes: str) -> str:
    settings = {"source": 'source = "iris"', "splits": "repeats = 2", "graph": ""} | changes
    return text(methods, **settings)


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


def test_ties_go_to_the_larger_class(tmp_path):
    source = f'file = "{tmp_path / "data.npz"}"'
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [6, 16, 10, 8])  # each the minority against the rest
    np.savez(tmp_path / "data.npz", x=rng.normal(size=(40, 2)), y=y)
    for record in do(iris(MAJORITY, source=source), tmp_path).records.values():
        assert record.scores["test_error"] == pytest.approx(0.6)
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


def test_only_more_than_two_classes_share_weights(tmp_path):
    toml = iris(LEVEL + SHARED, source='source = "iris"\nclasses = ["setosa", "virginica"]')
    toml += '[[datasets]]\nname = "three"\nsource = "iris"\n'
    spec = SweepSpec.model_validate(tomllib.loads(toml))
    resolved = resolve(spec, (), tmp_path)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None)
    runs = {(run.dataset, run.key, run.params["C"]): run for run in plan.runs}
    assert runs["three", "shared", 20.0].shared_weights
    assert not runs["moons", "shared", 20.0].shared_weights


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


WIDTHS = (0.5, 2.0)
SWEEP = """
name = "values"
tol = 1e-8
[[datasets]]
name = "friedman1"
options = { n = 60, d = 5 }
[preprocessing]
fit = "FIT"
target = "TARGET"
[splits]
repeats = 2
train_fraction = 0.7
[[banks]]
normalisation = "NORMALISATION"
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
features = ["all", "each"]
[outputs]
predictions = true
coefficients = true
[[methods]]
name = "spicymkl"
label = "uniform_svr"
loss = "epsilon"
regularizer = "uniform"
C = [0.1, 1.0]
trace = true
"""


def sweep(fit: str = "train", target: str = "zscore", normalisation: str = "trace") -> str:
    text = SWEEP.replace("FIT", fit).replace("TARGET", target)
    return text.replace("NORMALISATION", normalisation)


@pytest.mark.slow
def test_targets_in_other_units_are_other_runs_on_the_same_banks(tmp_path, scheduler):
    output = tmp_path / "out" / "values"
    first = run_here(sweep(), output, scheduler)
    second = run_here(sweep(target="none"), output, scheduler)
    assert (second.computed, second.skipped) == (4, 0)
    assert {bank.id for bank in first.plan.banks} == {bank.id for bank in second.plan.banks}


MIXED = """
name = "mixed"
[[datasets]]
name = "friedman1"
options = { n = 40, d = 5 }
[[datasets]]
name = "two_moons"
options = { n = 40 }
[preprocessing]
target = "zscore"
[[banks]]
family = "do2009"
[[methods]]
name = "spicymkl"
loss = "squared"
"""


@pytest.mark.slow
def test_classes_and_values_in_one_sweep(tmp_path, scheduler):
    output = tmp_path / "out" / "mixed"
    outcome = run_here(MIXED, output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == 2
    with open_results(output) as tree:
        assert tree["friedman1/spicymkl"].r2.item() > 0.3
        assert tree["two_moons/spicymkl"].test_error.item() < 0.3
        assert "rmse" not in tree["two_moons/spicymkl"].ds


TWO_C = '[[methods]]\nname = "uniform"\nC = [1.0, 10.0]\n'
LAPSVM = '[[methods]]\nname = "lapsvm"\ngamma_a = 0.01\ngamma_i = [0.0, 0.1]\n'
SELECTION = "[selection]\nfolds = 3\nrepeats = 2"
SEED = 4


def folded(methods: str, selection: str = SELECTION, **changes: str) -> str:
    settings = {"splits": "train_fraction = 0.6", "graph": ""} | changes
    settings["graph"] += f"\n{selection}"
    return f"seed = {SEED}\n" + text(methods, **settings)


def unit_traces(kernels, rows):
    return kernels / kernels[:, rows, rows].sum(axis=1)[:, None, None]


@pytest.mark.slow
@pytest.mark.parametrize("source", ['source = "two_moons"', 'source = "iris"'])
def test_validation_error_is_that_of_scikit_learn(tmp_path, source):
    done = do(folded(TWO_C, source=source), tmp_path)
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
    toml = folded(methods, source='source = "friedman1"\noptions = { n = 60, d = 5 }')
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
    done = do(folded(LAPSVM, splits=few, graph=graph), tmp_path)
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


@pytest.mark.slow
def test_folds_share_the_passes_of_their_bank(tmp_path):
    method = '[[methods]]\nname = "level"\nC = 10.0\ntol = 1e-4\nacceleration = "none"\n'
    (tmp_path / "without").mkdir()
    without = do(folded(method, selection=""), tmp_path / "without")
    within = do(folded(method), tmp_path)
    assert [run.n_jobs for run in within.plan.runs] == [1 + 3 * 2]
    assert without.passes > 5
    assert within.passes <= 2 * without.passes
    assert within.plan.estimated_passes <= without.plan.estimated_passes + 1
    isolated = do('execution = "isolated"\n' + folded(method), tmp_path)
    assert isolated.passes > 3 * within.passes
    assert isolated.plan.estimated_passes > 6 * within.plan.estimated_passes
    [one], [other] = within.records.values(), isolated.records.values()
    assert one.scores == other.scores


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (iris(LEVEL), iris(LEVEL + 'kernel_weights = "shared"\n')),
        (folded(TWO_C, selection=""), folded(TWO_C)),
        (folded(TWO_C), folded(TWO_C, selection="[selection]\nfolds = 4")),
    ],
)
def test_sharing_weights_and_selection_are_part_of_what_a_run_is(one, other):
    first, again, changed = ({run.id for run in plan_of(toml).runs} for toml in (one, one, other))
    assert first == again
    assert len(first) == len(changed)
    assert not first & changed


def test_folds_that_nobody_named_are_cut_to_the_smallest_class(tmp_path):
    few = 'kind = "semi-supervised"\nlabelled_per_class = 2'
    done = do(folded(TWO_C, selection="[selection]", splits=few), tmp_path)
    assert {run.n_jobs for run in done.plan.runs} == {1 + 2}
    assert all(0 <= r.scores["validation_error"] <= 1 for r in done.records.values())
    one = 'kind = "semi-supervised"\nlabelled_per_class = 1'
    with pytest.raises(DataError) as caught:
        do(folded(TWO_C, splits=one), tmp_path)
    for word in ("selection on data set 'moons', split 0", "smallest class: 1", "remove"):
        assert word in str(caught.value)
    with pytest.raises(DataError, match=r"folds = 3; expected at most 2, the training points of"):
        do(folded(TWO_C, selection="[selection]\nfolds = 3", splits=few), tmp_path)


@pytest.mark.parametrize(
    ("y", "splits", "selection", "refuses", "said"),
    [
        (["a", "b", "c"], "", "", lambda problem: (problem.y > 0).sum() > 20, "class 'b'"),
        ([0, 1, 0], "train_fraction = 0.65", SELECTION, lambda problem: problem.n_points < 45,
         r"inner fold 0 \(from 0\)"),
    ],
)  # fmt: skip
def test_what_a_class_or_an_inner_fold_raises_names_it(
    tmp_path, monkeypatch, y, splits, selection, refuses, said
):
    method = METHODS["uniform"]

    def refusing(problem, params):
        if refuses(problem):
            raise ArithmeticError("no such machine")
        return (yield from method.solve(problem, params))

    monkeypatch.setitem(METHODS, "uniform", type(method)(**vars(method) | {"solve": refusing}))
    x = np.random.default_rng(0).normal(size=(70, 2))
    source = save_npz(tmp_path / "data.npz", x=x, y=np.repeat(y, [10, 50, 10]))
    with pytest.raises(AssertionError, match=f"{said}: ArithmeticError: no such machine"):
        do(folded(TWO_C, selection, source=source, splits=splits), tmp_path)


@pytest.mark.slow
def test_selected_settings_are_those_of_least_validation_error(tmp_path, scheduler):
    methods = '[[methods]]\nname = "level"\nC = [0.001, 1.0, 1000.0]\ntrace = true\n'
    methods += '[[methods]]\nname = "majority"\n'
    toml = folded(methods, splits="repeats = 3")
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


RUN = RunPlan("r", "d", "b", "bank", 2, "level", "level", {"C": 1.0})
C_10 = '[[methods]]\nname = "uniform"\nC = 10.0\n'


def broken() -> Exception:
    try:
        raise ZeroDivisionError("of two kernels")
    except ZeroDivisionError as error:
        return error


def test_an_error_is_recorded_with_its_traceback():
    record = failed_record(RUN, broken(), 7, "class 'a', inner fold 1 (from 0)")
    assert (record.state, record.n_kernels, record.split) == (RunState.FAILED, 7, 2)
    assert record.error == "class 'a', inner fold 1 (from 0): ZeroDivisionError: of two kernels"
    assert "in broken" in record.provenance["traceback"]
    assert record.provenance.keys() > {"traceback"}


def test_scores_of_two_classes_are_those_of_scikit_learn(tmp_path):
    done = do(text(C_10), tmp_path)
    assert len(done.records) == len(done.splits) == 2
    for record in done.records.values():
        split = done.splits[record.split]
        assert record.test_rows.tolist() == [*split.test, *split.unlabelled]
        ends = {"test": slice(len(split.test)), "unlabelled": slice(len(split.test), None)}
        for part, where in ends.items():
            y, values = done.dataset.y[record.test_rows[where]], record.decision_values[where]
            predicted = np.where(values >= 0, 1.0, -1.0)
            expected = {
                "error": 1 - metrics.accuracy_score(y, predicted),
                "balanced_error": 1 - metrics.balanced_accuracy_score(y, predicted),
                "auc": metrics.roc_auc_score(y, values),
            }
            names = {"error": f"{part}_error"}
            if part == "unlabelled":
                names |= {name: f"unlabelled_{name}" for name in ("balanced_error", "auc")}
            for name, value in expected.items():
                assert record.scores[names.get(name, name)] == pytest.approx(value)


LOGISTIC = '[[methods]]\nname = "spicymkl"\nC = 100.0\n'


def test_log_loss_is_that_of_logistic_regression_and_of_no_other(tmp_path):
    done = do(text(C_10 + LOGISTIC), tmp_path)
    for record in done.records.values():
        split = done.splits[record.split]
        values = record.decision_values[: len(split.test)]
        names = {name for name in record.scores if "log_loss" in name or "brier" in name}
        if record.method == "uniform":
            assert not names
            continue
        assert names == {"log_loss", "unlabelled_log_loss", "brier", "unlabelled_brier"}
        probabilities = 1.0 / (1.0 + np.exp(-values))
        expected = metrics.log_loss(done.dataset.y[split.test], probabilities)
        assert record.scores["log_loss"] == pytest.approx(expected)


@pytest.mark.parametrize("splits", ["train_fraction = 0.5\nrepeats = 2", None])
def test_the_error_on_training_rows_is_that_of_the_decision_function(tmp_path, splits):
    """With unlabelled rows the bank is asked for the values, without them the solver has them."""
    changes = {} if splits is None else {"splits": splits}
    methods = C_10.replace("10.0", "[0.01, 10.0]") + LOGISTIC + MAJORITY
    done = do(text(methods, **changes), tmp_path)
    errors = set()
    for record in done.records.values():
        if record.method == "spicymkl" and splits:
            assert "train_error" not in record.scores
            continue
        split = done.splits[record.split]
        x = done.dataset.x[split.train]
        x = (x - done.dataset.x[split.known].mean(axis=0)) / done.dataset.x[split.known].std(axis=0)
        values = np.full(len(x), record.bias)
        for kernel, weight in zip(record.kernels, record.weights, strict=True):
            gram = rbf_kernel(x, gamma=0.5 / FEW_WIDTHS[kernel] ** 2)
            values += weight * gram @ record.coefficients / len(x)
        wrong = (values >= 0) != (done.dataset.y[split.train] > 0)
        assert record.scores["train_error"] == pytest.approx(wrong.mean())
        errors.add(round(wrong.mean(), 3))
    assert len(errors) > 1
