"""Tables of the report, held to the summary and the records."""

from __future__ import annotations

import pandas as pd
import pytest

from mkldist.report.page import Page, Section
from mkldist.report.tables import (
    Cell,
    Table,
    certificates_table,
    chosen_table,
    failures_table,
    p_value,
    pairs_table,
    results_table,
    stability_table,
)


def test_results_have_a_row_a_setting_and_mark_the_best(facts):
    table = results_table(facts)
    assert len(table.rows) == len(facts.summary)
    assert table.headings == (
        "dataset", "method", "test error", "test AUC", "C", "variant", "kernels", "seconds",
        "largest gap", "runs",
    )  # fmt: skip
    assert sum(table.marks) == facts.summary["best"].sum() == 2
    errors = [row[2].key for row in table.rows]
    ordered = facts.summary.sort_values(["dataset", "test_error_mean"])
    assert errors == pytest.approx(ordered["test_error_mean"].tolist())
    assert table.marks[0]
    first = ordered.iloc[0]
    mean, low, high = (100 * first[f"test_error_{name}"] for name in ("mean", "low", "high"))
    assert table.rows[0][2].text == f"{mean:.2f} [{low:.1f}, {high:.1f}] %"


def test_certificates_count_runs_by_their_end(facts):
    table = certificates_table(facts)
    early = sum(row[4].key for row in table.rows)
    failed = sum(row[5].key for row in table.rows)
    assert (early, failed) == (1, 1)
    assert [row[1].text for row, mark in zip(table.rows, table.marks, strict=True) if mark]
    assert sum(row[2].key for row in table.rows) == len(facts.runs) - 3


def test_failures_have_their_reasons(facts):
    ((run, split, setting, reason),) = failures_table(facts).rows
    assert run.text.startswith("heart/")
    assert split.text == "0"
    assert "C = " in setting.text
    assert reason.text == "no memory for <b>17</b> matrices"


def test_pairs_are_those_of_the_comparison(facts):
    table = pairs_table(facts.pairs)
    assert len(table.rows) == len(facts.pairs) == 6
    assert table.rows[0][2].key == pytest.approx(facts.pairs["difference"].iloc[0])


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "< 0.001"), (9e-4, "< 0.001"), (0.0014, "0.001"), (1.0, "1.000")]
)
def test_small_p_values_are_not_shown_as_zero(value, text):
    assert p_value(value) == Cell(text, value)
    assert p_value(float("nan")).key is None


def test_stability_has_a_row_a_method(finished):
    table = stability_table(finished.stability)
    assert [row[0].text for row in table.rows] == ["level", "simplemkl", "uniform"]
    both = pd.concat([finished.stability, finished.stability.assign(bank="another")])
    table = stability_table(both)
    assert table.headings[:2] == ("bank", "method")
    assert len({tuple(cell.text for cell in row[:2]) for row in table.rows}) == 6


def test_files_of_tables_hold_numbers(facts, tmp_path):
    for table in (results_table(facts), pairs_table(facts.pairs), stability_table(facts.stability)):
        table.write(tmp_path)
        written = pd.read_csv(tmp_path / f"{table.name}.csv")
        shown = table.data.dropna(axis="columns", how="all")
        numbers = shown.select_dtypes("number").columns
        assert [*written.select_dtypes("number")] == [*numbers]
        pd.testing.assert_frame_equal(written[numbers], shown[numbers], check_dtype=False)


def test_without_selection_there_are_no_chosen_settings(facts):
    assert chosen_table(facts) is None


def test_of_a_long_table_the_page_shows_marked_rows_and_the_file_has_all(tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.report.tables.MOST_ROWS", 3)
    data = pd.DataFrame({"number": range(6)})
    columns = {"number": lambda row: Cell(str(row["number"]), row["number"])}
    table = Table("long", data, columns, lambda row: row["number"] == 4)
    assert table.numeric == (True,)
    assert table.shown == [0, 1, 4]
    table.write(tmp_path)
    assert pd.read_csv(tmp_path / "long.csv")["number"].tolist() == [*range(6)]
    page = Page("x", "", ["One."], sections=[Section("s", "S", tables=[table])]).html()
    assert "Of 6 rows, 3 are here" in page
    assert page.count("<td") == 3
