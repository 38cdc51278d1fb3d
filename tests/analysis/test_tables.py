"""The table at the end of a sweep, as a terminal shows it."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from mkldist.analysis.summary import summary_table


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
    Console(file=out, width=width, color_system=None).print(summary_table(table, **options))
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
    marked = [
        line.split()[:3] for line in shown(table) if " * " in line and "best mean" not in line
    ]
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
    assert any(line.startswith(" best_single  C=0.01   ") for line in lines)


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


def test_a_long_table_of_regression_shows_the_least_rmse():
    lines = shown(made_up_regression(), row_limit=3)
    assert sum(line.startswith((" simplemkl", " best_single")) for line in lines) == 2
    assert any("53.90 [50, 65.2] *" in line for line in lines)


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
    assert not any("exact gap" in line for line in shown(made_up_summary(), width=100))
