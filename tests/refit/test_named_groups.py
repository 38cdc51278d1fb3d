"""Names that people give to views and groups of features stand in all results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.data.dataset import Dataset
from mkldist.fit.explain import explain, permuted_labels
from mkldist.report.facts import Facts
from mkldist.report.page import made_page
from mkldist.results.rows import weight_rows
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep

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
def results(tmp_path_factory):
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
def test_the_view_that_makes_the_labels_carries_the_decision(results):
    (found,) = explain(results, permutations=9)
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
def test_tables_tree_and_report_have_the_names(results):
    tree = mkldist.open_results(results)
    weights = tree["named/uniform"].kernel_weights
    in_group = weights["feature_group"] == "IFNG"
    assert weights["kernel"].to_numpy()[in_group].tolist() == [
        "gaussian(1)[IFNG]", "gaussian(3)[IFNG]",
    ]  # fmt: skip
    assert set(weights["view"].to_numpy()[in_group].tolist()) == {"rna"}
    rows = weight_rows(tree)
    assert set(rows.loc[rows["features"] == "IFNG", "function"]) == {"gaussian"}
    assert set(rows["width"]) == {1.0, 3.0}
    page = made_page(Facts.of(results))
    (section,) = [one for one in page.sections if one.name == "explanation"]
    assert {"clinic", "rna", "IFNG", "age"} <= set(section.tables[0].data["name"])
    assert "clinic" in section.text


def test_estimators_have_the_names():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 6)), columns=GENES)
    y = np.arange(30) % 2
    kernels = [mkldist.kernels.Gaussian(widths=[1.0], features=["IFNG", "all"])]
    model = mkldist.MKLClassifier("uniform", kernels=kernels, groups={"IFNG": GENES[:4]}).fit(X, y)
    table = model.kernel_weights_
    assert table["features"].tolist() == ["all", "IFNG"]
    assert table["columns"].tolist() == [tuple(GENES), tuple(GENES[:4])]
    assert {"all", "IFNG"} <= {*model.contributions(X, by="features").columns}


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
