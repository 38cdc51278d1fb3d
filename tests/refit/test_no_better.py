"""Noise and a weak signal of 47 yes and 133 no: what is said of models that beat no constant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn import metrics

import mkldist
from mkldist.analysis.summary import selected_summary, summary
from mkldist.cli.models import explain_command, fit_command, predict_command
from mkldist.fit.model import load_model
from mkldist.fit.select import choose
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep

pytestmark = pytest.mark.slow

SWEEP = """
name = "yes"
[[datasets]]
name = "noise"
file = "noise.csv"
label = "y"
[[datasets]]
name = "weak"
file = "weak.csv"
label = "y"
[splits]
repeats = 5
[selection]
metric = "{metric}"
folds = {folds}
[[banks]]
normalisation = "trace"
kernels = [{{ function = "gaussian", widths = [1, 4], features = "all" }}]
[[methods]]
name = "uniform"
C = [10, 300]
[[methods]]
name = "level"
C = [10, 300]
[[methods]]
name = "majority"
[outputs]
predictions = true
"""


def swept(folder: Path, metric: str, folds: int) -> Path:
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(180, 5)), np.array(["yes"] * 47 + ["no"] * 133)
    for name, signal in (("noise", 0.0), ("weak", 1.2)):
        shifted = x + signal * (y == "yes")[:, None] * (np.arange(5) < 2)
        table = pd.DataFrame(shifted, columns=[*"abcde"]).assign(y=y)
        table.to_csv(folder / f"{name}.csv", index=False)
    file = folder / "yes.toml"
    file.write_text(SWEEP.format(metric=metric, folds=folds))
    run_sweep(load_sweep(file), origin=file, output=folder / "results")
    return folder / "results"


@pytest.fixture(scope="module")
def by_auc(tmp_path_factory):
    return swept(tmp_path_factory.mktemp("auc"), "auc", 3)


def test_nothing_of_noise_is_starred_and_a_weak_signal_is(by_auc):
    tree = mkldist.open_results(by_auc)
    table = selected_summary(tree).set_index(["dataset", "method"])
    assert table.loc["noise", "no_better"].all()
    assert not table.loc["noise", "best"].any()
    assert table.loc["weak", "no_better"].to_dict() == {
        "level": False, "majority": True, "uniform": False,
    }  # fmt: skip
    assert table.loc["weak", "best"].sum() == 1
    assert table.loc[("weak", "majority"), "auc_mean"] == 0.5
    assert (table["constant_mean"] == 0.5).all()


def test_settings_are_selected_by_the_metric_on_the_inner_folds(by_auc):
    tree = mkldist.open_results(by_auc)
    node, chosen = tree["weak/uniform"], mkldist.selected(tree)["weak/uniform"]
    best = node["validation_auc"].max("C")
    assert chosen["validation_auc"].values.tolist() == best.values.tolist()
    assert not node["validation_auc"].equals(1.0 - node["validation_error"])
    assert choose(by_auc, dataset="weak").score >= float(best.mean()) - 0.05


def test_recorded_scores_are_those_of_scikit_learn(by_auc):
    node = mkldist.open_results(by_auc)["weak/uniform"].isel(split=0, C=1)
    values = node["decision_values"].dropna("sample")
    y = node["label"].sel(sample=values["sample"]).to_numpy()
    assert node["auc"].item() == pytest.approx(metrics.roc_auc_score(y, values))
    for name in ("log_loss", "brier", "validation_log_loss", "validation_brier"):
        assert 0.0 < node[name].item() < 0.7
    shares = np.bincount(y > 0) / len(y)
    majority = mkldist.open_results(by_auc)["weak/majority"].isel(split=0)
    entropy = -(shares * np.log(shares)).sum()
    assert majority["log_loss"].item() == pytest.approx(entropy, abs=0.02)
    assert majority["validation_auc"].item() == 0.5


def test_a_model_of_noise_is_called_no_better_first(by_auc, tmp_path):
    runner, file = CliRunner(), tmp_path / "noise.model"
    words = [str(by_auc), "--dataset", "noise", "-o", str(file)]
    first = runner.invoke(fit_command, words, catch_exceptions=False).stdout.splitlines()[0]
    assert "no better than always answering the majority (AUC 0.500)" in first
    standing = load_model(file).facts["standing"]
    assert standing["no_better"]
    assert standing["low"] < 0.5 < standing["high"]
    out = tmp_path / "p.csv"
    words = [str(file), str(by_auc.parent / "noise.csv"), "-o", str(out)]
    said = runner.invoke(predict_command, words, catch_exceptions=False)
    assert "no better than" in said.stderr
    said = runner.invoke(explain_command, [str(by_auc)], catch_exceptions=False).stdout
    assert "On noise, " in said
    assert said.count("no better than") == 1


def test_a_model_of_a_signal_is_not(by_auc, tmp_path):
    file = tmp_path / "weak.model"
    words = [str(by_auc), "--dataset", "weak", "-o", str(file)]
    done = CliRunner().invoke(fit_command, words, catch_exceptions=False)
    assert "no better" not in done.stdout
    assert not load_model(file).facts["standing"]["no_better"]


def test_without_inner_folds_the_test_parts_rank_by_the_metric(tmp_path):
    results = swept(tmp_path, "balanced_error", 0)
    tree = mkldist.open_results(results)
    assert "validation_error" not in tree["weak/uniform"]
    table = summary(tree)
    weak = table[(table["dataset"] == "weak") & ~table["no_better"]]
    assert table.loc[table["best"], "balanced_error_mean"].tolist() == [
        weak["balanced_error_mean"].min()
    ]
    chosen = choose(results, dataset="weak")
    assert chosen.score == pytest.approx(weak["balanced_error_mean"].min())
