"""The text of a first sweep: a sweep file that fits the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mkldist.data.first_look import FirstLook, read_columns
from mkldist.planning.model import Plan
from mkldist.run.cluster import ConnectOptions
from mkldist.run.first_sweep import Facts, first_sweep, sweep_name
from mkldist.run.sweep_setup import planned
from mkldist.spec.load import load_sweep

ROWS = 60


def table(path: Path, n_features: int, labels: list[str]) -> Path:
    """Write a table of random features and a column of labels."""
    draw = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_features)]
    rows = [[*(f"{v:.4f}" for v in draw.normal(size=n_features)), label] for label in labels]
    path.write_text("\n".join(",".join(row) for row in [[*names, "target"], *rows]))
    return path


def plan_of(data: Path) -> tuple[str, Plan]:
    """Write the first sweep of a table; return its text and its plan."""
    file = data.parent / "first.toml"
    text = first_sweep(data, file, Facts.of(FirstLook(read_columns(data), "target")))
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
    assert n_kernels == 9 + 3 + 5 * 3


@pytest.mark.parametrize(("n_features", "n_kernels"), [(1, 12), (60, 12 + 300), (61, 12 + 250)])
def test_single_features_have_kernels_of_their_own_unless_there_are_many(
    tmp_path, n_features, n_kernels
):
    _, plan = plan_of(table(tmp_path / "t.csv", n_features, ["a", "b"] * 20))
    assert {bank.n_kernels for bank in plan.banks} == {n_kernels}


def test_what_looks_odd_is_said(tmp_path):
    path = table(tmp_path / "t.csv", 2, ["yes", "no", "Yes"] * 10)
    text = first_sweep(path, path, Facts.of(FirstLook(read_columns(path), "target")))
    assert "# NOTE: the classes 'yes' and 'Yes' differ in capitals alone\n" in text


def test_texts_and_a_name_that_occurs_twice_are_said(tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"P{min(i, 28)},seen at {i} hours,{i / 7},{'ab'[i % 2]}" for i in range(30)]
    path.write_text("\n".join(["patient,note,x,target", *rows]))
    text = first_sweep(path, path, Facts.of(FirstLook(read_columns(path), "target")))
    assert '# texts = ["note"]' in text
    assert "# NOTE: 'patient' would name the rows, but 'P28' occurs 2 times\n" in text
    assert "\nid = " not in text


def test_many_rows_begin_with_a_part(tmp_path):
    few, many = (
        first_sweep(Path("d.svm"), Path("d.toml"), Facts(n, 4, regression=False))
        for n in (5000, 5001)
    )
    assert "per_class" not in few
    assert "per_class = 1000" in many
    assert "label" not in many.partition("[[datasets]]")[2].partition("[pre")[0]


def test_c_grows_with_the_rows():
    def text(n_rows: int) -> str:
        return first_sweep(Path("d.svm"), Path("d.toml"), Facts(n_rows, 4, regression=False))

    assert "C = [10, 100, 1000]" in text(400)  # as in the quickstart
    assert "C = [100, 1000, 10000]" in text(2000)


@pytest.mark.parametrize(
    ("path", "name"),
    [("heart.csv", "heart"), ("a/b c (1).csv.gz", "b_c_1"), ("-.csv", "mine"), ("_x.csv", "x")],
)
def test_a_file_gives_the_sweep_a_name_that_sweeps_may_have(path, name):
    assert sweep_name(Path(path)) == name
