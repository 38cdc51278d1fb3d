"""The text of a first sweep: a sweep file that fits the data."""

from pathlib import Path

import numpy as np
import pytest

from mkldist.cli.first_sweep import Facts, first_sweep, sweep_name, told
from mkldist.data.table_profile import TableProfile, read_columns
from mkldist.planning.model import Plan
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep_setup import planned
from mkldist.solvers.base import PATH_OF_C
from mkldist.spec.load import load_sweep

ROWS = 60


def table(path: Path, n_features: int, labels: list[str]) -> Path:
    """Write a table of random features and a column of labels."""
    draw = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_features)]
    rows = [[*(f"{v:.4f}" for v in draw.normal(size=n_features)), label] for label in labels]
    path.write_text("\n".join(",".join(row) for row in [[*names, "target"], *rows]))
    return path


def plan_of(data: Path, **given: str) -> tuple[str, Plan]:
    """Write the first sweep of a table; return its text and its plan."""
    file = data.parent / "first.toml"
    text = first_sweep(data, file, Facts.of(TableProfile(read_columns(data), "target", **given)))
    file.write_text(text)
    spec = load_sweep(file)
    plan, _ = planned(spec, file, (), ConnectOptions(n_workers=1))
    return text, plan


@pytest.mark.parametrize(
    ("classes", "methods"),
    [
        (["no", "yes"], {"level", "uniform", "best_single", "majority"}),
        (["a", "b", "c"], {"level", "uniform", "best_single", "majority"}),
        ([], {"spicymkl", "primalmkl"}),
    ],
    ids=["two classes", "three classes", "regression"],
)
def test_classes_and_real_values_have_methods_that_learn_them(tmp_path, classes, methods):
    labels = [classes[i % len(classes)] if classes else f"{i / 7:.3f}" for i in range(ROWS)]
    text, plan = plan_of(table(tmp_path / "t.csv", 3, labels))
    assert {run.method for run in plan.runs} == methods
    assert ('task = "regression"' in text) == (not classes)
    (n_kernels,) = {bank.n_kernels for bank in plan.banks}
    assert n_kernels == 7
    assert {run.selection.folds for run in plan.runs if run.selection} == {3}


@pytest.mark.parametrize("classes", [["no", "yes"], []], ids=["classes", "regression"])
@pytest.mark.parametrize("n_features", [49, 50, 2001])
def test_single_columns_have_a_bank_of_their_own_for_one_method(tmp_path, n_features, classes):
    labels = [classes[i % 2] if classes else f"{i / 7:.3f}" for i in range(ROWS)]
    text, plan = plan_of(table(tmp_path / "t.csv", n_features, labels))
    apart = 50 <= n_features <= 2000
    assert {bank.spec.label: bank.n_kernels for bank in plan.banks} == {
        "default": 7 if n_features < 250 else 5,
        **({"columns": n_features} if apart else {}),
    }
    on_columns = {run.method for run in plan.runs if run.bank_label == "columns"}
    assert on_columns == ({"level" if classes else "spicymkl"} if apart else set())
    assert ("left out here" in text) == (n_features > 2000)


@pytest.mark.parametrize(
    ("n_rows", "n_features", "apart"),
    [(60, 2000, True), (1000, 100, True), (1700, 100, False), (6000, 60, True), (6000, 70, False)],
)
def test_single_columns_have_no_bank_that_is_large(n_rows, n_features, apart):
    assert Facts(n_rows, n_features, regression=True).has_columns_apart == apart


@pytest.mark.parametrize(("n_rows", "backend", "rank"), [(699, "auto", None), (702, "factors", 1)])
def test_single_columns_of_many_rows_are_not_multiplied_out(tmp_path, n_rows, backend, rank):
    labels = [f"{i % 3}" for i in range(n_rows)]
    _, plan = plan_of(table(tmp_path / "t.csv", 50, labels))
    specs = {bank.spec.label: (bank.spec.backend, bank.spec.rank) for bank in plan.banks}
    assert specs == {"default": ("auto", None), "columns": (backend, rank)}


@pytest.mark.parametrize(("few", "folds"), [(4, None), (5, 3)])
def test_inner_folds_choose_c_where_each_class_has_rows_for_them(tmp_path, few, folds):
    _, plan = plan_of(table(tmp_path / "t.csv", 3, ["a"] * 20 + ["b"] * few))
    found = {run.selection and run.selection.folds for run in plan.runs if run.method == "level"}
    assert found == {folds}
    assert {run.params["C"] for run in plan.runs if run.method == "level"} == {*PATH_OF_C}
    assert {run.method for run in plan.runs if run.on_path} == {"level"}


def test_a_class_in_capitals_decides_nothing(tmp_path):
    path = table(tmp_path / "t.csv", 2, ["yes", "no", "no", "no", "no"] * 6 + ["Yes"])
    facts = Facts.of(TableProfile(read_columns(path), "target"))
    assert facts.classes == {"no": 24, "yes": 7}
    text = first_sweep(path, path, facts)
    assert "so that the 7 rows of 'yes', of 31, count like the others" in text
    assert "\nfolds = 3 " in text


def test_texts_are_said_and_a_name_that_occurs_twice_groups_rows(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"P{min(i, 28)},seen at {i} hours,{i / 7},{'ab'[i % 2]}" for i in range(30)]
    path.write_text("\n".join(["patient,note,x,target", *rows]))
    text = first_sweep(path, path, Facts.of(TableProfile(read_columns(path), "target")))
    assert '# texts = ["note"]' in text
    assert '\nid = "patient" ' in text
    assert '\ngroups = "patient"' in text


def samples(path: Path, labels: str = "ab" * 30) -> Path:
    """Write a table of three samples of each patient, with a first column without a name."""
    values = np.random.default_rng(0).normal(size=len(labels))
    rows = [
        f"{i},P{i // 3},{values[i]:.3f},{-values[i]:.3f},,{1 + i % 28:02}.01.2020,{label}"
        for i, label in enumerate(labels)
    ]
    path.write_text("\n".join([",Patient ID,x,y,empty,seen,target", *rows]))
    return path


def test_samples_of_one_patient_stay_together(tmp_path):
    text, plan = plan_of(samples(tmp_path / "t.csv"))
    assert 'groups = "Patient ID"' in text
    assert "# 20 values in 60 rows: rows of one stay in one part" in text
    assert 'id = "Unnamed: 0" ' in text
    (bank,) = {bank.n_points for bank in plan.banks}
    assert bank == 42


@pytest.mark.parametrize(("n_groups", "n_splits"), [(3, 3), (10, 10), (11, 5)])
def test_few_groups_are_each_left_out_once(tmp_path, n_groups, n_splits):
    path = tmp_path / "t.csv"
    rows = [f"P{i % n_groups},{i / 7},{-i % 5},{'ab'[i // n_groups % 2]}" for i in range(88)]
    path.write_text("\n".join(["patient,x,y,target", *rows]))
    _, plan = plan_of(path, given_groups="patient")
    assert len({run.split for run in plan.runs}) == n_splits
    path.write_text(path.read_text().replace("P1,", ","))  # some rows have no group
    text, plan = plan_of(path, given_groups="patient")
    assert '\n# groups = "patient"' in text
    assert len({run.split for run in plan.runs}) == 5


def test_groups_that_a_sweep_would_refuse_are_a_comment(tmp_path):
    path = samples(tmp_path / "t.csv")
    path.write_text(path.read_text().replace("P2,", ","))
    text, _ = plan_of(path)
    assert '\n# groups = "Patient ID"' in text
    assert "once each row has one (3 have none)" in text
    text, _ = plan_of(samples(tmp_path / "t.csv", "bbb" + "a" * 57))
    assert '\ngroups = "Patient ID"' in text
    assert "\nfolds = 0 " in text


def test_what_cannot_be_learnt_is_ignored_with_the_reason(tmp_path):
    text, _ = plan_of(samples(tmp_path / "t.csv"))
    assert 'ignore = ["empty", "seen"]        # without any value, dates' in text
    assert "impute" not in text


def test_dates_may_order_the_rows(tmp_path):
    path = samples(tmp_path / "t.csv")
    path.write_text(path.read_text().replace("Patient ID", "kind"))
    text, _ = plan_of(path)
    assert '# kind = "time"\n# order = "seen"' in text
    other = text.replace('kind = "holdout"', 'kind = "time"\norder = "seen" #')
    file = tmp_path / "first.toml"
    file.write_text(other.replace("train_fraction = 0.7\nrepeats = 5", ""))
    plan, _ = planned(load_sweep(file), file, (), ConnectOptions(n_workers=1))
    assert len({run.split for run in plan.runs}) == 5


def test_hardly_known_columns_are_ignored(tmp_path):
    path = samples(tmp_path / "t.csv")
    path.write_text(path.read_text().replace(",,", ",7,", 1).replace(",,", ",8,", 1))
    text, _ = plan_of(path)
    assert "values in so few rows that a training part may hold none" in text


def test_many_rows_begin_with_a_part(tmp_path):
    few, many = (
        first_sweep(Path("d.svm"), Path("d.toml"), Facts(n, 4, regression=False))
        for n in (5000, 5001)
    )
    assert "n_points" not in few
    assert "n_points = 2000" in many
    assert "of 5001 rows" in many
    assert "label" not in many.partition("[[datasets]]")[2].partition("[pre")[0]


@pytest.mark.parametrize(
    ("counts", "rare"),
    [
        ({"ill": 29, "well": 71}, "ill"),
        ({"ill": 30, "well": 70}, None),
        ({"a": 19, "b": 40, "c": 41}, "a"),
        ({"a": 30, "b": 30, "c": 40}, None),
        ({}, None),
    ],
)
def test_a_rare_class_is_weighed_and_chosen_for(tmp_path, counts, rare):
    facts = Facts(100, 4, regression=not counts, classes=counts)
    assert facts.rare == rare
    text = first_sweep(Path("d.svm"), Path("d.toml"), facts)
    asked = 'class_weight = "balanced"' in text, 'metric = "balanced_error"' in text
    assert asked == (rare is not None,) * 2
    if rare:
        assert f"the {counts[rare]} rows of '{rare}', of 100," in text
        assert f"the {counts[rare]} rows of '{rare}', of 100," in "".join(told(text))


def test_the_sweep_of_a_rare_class_has_its_plan(tmp_path):
    labels = ["yes" if i % 5 == 0 else "no" for i in range(ROWS)]
    _, plan = plan_of(table(tmp_path / "t.csv", 3, labels))
    assert {run.class_weight for run in plan.runs} == {"balanced"}
    assert plan.spec.selection.metric == "balanced_error"


@pytest.mark.parametrize(
    ("path", "name"),
    [("heart.csv", "heart"), ("a/b c (1).csv.gz", "b_c_1"), ("-.csv", "mine"), ("_x.csv", "x")],
)
def test_a_file_gives_the_sweep_a_name_that_sweeps_may_have(path, name):
    assert sweep_name(Path(path)) == name
