"""The summary of a sweep, as a table and as a terminal shows it."""

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy import stats

from mkldist.analysis.summary import (
    EDGES_SHOWN,
    caption,
    recorded_table,
    results_table,
    selected_summary,
    summary,
    summary_rows,
    summary_table,
)
from mkldist.core.metrics import METRICS
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import lay_out
from mkldist.results.tree import Snapshot, open_results
from mkldist.spec.model import SelectionSpec
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record

PLAN = made_up_plan(datasets=["heart", "wdbc"], n_splits=3)


def tree_of(folder, records, plan=PLAN, grids=GRIDS):
    Journal(folder / "records.journal").append(records)
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


def test_the_rows_of_a_folder_without_xarray_are_those_of_its_tree(records, table, tmp_path):
    tree_of(tmp_path, records)
    rows = pd.DataFrame(summary_rows(Snapshot.of(tmp_path).runs_of_methods()))
    pd.testing.assert_frame_equal(rows, table)
    assert printed(recorded_table(tmp_path)) == printed(results_table(open_results(tmp_path)))


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
        records.append(replace(made_up_record(run), scores=scores))
    table = summary(tree_of(tmp_path, records, plan, grids))
    marked = table[table["edge"] != ""]
    assert marked[["method", "C", "stop", "edge"]].values.tolist() == [
        ["level", 100.0, "a", "C = 100"]
    ]
    assert table[table["best"]]["method"].tolist() == ["level", "uniform"]


@pytest.mark.parametrize("errors", [{1.0: 0.3, 10.0: 0.2, 100.0: 0.2}, {1.0: 0.2, 10.0: 0.2}])
def test_equal_best_values_are_at_no_end_of_their_grid(tmp_path, errors):
    grids = {"level": {"C": [*errors]}}
    plan = made_up_plan(grids, n_splits=1)
    records = [
        replace(made_up_record(run), scores={"test_error": errors[run.params["C"]]})
        for run in plan.runs
    ]
    assert (summary(tree_of(tmp_path, records, plan, grids))["edge"] == "").all()


def test_one_split_has_no_deviation_and_waiting_runs_no_numbers(tmp_path):
    plan = made_up_plan(n_splits=1)
    table = summary(tree_of(tmp_path, [made_up_record(run) for run in plan.runs], plan))
    assert table["test_error_sd"].isna().all()
    assert table["test_error_mean"].notna().all()
    assert table["exact_gap_max"].isna().all()
    table = summary(tree_of(tmp_path / "2", []))
    assert table["waiting"].sum() == len(PLAN.runs)
    assert table["test_error_mean"].isna().all()
    assert not table["best"].any()


def test_failed_runs_lend_no_numbers(tmp_path):
    grids = {"uniform": {}}
    plan = made_up_plan(grids, datasets=["d"], n_splits=2)
    good = made_up_record(plan.runs[0])
    bad = replace(
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
            record = replace(record, scores={"rmse": rmse, "mae": 1.0, "r2": 0.5})
        records.append(record)
    Journal(tmp_path / "records.journal").append(records)
    facts = replace(made_up_facts(plan, grids), tasks={"values": "regression"})
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
        replace(
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


def test_exact_gaps_of_runs_on_factors_and_those_by_a_sample_are_counted(tmp_path):
    both = [{"exact_gap": 1e-3}, {"exact_gap": 2e-3, "sampled_points": 100.0}]
    made = [replace(made_up_record(run), extra=both[run.split > 0]) for run in PLAN.runs]
    table = summary(tree_of(tmp_path, made))
    np.testing.assert_allclose(table["exact_gap_max"], 2e-3)
    assert (table["sampled"] == table["complete"] - 1).all()


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
    plan = replace(plan, spec=spec)
    name, validation = METRICS[metric].variable(), METRICS[metric].variable("validation")
    records = [
        replace(
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
    facts = replace(made_up_facts(plan, grids), splits={"heart": coordinates})
    Journal(tmp_path / "records.journal").append(records)
    lay_out(tmp_path, plan, facts)
    return summary(open_results(tmp_path)).set_index("method")


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


@pytest.fixture(scope="module")
def plan():
    made = made_up_plan(n_splits=3)
    return replace(made, spec=made.spec.model_copy(update={"selection": SelectionSpec()}))


@pytest.fixture(scope="module")
def selected_records(plan):
    made = [made_up_record(run) for run in plan.runs]
    errors = np.random.default_rng(3).uniform(0, 0.5, len(made))
    return [
        replace(record, scores=record.scores | {"validation_error": float(error)})
        for record, error in zip(made, errors, strict=True)
    ]


@pytest.fixture(scope="module")
def folder(plan, selected_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    Journal(folder / "records.journal").append(selected_records)
    lay_out(folder, plan, made_up_facts(plan))
    return folder


@pytest.fixture(scope="module")
def tree(folder):
    return open_results(folder)


def test_every_method_stands_once_at_what_each_split_selected(selected_records, tree):
    table = selected_summary(tree).set_index("method")
    assert sorted(table.index) == ["level", "simplemkl", "uniform"]
    for method, row in table.iterrows():
        best = [
            min((r for r in selected_records if r.key == method and r.split == split),
                key=lambda r: r.scores["validation_error"])
            for split in range(3)
        ]  # fmt: skip
        expected = np.mean([record.scores["test_error"] for record in best])
        assert row["test_error_mean"] == pytest.approx(expected)
        assert row["complete"] == 3
        chosen = sorted({record.params["C"] for record in best if "C" in record.params})
        if chosen:
            span = {f"{chosen[0]:g}", f"{chosen[-1]:g}"}
            assert set(row["C"].split("…")) == span
        else:
            assert pd.isna(row["C"])
    assert table["best"].sum() == 1
    assert table["validation_error_mean"].idxmin() == table["best"].idxmax()


def test_what_most_splits_select_at_an_end_of_the_grid_is_told(selected_records, tree):
    table = selected_summary(tree).set_index("method")
    by_split = [
        min((r for r in selected_records if r.key == "level" and r.split == split),
            key=lambda r: r.scores["validation_error"]).params["C"]
        for split in range(3)
    ]  # fmt: skip
    ends = {end: by_split.count(end) for end in (0.1, 100.0) if by_split.count(end) > 1}
    [(end, count)] = ends.items()
    assert table.loc["level", "edge"] == f"C = {end:g} in {count} of 3 splits"
    assert table.loc["uniform", "edge"] == ""


def test_a_split_whose_losses_are_equal_selects_no_end_of_the_grid(
    plan, selected_records, tmp_path
):
    store = Journal(tmp_path / "records.journal")
    for record in selected_records:
        flat = {"validation_error": 0.25 + 0.25 * (record.params.get("C") != 0.1)}
        flat = flat if record.split == 0 else {"validation_error": 0.25}
        store.append([replace(record, scores=record.scores | flat)])
    lay_out(tmp_path, plan, made_up_facts(plan))
    table = selected_summary(open_results(tmp_path)).set_index("method")
    assert table.loc["level", "C"] == "0.1"
    assert table.loc["level", "edge"] == ""


def test_splits_without_a_complete_run_select_nothing(plan, selected_records, tmp_path):
    store = Journal(tmp_path / "records.journal")
    done = [record for record in selected_records if record.key == "level" and record.split == 1]
    for record in done:
        store.append([record])
    lay_out(tmp_path, plan, made_up_facts(plan))
    table = selected_summary(open_results(tmp_path)).set_index("method")
    best = min(done, key=lambda record: record.scores["validation_error"])
    assert table.loc["level", "C"] == f"{best.params['C']:g}"
    assert table.loc["level", "edge"] in ("", f"C = {best.params['C']:g} in 1 of 1 splits")
    assert pd.isna(table.loc["simplemkl", "C"])
    assert table.loc["simplemkl", "edge"] == ""


def printed(table):
    console = Console(width=100, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_the_table_of_a_sweep_with_selection_says_so(folder, tree):
    text = printed(results_table(tree))
    assert printed(recorded_table(folder)) == text
    assert "best validation error in each split" in text
    assert sum(line.startswith(" level ") for line in text.splitlines()) == 1
    assert "* best mean validation error of its data set." in text
    assert "test part" not in text


def made_up_summary(n_values: int = 3, *, banks=("xu2008",), second=None) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    rows = [
        {
            "dataset": dataset, "bank": bank, "method": method, "C": C,
            "task": "classification", "metric": "error", "complete": 20, "failed": 0, "waiting": 0,
            "early": 0, "test_error_mean": draw.uniform(0.01, 0.4), "test_error_low": 0.0089,
            "test_error_high": 0.4567, "balanced_error_mean": 0.3456, "auc_mean": 0.8765,
            "edge": "", "lacking": 0, "no_better": False, "constant_mean": 0.45,
            "active_mean": draw.uniform(1, 400), "active_sd": 12.345,
            "seconds_mean": 10 ** draw.uniform(-2, 4), "seconds_sd": 1.0,
            "gap_max": draw.uniform(0, 0.01),
        }
        for dataset in ("breast_wisconsin", "wdbc") for bank in banks
        for method in ("simplemkl", "best_single") for C in np.geomspace(0.01, 1e4, n_values)
    ]  # fmt: skip
    table = pd.DataFrame(rows)
    if second:
        table.insert(4, second, np.where(table["method"] == "simplemkl", 0.5, np.nan))
    least = table.groupby("dataset")["test_error_mean"].transform("min")
    return table.assign(best=table["test_error_mean"] == least)


def shown(table: pd.DataFrame, width: int = 80, **options) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(
        summary_table(table.to_dict("records"), **options)
    )
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_every_row_is_one_line_that_fits(width):
    table = made_up_summary()
    lines = shown(table, width)
    assert max(map(len, lines)) <= width
    assert sum(line.lstrip().startswith(("simplemkl", "best_single")) for line in lines) == 12
    assert "breast_wisconsin" in lines
    if width == 120:
        assert lines[0].split() == ["test", "balanced", "active", "largest", "failed"]
        assert lines[1].split() == [
            "method", "C", "error", "%", "[95", "%]", "error", "%", "[95", "%]", "AUC", "[95", "%]",
            "kernels", "seconds", "gap", "runs",
        ]  # fmt: skip


def test_a_row_says_what_the_summary_says():
    table = made_up_summary(1).iloc[[0]].assign(
        test_error_mean=0.0456, active_mean=17.25, seconds_mean=3.14159, gap_max=0.0099, failed=2,
        complete=18,
    )  # fmt: skip
    [line] = [line for line in shown(table, 100) if "simplemkl" in line]
    assert line.split() == [
        "simplemkl", "0.01", "4.56", "[", "0.9,", "45.7]", "*", "34.56", "0.876", "17.2", "±",
        "12.3", "3.14", "9.9e-03", "2/20",
    ]  # fmt: skip


def test_the_best_of_each_data_set_is_marked():
    table = made_up_summary()
    marked = [line.split() for line in shown(table) if " * " in line and "best mean" not in line]
    best = table[table["best"]]
    assert [m[0] for m in marked] == best["method"].tolist()
    assert [float(m[2]) for m in marked] == [round(100 * e, 2) for e in best["test_error_mean"]]


def test_missing_numbers_are_a_dash_and_waiting_runs_are_told():
    table = made_up_summary(1).assign(
        test_error_mean=np.nan, balanced_error_mean=np.nan, auc_mean=np.nan, active_mean=np.nan,
        seconds_mean=np.nan, gap_max=np.nan,
        complete=0, waiting=20, best=False,
    )  # fmt: skip
    lines = shown(table)
    [line] = [line for line in lines if line.startswith(" simplemkl")][:1]
    assert line.split()[2:] == ["–"] * 4 + ["0/20"]  # noqa: RUF001
    assert "80 runs without an outcome yet." in lines


def test_a_long_table_shows_each_method_at_its_best():
    table = made_up_summary(40)
    lines = shown(table)
    assert sum(line.startswith((" simplemkl", " best_single")) for line in lines) == 4
    assert any("of 160 rows" in line for line in lines)
    for dataset, method in (("wdbc", "best_single"), ("wdbc", "simplemkl")):
        rows = table[(table["dataset"] == dataset) & (table["method"] == method)]
        least = f" {100 * rows['test_error_mean'].min():.2f} ["
        [line] = [x for x in lines[lines.index(dataset) :] if x.startswith(f" {method}")]
        assert least in line


def test_a_row_that_lacks_splits_stands_for_its_method_only_if_all_do():
    table = made_up_summary(40).reset_index(drop=True)
    of_wdbc = table[table["dataset"] == "wdbc"]
    means = of_wdbc.groupby("method")["test_error_mean"]
    table.loc[means.idxmin()["simplemkl"], "lacking"] = 1
    table.loc[of_wdbc.index[of_wdbc["method"] == "best_single"], "lacking"] = 2
    lines = shown(table)
    for method, least in (
        ("simplemkl", means.nsmallest(2).loc["simplemkl"].iloc[1]),
        ("best_single", means.min()["best_single"]),
    ):
        [line] = [x for x in lines[lines.index("wdbc") :] if x.startswith(f" {method}")]
        assert f" {100 * least:.2f} [" in line


def test_several_hyperparameters_are_named_and_banks_are_told_apart():
    table = made_up_summary(second="lam", banks=("xu2008", "hao2012-polynomial"))
    assert max(map(len, shown(table))) <= 80
    lines = shown(table, 100)
    assert "breast_wisconsin · hao2012-polynomial" in lines
    assert any("C=0.01 lam=0.5" in line for line in lines)
    assert any(line.split()[:2] == ["best_single", "C=0.01"] for line in lines)


def test_methods_without_hyperparameters_need_no_column():
    lines = shown(made_up_summary(1).drop(columns="C"))
    assert lines[1].split()[:2] == ["method", "error"]


def made_up_regression() -> pd.DataFrame:
    table = made_up_summary().query("dataset == 'wdbc'")
    return table.assign(
        dataset="diabetes", task="regression", metric="rmse", test_error_mean=np.nan,
        rmse_mean=np.linspace(53.9, 60.4, 6), rmse_low=50.0, rmse_high=65.25, r2_mean=0.4567,
        best=np.arange(6) == 0,
    )  # fmt: skip


def test_regression_has_its_own_scores():
    lines = shown(made_up_regression(), 100)
    assert lines[1].split() == [
        "method", "C", "RMSE", "[95", "%]", "R²", "[95", "%]", "kernels", "seconds", "gap", "runs",
    ]  # fmt: skip
    [line] = [line for line in lines if line.startswith(" simplemkl")][:1]
    assert line.split()[1:7] == ["0.01", "53.90", "[50,", "65.2]", "*", "0.457"]
    assert any("best mean test RMSE of its data set" in line for line in lines)
    assert not any("test error" in line for line in lines)


def test_both_tasks_stand_below_each_other_and_fit():
    table = pd.concat([made_up_summary(), made_up_regression()])
    lines = shown(table)
    assert max(map(len, lines)) <= 80
    error, rmse = ("".join(lines).index(word) for word in ("error %", "RMSE"))
    assert error < rmse
    assert {"breast_wisconsin", "wdbc", "diabetes"} <= set(lines)
    assert any("best mean test error or test RMSE" in line for line in lines)


def test_words_of_settings_are_not_broken_in_a_table_of_80_columns():
    table = made_up_regression().assign(C=0.1)
    table.insert(4, "loss", ["squared", "epsilon"] * 3)
    lines = [line.split() for line in shown(table)]
    assert sum("loss=squared" in line or "loss=epsilon" in line for line in lines) == 6


def test_runs_that_missed_their_tolerance_are_marked():
    table = made_up_summary(1)
    table.loc[0, ["early", "gap_max"]] = 3, 0.25
    lines = shown(table, 100)
    assert sum("2.5e-01 !" in line for line in lines) == 1
    assert "! 3 runs stopped before the tolerance:" in lines
    ends = {len(line) for line in lines if line.endswith("0/20")}
    assert len(ends) == 1


def test_a_narrow_terminal_shows_less_and_one_line_a_row():
    table = made_up_summary(second="gamma_i")
    wide, narrow = shown(table, 120), shown(table, 80)
    for lines in (wide, narrow):
        rows = [line for line in lines if "C=" in line]
        assert len(rows) == len(table)
        assert len({line.index("C=") for line in rows}) == 1
    assert all("±" in line and "0.876" in line for line in wide if "C=" in line)
    assert not any("±" in line or "0.876" in line for line in narrow)


def test_runs_that_failed_are_told_however_narrow():
    table = made_up_summary(second="gamma_i").assign(failed=1, complete=19)
    assert sum(line.endswith("1/20") for line in shown(table, 80)) == len(table)


def test_errors_of_unlabelled_points_have_a_column_of_their_own():
    table = made_up_summary(1)
    both = table.assign(unlabelled_error_mean=0.25, unlabelled_error_sd=0.01)
    lines = shown(both, 120)
    assert lines[0].split()[:2] == ["test", "unlabelled"]
    assert all(" 25.00 " in line for line in lines if "best_single" in line)
    marked = [line for line in lines if " * " in line and "best mean" not in line]
    assert len(marked) == 2
    assert all(line.index("*") < line.index(" 25.00 ") for line in marked)
    assert "* best mean test error of its data set." in lines


def test_without_test_points_the_unlabelled_ones_rank():
    table = made_up_summary(1)
    errors = table["test_error_mean"]
    few = table.assign(test_error_mean=np.nan, unlabelled_error_mean=errors)
    lines = shown(few)
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[0] == "unlabelled"
    assert "test" not in lines[1].split()
    assert len([line for line in lines if " *  " in line]) == 2
    assert "* best mean unlabelled error of its data set." in lines
    apart = pd.concat([few[few["dataset"] == "wdbc"], table[table["dataset"] != "wdbc"]])
    said = "* best mean unlabelled error or test error of its data set."
    assert said in shown(apart, 100)


def test_exact_gaps_have_a_column_of_their_own():
    lines = shown(made_up_summary().assign(exact_gap_max=0.0042), width=100)
    assert any("exact gap" in line for line in lines[:4])
    assert any("4.2e-03" in line for line in lines)


def row(method: str = "level", dataset: str = "wdbc", **given) -> dict:
    metric = "rmse" if given.get("task") == "regression" else "error"
    return {
        "dataset": dataset, "bank": "b", "method": method, "task": "classification", "edge": "",
        "complete": 5, "failed": 0, "waiting": 0, "early": 0, "lacking": 0, "gap_max": 0.01,
        "metric": metric, "best": False, "no_better": False, "constant_mean": 0.25, **given,
    }  # fmt: skip


def lines(*rows: dict, shown=None) -> list[str]:
    return caption(rows, rows if shown is None else shown).splitlines()


@pytest.mark.parametrize(
    ("given", "loss", "part"),
    [
        ({"test_error_mean": 0.1}, "test error", "test"),
        ({"unlabelled_error_mean": 0.1}, "unlabelled error", "unlabelled"),
        ({"task": "regression", "rmse_mean": 3.0}, "test RMSE", "test"),
        ({"metric": "auc", "auc_mean": 0.9, "test_error_mean": 0.1}, "test AUC", "test"),
        ({"test_error_mean": 0.1, "validation_error_mean": 0.2}, "validation error", None),
        ({"task": "regression", "rmse_mean": 3.0, "validation_rmse_mean": 2.0},
         "validation RMSE", None),
    ],
)  # fmt: skip
def test_the_star_says_by_what_it_was_given(given, loss, part):
    _, first, second, *_ = lines(row(**given))
    assert first == f"* best mean {loss} of its data set."
    assert second.startswith(f"* is the best on the {part} part") == (part is not None)


WORSE = row("majority", test_error_mean=0.25, no_better=True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row(lacking=1, complete=4), row("silp")], "Rows that lack a split that others"),
        ([row("lapmkl", gap_max=np.nan, stationarity_max=1e-3)], "Stationarity:"),
        ([row(exact_gap_max=1e-3)], "Exact gap:"),
        ([row(exact_gap_max=1e-3, sampled=1), row(exact_gap_max=2e-3, sampled=2)],
         "A sample of the points tells the exact gaps of 3 runs"),
        ([row(waiting=1)], "1 run without an outcome yet."),
        ([WORSE], "~ no better than always answering the majority (error 25.00 %) on wdbc"),
        ([WORSE], "So nothing is starred on wdbc"),
        ([row(metric="auc", auc_mean=0.5, constant_mean=0.5, no_better=True)],
         "~ no better than always answering the majority (AUC 0.500)"),
        ([row(task="regression", rmse_mean=3.0, constant_mean=3.0, no_better=True)],
         "~ no better than always answering the mean (RMSE 3.000)"),
    ],
)  # fmt: skip
def test_a_caption_tells_what_rows_show_and_nothing_else(rows, words):
    assert sum(line.startswith(words) for line in lines(*rows)) == 1
    assert not any(line.startswith(words) for line in lines(row(test_error_mean=0.1, best=True)))


def test_one_starred_row_is_enough():
    assert not any("starred" in x for x in lines(WORSE, row(test_error_mean=0.1, best=True)))
    assert any("class_weight" in line for line in lines(WORSE))


def test_rows_that_lack_splits_stand_for_no_method_that_has_others():
    told = "A row that lacks splits stands for its method only if all of its rows do."
    assert told in lines(row(lacking=1), row(), shown=[row()])
    assert told not in lines(row(), row(), shown=[row()]) + lines(row(lacking=1), row())


def test_values_at_the_end_of_a_grid_are_gathered():
    found = lines(
        row(edge="C = 10", test_error_mean=0.1),
        row("silp", test_error_mean=0.1),
        row(dataset="heart", edge="C = 10", test_error_mean=0.1),
    )
    at = found.index("Best at the end of its grid, so a wider grid may do better:")
    assert found[at + 1 :] == ["  level C = 10 (wdbc, heart)"]
    assert lines(row(edge="C = 10", test_error_mean=0.1))[-1] == "  level C = 10"
    many = lines(*(row(f"m{n}", edge="C = 1") for n in range(EDGES_SHOWN + 3)))
    assert many[-2:] == [f"  m{EDGES_SHOWN - 1} C = 1", "  3 more"]


def test_what_did_not_end_well_is_told():
    first = row(early=2, early_max_iter=2, waiting=1)
    second = row(early=3, early_max_iter=1, early_stalled=1, early_memory_limit=1)
    found = lines(first, second, shown=[row()])
    at = found.index("! 5 runs stopped before the tolerance:")
    assert [line.split(":")[0] for line in found[at + 1 : at + 4]] == [
        "  max_iter (3)", "  stalled (1)", "  memory_limit (1)",
    ]  # fmt: skip
    assert "Each method where its mean test error is best, of 2 rows." in found
    assert all(len(line) <= 80 for line in found)
