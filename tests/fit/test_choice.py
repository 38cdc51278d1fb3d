"""The choice of a setting, of grids and searches, and what beats no constant."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner
from sklearn import metrics

import mkldist
from mkldist.analysis.summary import selected_summary, summary
from mkldist.cli.models import explain_command, fit_command, predict_command
from mkldist.errors import InputError, StoreError
from mkldist.fit.model import load_model
from mkldist.fit.select import _runs, _settings, choose, refit
from mkldist.planning.model import Plan
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import lay_out
from mkldist.run.sweep import run_sweep
from mkldist.spec.load import load_sweep
from tests.fit.sweeps import SPLITS, entry, recorded, swept
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record


def results_of(
    folder: Path, plan: Plan, change: Any = lambda record: record, grids: Any = GRIDS
) -> Path:
    """Write the tree of made-up records, each changed or left out (None); return its folder."""
    store = Journal(folder / "records.journal")
    for run in plan.runs:
        record = change(made_up_record(run))
        if record is not None:
            store.append([record])
    lay_out(folder, plan, made_up_facts(plan, grids))
    return folder


def with_errors(errors: dict[tuple[str, float], list[float]], score: str = "test_error") -> Any:
    """Return a change that sets the error of each method, C and split."""

    def change(record: RunRecord) -> RunRecord:
        of_splits = errors.get((record.key, record.params.get("C", 0.0)), [0.5, 0.5, 0.5])
        record.scores.clear()
        record.scores[score] = of_splits[record.split]
        return record

    return change


@pytest.mark.slow
def test_the_least_mean_error_over_the_splits_is_chosen_and_said(tmp_path):
    errors = {("level", 1.0): [0.3, 0.0, 0.0], ("level", 100.0): [0.15, 0.15, 0.15]}
    found = choose(results_of(tmp_path, made_up_plan(), with_errors(errors)))
    assert (found.dataset, found.bank, found.method) == ("heart", "xu2008", "level")
    assert found.settings == {"C": 1.0}
    assert found.score == pytest.approx(0.1)
    assert found.words == "level, C = 1"
    assert found.said == (
        "the best of 8 settings on the test parts (error 10.00 %, mean of 3 splits)"
    )
    assert len(found.run_ids) == 3


@pytest.mark.slow
def test_a_setting_that_beats_no_constant_is_chosen_only_where_none_does(tmp_path):
    errors = {("level", 1.0): [0.0, 0.5, 0.09], ("level", 100.0): [0.2, 0.21, 0.2]}
    coordinates = {"n_train": 90, "n_test": 30, "n_unlabelled": 0, "n_new": 30, "n_rarest": 9}
    coordinates |= {"constant_score": 0.3}
    splits = {name: np.full(3, value) for name, value in coordinates.items()}
    plan, store = made_up_plan(), Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([with_errors(errors)(made_up_record(run))])
    facts = replace(made_up_facts(plan), splits={"heart": splits})
    lay_out(tmp_path, plan, facts)
    found = choose(tmp_path)
    assert found.settings == {"C": 100.0}
    assert not found.standing.no_better
    other = choose(tmp_path, method="uniform")
    assert other.standing.no_better
    assert (other.standing.mean, other.standing.constant) == (0.5, pytest.approx(0.3))


@pytest.mark.slow
def test_the_method_of_least_selected_loss_comes_before_its_settings(tmp_path):
    plan = made_up_plan()
    errors = {
        ("level", 1.0): [0.1, 0.4, 0.4], ("level", 100.0): [0.4, 0.1, 0.25],
        ("uniform", 0.0): [0.2, 0.2, 0.2],
    }  # fmt: skip
    found = choose(results_of(tmp_path, plan, with_errors(errors, "validation_error")))
    assert (found.method, found.settings) == ("level", {"C": 100.0})
    assert found.score == pytest.approx(0.25)


@pytest.mark.slow
def test_of_equal_settings_the_first_counts(tmp_path):
    found = choose(results_of(tmp_path, made_up_plan(), with_errors({})))
    assert (found.method, found.settings) == ("level", {"C": 0.1})


@pytest.mark.slow
def test_without_test_parts_the_unlabelled_parts_choose(tmp_path):
    grids = {"level": {"C": [1.0, 100.0]}}
    plan = made_up_plan(grids)
    errors = {("level", 100.0): [0.1, 0.1, 0.1]}
    change = with_errors(errors, "unlabelled_error")
    facts = made_up_facts(plan, grids)
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([change(made_up_record(run))])
    unlabelled = type(facts)(**{**vars(facts), "unlabelled": {"heart"}})
    lay_out(tmp_path, plan, unlabelled)
    found = choose(tmp_path)
    assert found.settings == {"C": 100.0}
    assert "on the unlabelled parts (error 10.00 %" in found.said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "method", "settings", "changed"),
    [
        ({"method": "uniform"}, "uniform", {}, {}),
        ({"method": "level", "settings": {"C": 100}}, "level", {"C": 100.0}, {}),
        ({"settings": {"C": 100.0, "variant": "newton"}}, "simplemkl",
         {"C": 100.0, "variant": "newton"}, {}),
        ({"method": "level", "settings": {"C": 3.0}}, "level", {}, {"C": 3.0}),
        ({"method": "level", "settings": {"tol": 1e-6}}, "level", {"C": 0.1}, {"tol": 1e-6}),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_chosen(wanted, method, settings, changed, tmp_path):
    found = choose(results_of(tmp_path, made_up_plan(), with_errors({})), **wanted)
    assert (found.method, found.settings, found.changed) == (method, settings, changed)


@pytest.mark.slow
def test_the_only_setting_is_no_choice(tmp_path):
    found = choose(results_of(tmp_path, made_up_plan()), method="uniform")
    assert found.said == "the only setting"


@pytest.mark.slow
def test_settings_whose_runs_are_not_complete_come_last(tmp_path):
    errors = with_errors({("level", 1.0): [0.1] * 3, ("level", 100.0): [0.2] * 3})

    def change(record: RunRecord) -> RunRecord | None:
        lacking = record.key == "level" and record.params["C"] == 1.0 and record.split == 2
        return None if lacking else errors(record)

    found = choose(results_of(tmp_path, made_up_plan(), change))
    assert found.settings == {"C": 100.0}
    assert found.note == "1 of 24 runs is waiting; resume the sweep first"
    assert "1 setting with runs that are not complete was left out" in found.said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, "2 data sets: heart, liver; expected one.*--dataset heart"),
        ({"dataset": "hart"}, "--dataset hart: found nothing of this name.*Did you mean 'heart'"),
        (
            {"dataset": "heart", "method": "levl"},
            "--method levl: found nothing of this name.*'level'",
        ),
        (
            {"dataset": "heart", "bank": "x"},
            "--bank x: found nothing of this name; expected xu2008",
        ),
        ({"dataset": "heart", "settings": {"c": 1.0}}, "--set c: .*expected one of C, variant"),
    ],
)
def test_what_is_not_there_is_told(wanted, said, tmp_path):
    plan = made_up_plan(datasets=("heart", "liver"))
    with pytest.raises(InputError, match=said):
        choose(results_of(tmp_path, plan), **wanted)


@pytest.mark.slow
def test_results_without_a_complete_run_are_told(tmp_path):
    with pytest.raises(InputError, match="no complete run; expected a complete run"):
        choose(results_of(tmp_path, made_up_plan(), lambda record: None))
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no results here"):
        choose(tmp_path / "empty")
    (tmp_path / "empty" / "records.journal").touch()
    with pytest.raises(StoreError, match=r"no tree\.layout beside the records"):
        choose(tmp_path / "empty")


@pytest.mark.slow
def test_a_setting_without_a_score_is_told(tmp_path):
    def change(record: RunRecord) -> RunRecord:
        record.scores.clear()
        return record

    found = choose(results_of(tmp_path, made_up_plan(), change))
    assert np.isnan(found.score)
    assert found.said == "the first setting: none has a score"


@pytest.mark.slow
def test_settings_that_all_lack_runs_are_counted_and_the_note_says_how_many_wait(tmp_path):
    grids = {"level": {"C": [1.0, 100.0]}}

    def change(record: RunRecord) -> RunRecord | None:
        return None if record.split else record

    found = choose(results_of(tmp_path, made_up_plan(grids), change, grids))
    assert "all have runs that are not complete" in found.said
    assert found.note == "4 of 6 runs are waiting; resume the sweep first"


@pytest.mark.slow
def test_a_value_that_the_sweep_did_not_run_has_no_error(tmp_path):
    wanted = {"method": "level", "settings": {"C": 7.0}}
    found = choose(results_of(tmp_path, made_up_plan(), with_errors({})), **wanted)
    assert found.words == "level, C = 7"
    assert found.said == (
        "as asked; the results have no run of C = 7, so the error of this setting is unknown"
    )
    assert found.note == ""


LOG = '{ low = 0.1, high = 1000, scale = "log" }'
RANDOM = '\n[selection]\nfolds = 2\n[search]\nkind = "random"\ntrials = 4'
HALVING = '\n[selection]\nfolds = 2\n[search]\nkind = "halving"\ntrials = 4\nfactor = 2\nrungs = 2'


def node(planned: Any, **trials: Any) -> xr.DataTree:
    """Return a node of trials on two splits, whose errors count its runs; of halving if 3-d."""
    planned = np.array(planned)
    dims = ("split", "trial", "tol")[: planned.ndim]
    number = np.arange(planned.size).reshape(planned.shape)
    data = xr.Dataset(
        {
            "run_id": (dims, np.where(planned, np.char.add("r", number.astype(str)), "")),
            "state": (dims, np.where(planned, "complete", "")),
            "test_error": (dims, np.where(planned, number, np.nan)),
        },
        {"split": [0, 1], "trial": [0, 1]}
        | ({"tol": [0.3, 0.01]} if planned.ndim == 3 else {})
        | {name: (dims[:2], np.array(values)) for name, values in trials.items()},
    )
    return xr.DataTree.from_dict({"/heart/level": data})["heart/level"]


def test_trials_of_equal_values_are_one_setting_whatever_their_numbers():
    trials = node([[True, True], [True, True]], C=[[5.0, 7.0], [7.0, 5.0]])
    found = [*_settings(["C"], _runs(trials, "test_error"), "test_error", "test_error", [])]
    assert [(one.settings, one.run_ids, one.score, one.missing) for one in found] == [
        ({"C": 5.0}, ("r0", "r3"), 1.5, 0), ({"C": 7.0}, ("r1", "r2"), 1.5, 0),
    ]  # fmt: skip
    assert all(isinstance(one.settings["C"], float) for one in found)


def test_of_halving_the_last_rung_counts():
    planned = [[[True, True], [True, False]], [[True, False], [True, True]]]
    trials = node(planned, C=[[5.0, 7.0], [5.0, 7.0]])
    found = [*_settings(["C"], _runs(trials, "test_error"), "test_error", "test_error", [])]
    assert [(one.settings, one.run_ids, one.score) for one in found] == [
        ({"C": 5.0}, ("r1",), 1.0), ({"C": 7.0}, ("r7",), 7.0),
    ]  # fmt: skip


@pytest.mark.slow
def test_the_trial_of_least_mean_error_is_fitted(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG), splits=SPLITS + RANDOM)
    errors: dict[float, list[float]] = {}
    for record in recorded(results):
        errors.setdefault(record.params["C"], []).append(record.scores["validation_error"])
    assert [len(of_splits) for of_splits in errors.values()] == [2] * 4
    found = choose(results)
    assert found.score == pytest.approx(min(np.mean(of_splits) for of_splits in errors.values()))
    assert np.mean(errors[found.settings["C"]]) == pytest.approx(found.score)
    assert "the best of 4 settings by cross-validation" in found.said
    assert refit(results, found).facts["params"]["C"] == found.settings["C"]


@pytest.mark.slow
def test_a_search_of_other_settings_on_each_split_is_refused_until_one_is_given(tmp_path):
    results = swept(tmp_path, entry("level", C=LOG.replace("0.1", "10")), splits=SPLITS + HALVING)
    last = {(r.split, r.params["C"]): r.scores["validation_error"]
            for r in recorded(results) if r.params["tol"] < 0.01}  # fmt: skip
    assert len({C for _, C in last}) > 2, "both splits kept the same trials: choose others"
    with pytest.raises(InputError, match="other settings of level on each split") as error:
        choose(results)
    best = [place for place in last if last[place] == min(last.values())]
    [(_, C)] = [
        (split, C)
        for split, C in best
        if f"--method level --set C={C:g} is the best of split {split};" in str(error.value)
    ]
    found = choose(results, method="level", settings={"C": C})
    assert (found.settings, found.changed) == ({"C": C}, {})
    assert refit(results, found, 1).facts["split"] == 1
    with pytest.raises(InputError, match="a number from 0 to 1"):
        refit(results, found, 2)


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


def swept_noise(folder: Path, metric: str, folds: int) -> Path:
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
    return swept_noise(tmp_path_factory.mktemp("auc"), "auc", 3)


@pytest.mark.slow
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


@pytest.mark.slow
def test_settings_are_selected_by_the_metric_on_the_inner_folds(by_auc):
    tree = mkldist.open_results(by_auc)
    node, chosen = tree["weak/uniform"], mkldist.selected(tree)["weak/uniform"]
    best = node["validation_auc"].max("C")
    assert chosen["validation_auc"].values.tolist() == best.values.tolist()
    assert not node["validation_auc"].equals(1.0 - node["validation_error"])
    assert choose(by_auc, dataset="weak").score >= float(best.mean()) - 0.05


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_model_of_a_signal_is_not(by_auc, tmp_path):
    file = tmp_path / "weak.model"
    words = [str(by_auc), "--dataset", "weak", "-o", str(file)]
    done = CliRunner().invoke(fit_command, words, catch_exceptions=False)
    assert "no better" not in done.stdout
    assert not load_model(file).facts["standing"]["no_better"]


@pytest.mark.slow
def test_without_inner_folds_the_test_parts_rank_by_the_metric(tmp_path):
    results = swept_noise(tmp_path, "balanced_error", 0)
    tree = mkldist.open_results(results)
    assert "validation_error" not in tree["weak/uniform"]
    table = summary(tree)
    weak = table[(table["dataset"] == "weak") & ~table["no_better"]]
    assert table.loc[table["best"], "balanced_error_mean"].tolist() == [
        weak["balanced_error_mean"].min()
    ]
    chosen = choose(results, dataset="weak")
    assert chosen.score == pytest.approx(weak["balanced_error_mean"].min())
