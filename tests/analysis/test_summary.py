"""The summary, held against averages computed record by record."""

from __future__ import annotations

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from mkldist.analysis.summary import recorded_rows, recorded_table, results_table, summary
from mkldist.core.metrics import METRICS
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.tree import open_results
from mkldist.spec.model import SelectionSpec
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record

PLAN = made_up_plan(datasets=["heart", "wdbc"], n_splits=3)


def tree_of(folder, records, plan=PLAN, grids=GRIDS):
    store = Journal(folder / "records.journal")
    for record in records:
        store.append([record])
    lay_out(folder, plan, made_up_facts(plan, grids))
    return open_results(folder)


@pytest.fixture(scope="module")
def records():
    made = [made_up_record(run) for run in PLAN.runs[:-3]]
    for i in (0, 17, 30):
        made[i] = RunRecord.failed(PLAN.runs[i], "no memory")
    return made


@pytest.fixture(scope="module")
def table(records, tmp_path_factory):
    return summary(tree_of(tmp_path_factory.mktemp("sweep"), records))


def test_the_table_read_from_disk_is_that_of_the_tree(records, tmp_path):
    tree = tree_of(tmp_path, records)
    shown = []
    for made in (recorded_table(tmp_path), results_table(tree)):
        console = Console(width=120, file=io.StringIO())
        console.print(made)
        shown.append(console.file.getvalue())
    assert shown[0] == shown[1]
    rows = [line for line in shown[0].splitlines() if line.startswith(" level ")]
    assert len(rows) == 2 * len(GRIDS["level"]["C"])


def test_summary_is_what_pandas_finds_in_the_records(records, table):
    rows = pd.DataFrame(
        {
            "dataset": r.dataset, "method": r.key,
            "point": str(r.params.get("C")) + str(r.params.get("variant")),
            "error": r.scores["test_error"], "active": int((r.kernel_weights > 1e-3).sum()),
            "seconds": r.times["own_seconds"] + r.times["pass_seconds"], "gap": r.gap,
        }
        for r in records if r.state == "complete"
    )  # fmt: skip
    by_hand = rows.groupby(["dataset", "method", "point"])
    given = table.assign(
        point=table["C"].map(lambda c: str(None if np.isnan(c) else c))
        + table["variant"].map(lambda v: str(None if pd.isna(v) else v))
    ).set_index(["dataset", "method", "point"])
    assert len(given) == 16
    for column, name, how in (
        ("test_error_mean", "error", "mean"), ("test_error_sd", "error", "std"),
        ("active_mean", "active", "mean"), ("active_sd", "active", "std"),
        ("seconds_mean", "seconds", "mean"), ("seconds_sd", "seconds", "std"),
        ("gap_max", "gap", "max"), ("complete", "error", "count"),
    ):  # fmt: skip
        expected = getattr(by_hand[name], how)().reindex(given.index)
        np.testing.assert_allclose(given[column], expected, rtol=1e-12, err_msg=column)
    assert given["failed"].sum() == 3
    assert given["waiting"].sum() == 3
    whole = by_hand["error"].count() == 3  # of the splits; the means of others are of other points
    best = by_hand["error"].mean()[whole].groupby("dataset").idxmin()
    assert given["lacking"].tolist() == (3 - given["complete"]).tolist()
    assert set(given.index[given["best"]]) == set(best)


def test_the_best_value_at_an_end_of_its_grid_is_named(tmp_path):
    grids = {"level": {"C": [1.0, 10.0, 100.0], "stop": ["a", "b"]}, "uniform": {"C": [5.0]},
             "silp": {"C": [1, 10, 100]}}  # fmt: skip
    plan = made_up_plan(grids, n_splits=2)
    errors = {1: 0.3, 10: 0.2, 100: 0.1, 5: 0.1}
    records = []
    for run in plan.runs:
        error = errors[run.params["C"]] if run.key != "silp" else 0.5 - (run.params["C"] == 10) / 5
        scores = {"test_error": error + 0.01 * (run.params.get("stop") == "b")}
        records.append(dataclasses.replace(made_up_record(run), scores=scores))
    table = summary(tree_of(tmp_path, records, plan, grids))
    marked = table[table["edge"] != ""]
    assert marked[["method", "C", "stop", "edge"]].values.tolist() == [
        ["level", 100.0, "a", "C = 100"]
    ]
    assert table[table["best"]]["method"].tolist() == ["level", "uniform"]


def test_equal_best_values_within_the_grid_are_not_at_its_end(tmp_path):
    grids = {"level": {"C": [1.0, 10.0, 100.0]}}
    plan = made_up_plan(grids, n_splits=1)
    records = [
        dataclasses.replace(made_up_record(run), scores={"test_error": float(run.params["C"] < 5)})
        for run in plan.runs
    ]
    assert (summary(tree_of(tmp_path, records, plan, grids))["edge"] == "").all()


def test_a_flat_loss_is_at_no_end_of_its_grid(tmp_path):
    grids = {"level": {"C": [1.0, 10.0]}}
    plan = made_up_plan(grids, n_splits=1)
    records = [
        dataclasses.replace(made_up_record(r), scores={"test_error": 0.2}) for r in plan.runs
    ]
    assert (summary(tree_of(tmp_path, records, plan, grids))["edge"] == "").all()


def test_one_split_has_no_deviation(tmp_path):
    plan = made_up_plan(n_splits=1)
    table = summary(tree_of(tmp_path, [made_up_record(run) for run in plan.runs], plan))
    assert table["test_error_sd"].isna().all()
    assert table["test_error_mean"].notna().all()


def test_before_any_outcome_everything_waits(tmp_path):
    table = summary(tree_of(tmp_path, []))
    assert table["waiting"].sum() == len(PLAN.runs)
    assert table["test_error_mean"].isna().all()
    assert not table["best"].any()


def test_failed_runs_lend_no_numbers(tmp_path):
    grids = {"uniform": {}}
    plan = made_up_plan(grids, datasets=["d"], n_splits=2)
    good = made_up_record(plan.runs[0])
    bad = dataclasses.replace(
        RunRecord.failed(plan.runs[1], "late"), scores={"test_error": 1.0},
        times={"own_seconds": 1e9},
    )  # fmt: skip
    [row] = summary(tree_of(tmp_path, [good, bad], plan, grids)).to_dict("records")
    assert (row["complete"], row["failed"]) == (1, 1)
    assert row["test_error_mean"] == good.scores["test_error"]
    assert row["seconds_mean"] < 10


def test_regression_is_summed_up_by_its_own_scores(tmp_path):
    grids = {"uniform": {"C": [1.0, 2.0]}}
    plan = made_up_plan(grids, datasets=["classes", "values"], n_splits=2)
    records = []
    for run in plan.runs:
        record = made_up_record(run)
        if run.dataset == "values":
            rmse = 10.0 * run.params["C"] + run.split
            record = dataclasses.replace(record, scores={"rmse": rmse, "mae": 1.0, "r2": 0.5})
        records.append(record)
    store = Journal(tmp_path / "records.journal")
    for record in records:
        store.append([record])
    facts = dataclasses.replace(made_up_facts(plan, grids), tasks={"values": "regression"})
    lay_out(tmp_path, plan, facts)
    tree = open_results(tmp_path)
    assert "rmse" not in tree["classes/uniform"].ds
    assert "test_error" not in tree["values/uniform"].ds
    table = summary(tree).set_index(["dataset", "C"])
    assert table["task"].tolist() == ["classification"] * 2 + ["regression"] * 2
    assert table.loc[("values", 1.0), "rmse_mean"] == 10.5
    assert table.loc[("values", 1.0), "rmse_sd"] == pytest.approx(np.sqrt(0.5))
    assert table.loc["values"]["r2_mean"].tolist() == [0.5, 0.5]
    assert table.loc["values"]["best"].tolist() == [True, False]
    assert table.loc["values"]["test_error_mean"].isna().all()
    assert table.loc["classes"]["rmse_mean"].isna().all()
    assert table.loc["classes"]["best"].sum() == 1


def test_the_best_is_that_of_the_unlabelled_points_where_there_are_no_others(tmp_path):
    records = [
        dataclasses.replace(
            made_up_record(run),
            scores={
                "unlabelled_error": made_up_record(run).scores["test_error"],
                "unlabelled_balanced_error": 0.2,
                "unlabelled_auc": 0.9,
            }
            | ({"test_error": 0.1} if run.dataset == "wdbc" else {}),
        )
        for run in PLAN.runs
    ]
    table = summary(tree_of(tmp_path, records)).set_index("dataset")
    heart, wdbc = table.loc["heart"], table.loc["wdbc"]
    assert heart["test_error_mean"].isna().all()
    assert (
        heart["best"] == (heart.unlabelled_error_mean == heart.unlabelled_error_mean.min())
    ).all()
    assert heart["best"].sum() == 1
    assert wdbc["best"].all()


def test_the_largest_exact_gap_of_runs_on_factors_is_told(tmp_path):
    made = [
        dataclasses.replace(made_up_record(run), extra={"exact_gap": 1e-3 * (run.split + 1)})
        for run in PLAN.runs
    ]
    table = summary(tree_of(tmp_path, made))
    np.testing.assert_allclose(table["exact_gap_max"], 3e-3)
    assert (table["sampled"] == 0).all()


def test_exact_gaps_by_a_sample_are_counted(tmp_path):
    both = [{"exact_gap": 1e-3}, {"exact_gap": 2e-3, "sampled_points": 100.0}]
    made = [
        dataclasses.replace(made_up_record(run), extra=both[run.split > 0]) for run in PLAN.runs
    ]
    table = summary(tree_of(tmp_path, made))
    assert (table["sampled"] == table["complete"] - 1).all()


def test_other_runs_have_no_exact_gap(table):
    assert table["exact_gap_max"].isna().all()


def of_splits(
    errors: dict[str, list[float]], constants: list[float], tmp_path, metric="error", inner=None
):
    """Return the summary of methods with these losses on splits of 126 and 54 of 180 rows.

    `inner` has the losses of methods on inner folds, on every split the same.
    """
    n_splits = len(constants)
    grids = {key: {} for key in errors}
    plan = made_up_plan(grids, n_splits=n_splits)
    selection = SelectionSpec(metric=metric, folds=3 if inner else 0)
    spec = plan.spec.model_copy(update={"selection": selection})
    plan = dataclasses.replace(plan, spec=spec)
    name, validation = METRICS[metric].variable(), METRICS[metric].variable("validation")
    records = [
        dataclasses.replace(
            made_up_record(run),
            scores={name: errors[run.key][run.split]}
            | ({validation: inner[run.key]} if inner else {}),
        )
        for run in plan.runs
    ]
    numbers = {"n_train": 126, "n_test": 54, "n_unlabelled": 0, "n_rarest": 14}
    coordinates = {name: np.full(n_splits, number) for name, number in numbers.items()}
    coordinates |= {"n_new": np.array([54, 36, 26, 20, 14][:n_splits])}
    coordinates |= {"constant_score": np.array(constants)}
    facts = dataclasses.replace(made_up_facts(plan, grids), splits={"heart": coordinates})
    store = Journal(tmp_path / "records.journal")
    for record in records:
        store.append([record])
    lay_out(tmp_path, plan, facts)
    rows = recorded_rows(tmp_path)
    table = summary(open_results(tmp_path))
    pd.testing.assert_frame_equal(table, pd.DataFrame(rows))
    return table.set_index("method")


def test_rows_that_beat_no_constant_are_marked_and_get_no_star(tmp_path):
    majority = [0.26, 0.24, 0.26, 0.25, 0.26]
    table = of_splits(
        {
            "uniform": majority,
            "silp": [0.25, 0.24, 0.25, 0.26, 0.25],
            "level": [0.1, 0.2, 0.15, 0.1, 0.2],
        },
        majority,
        tmp_path,
    )
    assert table["no_better"].to_dict() == {"uniform": True, "silp": True, "level": False}
    assert table["best"].to_dict() == {"uniform": False, "silp": False, "level": True}
    assert table["constant_mean"].tolist() == pytest.approx([np.mean(majority)] * 3)
    differences = np.array([0.1, 0.2, 0.15, 0.1, 0.2]) - majority
    statistic = differences.mean() / (differences.std(ddof=1) * np.sqrt(1 / 5 + 54 / 126))
    assert stats.t.cdf(statistic, 4) < 0.05


def test_the_test_parts_choose_no_other_row_than_the_inner_folds_did(tmp_path):
    errors = {"uniform": [0.26, 0.24, 0.25, 0.26, 0.25], "level": [0.1, 0.2, 0.15, 0.1, 0.2]}
    table = of_splits(errors, [0.25] * 5, tmp_path, inner={"uniform": 0.1, "level": 0.2})
    assert table["no_better"].to_dict() == {"uniform": True, "level": False}
    assert not table["best"].any()
    table = of_splits(errors, [0.25] * 5, tmp_path / "2", inner={"uniform": 0.3, "level": 0.2})
    assert table["best"].to_dict() == {"uniform": False, "level": True}


def test_a_sweep_whose_rows_are_all_the_majority_has_no_star(tmp_path):
    table = of_splits({"uniform": [0.26] * 5, "level": [0.26] * 5}, [0.26] * 5, tmp_path)
    assert table["no_better"].all()
    assert not table["best"].any()
    ends = table.loc["level", ["test_error_low", "test_error_high"]].to_numpy(float)
    wrong, right = 0.26 * 150, 0.74 * 150  # of the rows that were tested, each counted once
    expected = stats.beta.ppf(0.025, wrong, right + 1), stats.beta.ppf(0.975, wrong + 1, right)
    np.testing.assert_allclose(ends, expected)


def test_an_auc_is_held_against_a_half_and_the_greatest_is_best(tmp_path):
    aucs = {"uniform": [0.5, 0.52, 0.47], "level": [0.9, 0.92, 0.91], "silp": [0.8, 0.82, 0.83]}
    table = of_splits(aucs, [0.5] * 3, tmp_path, "auc")
    assert table["best"].to_dict() == {"uniform": False, "level": True, "silp": False}
    assert table["no_better"].to_dict() == {"uniform": True, "level": False, "silp": False}
    assert (table["auc_low"] < table["auc_mean"]).all()
    assert ((table["auc_high"] > table["auc_mean"]) & (table["auc_high"] <= 1.0)).all()


def test_one_split_is_judged_by_its_rows(tmp_path):
    table = of_splits({"uniform": [0.25], "level": [0.05]}, [0.26], tmp_path)
    assert table["no_better"].to_dict() == {"uniform": True, "level": False}
    assert table.loc["level", "test_error_high"] == pytest.approx(
        stats.beta.ppf(0.975, 0.05 * 54 + 1, 0.95 * 54)
    )
