"""Explanations of sweeps: parts of decisions, permutations, names of groups."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.analysis.comparison import Results
from mkldist.analysis.explanation import KernelSets, decision_shares
from mkldist.core.metrics import METRICS
from mkldist.data.dataset import Dataset
from mkldist.data.snapshot import load_snapshot
from mkldist.errors import InputError, SpecError
from mkldist.fit.explain import explain, explained_runs, permuted_labels
from mkldist.fit.select import inputs_of
from mkldist.report.page import made_page
from mkldist.report.sentences import Facts
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import lay_out
from mkldist.results.rows import weight_rows
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep
from tests.fit.sweeps import FEW_LABELS, VIEWS, entry, recorded, swept, write_views
from tests.fit.test_models_of_views import swept as swept_text
from tests.fit.test_views_of_new_rows import SWEEP as TEXTS
from tests.fit.test_views_of_new_rows import write_tables
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

METHODS = (
    entry("level", C=[1.0, 100.0])
    + entry("silp", C=[1e-3])
    + entry("uniform", C=[1.0, 100.0])
    + entry("majority")
)
SIZES = {"n_train": np.full(3, 80), "n_test": np.full(3, 20), "n_unlabelled": np.zeros(3, int)}
"""Those of three splits."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("explained"), METHODS)


@pytest.mark.slow
def test_the_method_of_least_mean_loss_is_explained(results):
    (found,) = explain(results)
    means = {}
    for node in Results.of(results).nodes():
        dims = [dim for dim in node.ds.test_error.dims if dim != "split"]
        means[node.name] = float(node.ds.test_error.mean("split").min(dims))
    assert found.method == min(("level", "silp", "uniform"), key=lambda name: means[name])
    assert found.n_candidates == 3


@pytest.mark.slow
def test_shares_sum_to_one(results):
    (found,) = explain(results, method="level", permutations=2)
    assert (found.n_splits, found.no_decision, found.n_settings) == (2, "", 2)
    functions, features = found.of("function"), found.of("feature")
    for kind in ("weight", "decision"):
        assert sum(getattr(share, kind).mean for share in functions) == pytest.approx(1.0)
    assert sum(share.null for share in functions) == pytest.approx(1.0)
    assert {share.p_value for share in features} <= {1 / 3, 2 / 3, 1.0}
    assert [share.rank for share in features] == sorted(share.rank for share in features)
    table = found.table
    assert table["decision"].tolist() == [share.decision.mean for share in found.shares]
    assert {"level", "name", "left_out_low", "selected_high", "p_value"} <= {*table}


@pytest.mark.slow
def test_uniform_weights_are_explained_if_asked_for(results):
    (found,) = explain(results, method="uniform")
    assert (found.selected, found.always) == (found.n_kernels, found.n_kernels)
    assert found.n_candidates == 1
    sizes = {share.name: share.n_kernels / found.n_kernels for share in found.of("function")}
    weights = {share.name: share.weight.mean for share in found.of("function")}
    assert weights == pytest.approx(sizes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"method": "levl"}, "--method levl: found nothing of this name.*Did you mean 'level'"),
        ({"dataset": "other"}, "--dataset other: found nothing of this name; expected mine"),
        ({"method": "majority"}, "found no kernel weights of majority; expected a method that has"),
    ],
    ids=["method", "dataset", "majority"],
)
def test_names_without_weights_are_refused(results, asked, said):
    with pytest.raises(InputError, match=said):
        explain(results, **asked)


def test_results_without_a_complete_run_say_so(tmp_path):
    plan = made_up_plan({"level": {}})
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([RunRecord.failed(run, "no memory")])
    lay_out(tmp_path, plan, made_up_facts(plan, {"level": {}}))
    with pytest.raises(InputError, match="no complete run of level"):
        explain(tmp_path)


def test_a_method_is_not_explained_for_the_splits_that_others_lack(tmp_path):
    grids = {"level": {}, "silp": {}}
    plan = made_up_plan(grids)
    store = Journal(tmp_path / "records.journal")
    errors = {"level": (0.1, 0.3, 0.3), "silp": (0.2, None, None)}
    for run in plan.runs:
        error = errors[run.key][run.split]
        record = RunRecord.failed(run, "no memory")
        if error is not None:
            record = replace(made_up_record(run), scores={"test_error": error})
        store.append([record])
    facts = replace(made_up_facts(plan, grids), splits={"heart": SIZES})
    lay_out(tmp_path, plan, facts)
    (found,) = explain(tmp_path)
    assert (found.method, found.n_candidates) == ("level", 1)


@pytest.mark.parametrize(("constant", "better"), [(0.9, True), (0.05, False)])
def test_a_method_is_held_to_the_best_constant_prediction(constant, better, tmp_path):
    plan = made_up_plan({"level": {}})
    store = Journal(tmp_path / "records.journal")
    for run, error in zip(plan.runs, (0.1, 0.12, 0.14), strict=True):
        store.append([replace(made_up_record(run), scores={"test_error": error})])
    splits = SIZES | {"n_new": np.full(3, 20), "n_rarest": np.full(3, 5)}
    facts = made_up_facts(plan, {"level": {}})
    facts = replace(facts, splits={"heart": splits | {"constant_score": np.full(3, constant)}})
    lay_out(tmp_path, plan, facts)
    (found,) = explain(tmp_path)
    assert (found.no_better == "") == better


@pytest.mark.parametrize("path", [5, None, ["results/mine"], np.eye(3)])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(SpecError, match=r"^path: found .*; expected a path$"):
        explain(path)


@pytest.mark.parametrize("number", [-1, 2.5])
def test_a_number_of_permutations_is_not_negative(number, tmp_path):
    with pytest.raises(SpecError):
        explain(tmp_path, permutations=number)


KERNELS = [
    {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each"]},
    {"function": "polynomial", "degrees": [2]},
]
"""Those of the sweeps of :mod:`tests.fit.sweeps`."""


def metric_of(record):
    return METRICS["rmse" if "rmse" in record.scores else "error"]


def parts_of(results, key: str):
    """Return the parts of the runs of a method, with their records."""
    records = sorted((r for r in recorded(results) if r.key == key), key=lambda r: r.split)
    found = explained_runs(results, records, metric_of(records[0]))
    assert not isinstance(found, str), found
    return [(found.parts(record), record) for record in records]


def assert_parts_make_the_predictions(results, keys) -> None:
    for key in keys:
        for parts, record in parts_of(results, key):
            made = parts.values.sum(axis=1) + parts.bias
            stored = np.atleast_2d(record.decision_values).T
            np.testing.assert_allclose(made, stored, atol=1e-10)
            metric = metric_of(record)
            assert parts.loss(made) == pytest.approx(record.scores[metric.variable()])


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"fit": "all", "normalisation": '["centre", "trace"]'},
        {"normalisation": '["cosine", "variance"]', "scale": "minmax"},
    ],
    ids=str,
)
def test_the_parts_sum_to_what_the_sweep_predicted(changes, tmp_path):
    methods = entry("level", C=10.0) + entry("uniform", C=1.0) + entry("spicymkl", C=100.0)
    results = swept(tmp_path, methods, **changes)
    assert_parts_make_the_predictions(results, ("level", "uniform", "spicymkl"))


COLUMNS = """
name = "columns"
tol = 1e-6
[[datasets]]
name = "columns"
file = "columns.csv"
label = "label"
[preprocessing]
scale = "zscore"
[splits]
repeats = 2
train_fraction = 0.6
[[banks]]
backend = "factors"
[[banks.kernels]]
function = {function}
features = "each"
[outputs]
predictions = true
[[methods]]
name = "level"
C = 1.0
"""


@pytest.mark.parametrize("function", ['"linear"', '"polynomial"\ndegrees = [2]'])
def test_columns_on_factors_are_taken_apart_and_other_kernels_are_not(tmp_path, function):
    x = np.random.default_rng(0).normal(size=(60, 4))
    table = pd.DataFrame(x).add_prefix("x").assign(label=np.where(x[:, 0] > 0.2, "yes", "no"))
    table.to_csv(tmp_path / "columns.csv", index=False)
    results = swept_text(tmp_path, COLUMNS.format(function=function))
    if function == '"linear"':
        assert_parts_make_the_predictions(results, ("level",))
    else:
        assert isinstance(explained_runs(results, recorded(results), METRICS["error"]), str)


@pytest.mark.slow
def test_classes_are_taken_apart(tmp_path):
    methods = entry("level", C=10.0) + entry(
        "level", label='"both"', kernel_weights='"shared"', C=10.0
    )
    assert_parts_make_the_predictions(swept(tmp_path, methods, "three"), ("level", "both"))


@pytest.mark.slow
@pytest.mark.parametrize("normalisation", ["trace", "cosine", "variance"])
def test_views_that_points_lack_are_taken_apart(normalisation, tmp_path):
    write_views(tmp_path)
    text = VIEWS.format(normalisation=normalisation, backend="auto", C=50.0)
    assert_parts_make_the_predictions(swept_text(tmp_path, text), ("level",))


@pytest.mark.slow
@pytest.mark.parametrize("normalisation", ["trace", "cosine"])
def test_kernels_of_texts_are_taken_apart(normalisation, tmp_path):
    write_tables(tmp_path)
    text = TEXTS.format(normalisation=f'"{normalisation}"')
    assert_parts_make_the_predictions(swept_text(tmp_path, text), ("uniform", "level"))


@pytest.mark.slow
def test_real_values_are_taken_apart(tmp_path):
    methods = entry("spicymkl", C=100.0, loss='"squared"')
    results = swept(tmp_path, methods, "value", target="zscore", dataset='task = "regression"')
    assert_parts_make_the_predictions(results, ("spicymkl",))


@pytest.mark.slow
def test_a_part_is_the_kernel_of_scikit_learn_by_weight_and_coefficients(tmp_path):
    results = swept(tmp_path, entry("level", C=10.0), impute="mean")
    ((parts, record), *_) = parts_of(results, "level")
    (snapshot,) = (results / "snapshots").iterdir()
    dataset, splits = load_snapshot(snapshot)
    split = splits[record.split]
    train, test = dataset.x[split.train], dataset.x[split.test]
    fill = np.nanmean(train, axis=0)
    train, test = (np.where(np.isnan(x), fill, x) for x in (train, test))
    mean, sd = train.mean(axis=0), train.std(axis=0)
    train, test = (train - mean) / sd, (test - mean) / sd
    widths = {0: 0.5, 1: 2.0}  # the first kernels of the bank are those of all features
    checked = 0
    for place, kernel in enumerate(parts.kernels.tolist()):
        if kernel not in widths:
            continue
        values = rbf_kernel(test, train, gamma=0.5 / widths[kernel] ** 2) / len(train)
        expected = record.weights[place] * values @ record.coefficients
        np.testing.assert_allclose(parts.values[:, place, 0], expected, atol=1e-12)
        checked += 1
    assert checked


@pytest.mark.slow
def test_permuted_labels_give_the_shares_of_fits_on_them(tmp_path):
    results = swept(tmp_path, entry("uniform", C=1.0))
    records = sorted(recorded(results), key=lambda record: record.split)
    decisions = explained_runs(results, records, METRICS["error"])
    assert not isinstance(decisions, str)
    n_kernels = records[0].n_kernels
    every = KernelSets("kernel", tuple(map(str, range(n_kernels))), np.arange(n_kernels))
    (null,) = decisions.null(3, [every], n_kernels)
    assert null.shape == (3, n_kernels)
    np.testing.assert_allclose(null.sum(axis=1), 1.0)
    np.testing.assert_array_equal(decisions.null(2, [every], n_kernels)[0], null[:2])
    assert len({row.tobytes() for row in null}) == 3
    source, total = decisions.source, np.zeros(n_kernels)
    for record in records:
        draw = np.random.default_rng([source.spec.seed, record.split, 0])
        y, train = source.dataset.y.copy(), source.splits[record.split].train
        y[train] = draw.permutation(y[train])
        inputs = inputs_of(source, source.splits[record.split])
        with mkldist.KernelBank(inputs.points[train], KERNELS, normalisation="trace") as bank:
            solution = mkldist.solve("uniform", bank, y[train], C=1.0)
            test = inputs.points[source.splits[record.split].test]
            names = [*map(str, range(n_kernels))]
            parts = bank.expansion(solution).contributions(names, test)[:, :-1]
        total += decision_shares([(np.arange(n_kernels), parts)], n_kernels)
    np.testing.assert_allclose(null[0], total / len(records), atol=1e-3)


@pytest.mark.slow
def test_features_stand_at_their_means_where_they_are_left_out(tmp_path):
    results = swept(tmp_path, entry("level", C=10.0))
    records = sorted(recorded(results), key=lambda record: record.split)
    decisions = explained_runs(results, records, METRICS["error"])
    assert not isinstance(decisions, str)
    (sets,) = [one for one in decisions.sets([], 1e9) if one.level == "feature"]
    record, source = records[0], decisions.source
    parts = decisions.parts(record, [sets])
    split = source.splits[0]
    x = inputs_of(source, split).points
    moved, column = x[split.test].copy(), sets.names.index("a")
    moved[:, column] = x[split.train, column].mean()
    with mkldist.KernelBank(x[split.train], KERNELS, normalisation="trace") as bank:
        weights = record.kernel_weights
        before, after = (
            bank.on(rows).decision_values(weights, record.coefficients, record.bias)
            for rows in (x[split.test], moved)
        )
    np.testing.assert_allclose(before, record.decision_values, atol=1e-10)
    changes = parts.changes["feature"][:, column, 0]
    np.testing.assert_allclose(changes, before - after, atol=1e-10)


@pytest.mark.slow
def test_what_cannot_be_taken_apart_is_said(tmp_path):
    assert explained_runs(tmp_path, [], METRICS["error"]) == "no record of a complete run is there"
    methods = entry("lapmkl", gamma_a=0.01, gamma_i=0.1) + entry("level", C=1.0)
    results = swept(tmp_path, methods, splits=FEW_LABELS)
    records = recorded(results)
    few = [record for record in records if record.key == "lapmkl"]
    assert (
        explained_runs(results, few, METRICS["error"])
        == "methods that learn from a graph are not taken apart"
    )
    others = [record for record in records if record.key == "level"]
    assert not isinstance(explained_runs(results, others, METRICS["error"]), str)
    beyond = [replace(record, split=record.split + 2) for record in others]
    assert isinstance(explained_runs(results, beyond, METRICS["error"]), str)


SWEEP = """
name = "named"
[[datasets]]
name = "named"
file = "clinic.csv"
label = "outcome"
id = "id"
groups = { IFNG = ["rna.G0", "rna.G1", "rna.G2", "rna.G3"] }
[[datasets.views]]
name = "clinic"
columns = ["age", "bmi"]
[[datasets.views]]
name = "rna"
file = "rna.csv"
[splits]
repeats = 3
train_fraction = 0.7
[[banks]]
normalisation = "trace"
[[banks.kernels]]
function = "gaussian"
widths = [1.0, 3.0]
features = ["views", "groups", "each"]
[[methods]]
name = "uniform"
C = 100
"""
GENES = [f"G{j}" for j in range(6)]


@pytest.fixture(scope="module")
def results_named(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    draw = np.random.default_rng(0)
    clinic = pd.DataFrame(draw.normal(size=(60, 2)), columns=["age", "bmi"])
    rna = pd.DataFrame(draw.normal(size=(60, 6)), columns=GENES)
    outcome = np.where(clinic["age"] + 0.2 * draw.normal(size=60) > 0, "yes", "no")
    for name, table in (("clinic", clinic.assign(outcome=outcome)), ("rna", rna)):
        table.rename_axis("id").to_csv(folder / f"{name}.csv")
    file = folder / "named.toml"
    file.write_text(SWEEP)
    run_sweep(load_sweep(file), origin=file, output=folder / "results")
    return folder / "results"


@pytest.mark.slow
def test_the_view_that_makes_the_labels_carries_the_decision(results_named):
    (found,) = explain(results_named, permutations=9)
    views = found.of("view")
    assert [share.name for share in views] == ["clinic", "rna"]
    assert sum(share.decision.mean for share in views) == pytest.approx(1.0)
    assert views[0].p_value == 0.1
    assert views[0].left_out.mean > views[1].left_out.mean
    assert [share.name for share in found.of("group")] == ["IFNG"]
    features = found.of("feature")
    assert features[0].name == "age"
    assert {share.name for share in features} == {"age", "bmi", *(f"rna.{g}" for g in GENES)}
    assert found.no_better == ""


@pytest.mark.slow
def test_tables_tree_and_report_have_the_names(results_named):
    tree = mkldist.open_results(results_named)
    weights = tree["named/uniform"].kernel_weights
    in_group = weights["feature_group"] == "IFNG"
    assert weights["kernel"].to_numpy()[in_group].tolist() == [
        "gaussian(1)[IFNG]", "gaussian(3)[IFNG]",
    ]  # fmt: skip
    assert set(weights["view"].to_numpy()[in_group].tolist()) == {"rna"}
    rows = weight_rows(tree)
    assert set(rows.loc[rows["features"] == "IFNG", "function"]) == {"gaussian"}
    assert set(rows["width"]) == {1.0, 3.0}
    page = made_page(Facts.of(results_named))
    (section,) = [one for one in page.sections if one.name == "explanation"]
    assert {"clinic", "rna", "IFNG", "age"} <= set(section.tables[0].data["name"])


def test_labels_of_groups_are_permuted_together():
    y = np.repeat([1.0, -1.0, 1.0, -1.0, -1.0], 2)
    groups = np.repeat(np.arange(5), 2)
    grouped = Dataset("d", np.zeros((10, 1)), y, ("no", "yes"), row_groups=groups)
    rows, draws = np.arange(8), np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        found = permuted_labels(grouped, rows, draws)
        assert (found[::2] == found[1::2]).all()
        assert found[8:].tolist() == [-1.0, -1.0]
        assert sorted(found[:8]) == sorted(y[:8])
        seen.add(found.tobytes())
    assert len(seen) > 1
    mixed = replace(grouped, y=np.tile([1.0, -1.0], 5))
    assert sorted(permuted_labels(mixed, rows, draws)[:8]) == [-1.0] * 4 + [1.0] * 4
