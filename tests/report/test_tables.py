"""Tables of the report, held to the summary and the records."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mkldist.analysis.summary import TO_TRY
from mkldist.core.metrics import METRICS
from mkldist.report.page import Page, Section
from mkldist.report.sentences import Facts, answer_sentences, answers_of
from mkldist.report.tables import (
    Cell,
    Table,
    answers_table,
    certificates_table,
    chosen_table,
    confusion_table,
    data_table,
    failures_table,
    p_values,
    pairs_table,
    results_tables,
    stability_table,
)


def test_results_have_a_row_a_setting_and_mark_the_best(facts):
    (table,) = results_tables(facts)
    assert len(table.rows) == len(facts.summary)
    assert table.headings == (
        "dataset", "method", "test error % [95 %]", "AUC [95 %]", "active kernels", "seconds",
        "largest gap", "failed runs", "parameters",
    )  # fmt: skip
    assert sum(table.marks) == facts.summary["best"].sum() == 2
    errors = [row[2].key for row in table.rows]
    ordered = facts.summary.sort_values(["dataset", "test_error_mean"])
    assert errors == pytest.approx(ordered["test_error_mean"].tolist())
    assert table.marks[0]
    first = ordered.iloc[0]
    mean, low, high = (100 * first[f"test_error_{name}"] for name in ("mean", "low", "high"))
    assert table.rows[0][2].text == f"{mean:.2f} [{low:4.1f}, {high:4.1f}] *"


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
    cell = p_values("p")
    assert cell({"p": value}) == Cell(text, value)
    assert cell({"p": float("nan")}).key is None


def test_stability_has_a_row_a_method(finished):
    table = stability_table(finished.stability)
    assert [row[0].text for row in table.rows] == ["level", "simplemkl", "uniform"]
    both = pd.concat([finished.stability, finished.stability.assign(bank="another")])
    table = stability_table(both)
    assert table.headings[:2] == ("bank", "method")
    assert len({tuple(cell.text for cell in row[:2]) for row in table.rows}) == 6


def test_files_of_tables_hold_numbers(facts, tmp_path):
    for table in (
        *results_tables(facts),
        pairs_table(facts.pairs),
        stability_table(facts.stability),
    ):
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


def test_the_answer_is_the_least_mean_loss_with_its_interval_and_the_next(finished):
    (row,) = answers_of(finished).to_dict("records")
    (compared,) = finished.compared
    means = compared.losses.mean().sort_values()
    assert [row["name"], row["second"]] == means.index[:2].tolist()
    assert row["mean"] == pytest.approx(means.iloc[0])
    assert row["second_mean"] == pytest.approx(means.iloc[1])
    assert 0.0 <= row["low"] < row["mean"] < row["high"] <= 1.0
    assert row["difference"] == pytest.approx(means.iloc[0] - means.iloc[1])
    assert row["difference_low"] <= row["difference"] <= row["difference_high"]
    pairs = finished.pairs.set_index(["first", "second"])["p_holm"]
    pair = {row["name"], row["second"]}
    assert row["p_holm"] == pytest.approx(pairs[[{*one} == pair for one in pairs.index]].item())
    (best,) = answer_sentences(finished, answers_of(finished))
    assert METRICS["error"].text(row["mean"], row["low"], row["high"]) in best
    assert f"{100 * row['difference']:+.2f} [" in best


def test_where_nothing_beats_a_constant_the_answer_says_so_and_what_to_try(finished):
    answers = answers_of(finished).assign(no_better=True, constant=0.2611)
    best, *advice = answer_sentences(finished, answers)
    assert "26.11 %" in best
    assert advice == [*TO_TRY["classification"]]
    _, *advice = answer_sentences(finished, answers.assign(metric="rmse"))
    assert advice == [*TO_TRY["regression"]]


def test_methods_that_are_alike_on_every_split_have_no_test(finished):
    alike = answers_of(finished).assign(difference=0.0, difference_low=0.0, difference_high=0.0)
    assert "no test applies" in answer_sentences(finished, alike.assign(p_holm=np.nan))[0]
    assert "p = " in answer_sentences(finished, answers_of(finished))[0]


def test_a_method_that_beats_a_constant_is_before_one_that_does_not(finished):
    first = answers_of(finished)["name"].item()
    facts = replace(finished)
    facts.__dict__["summary"] = finished.summary.assign(
        no_better=finished.summary["method"] == first
    )
    (row,) = answers_of(facts).to_dict("records")
    (compared,) = finished.compared
    assert row["name"] == compared.losses.mean().sort_values().index[1]
    assert not row["no_better"]


def test_of_several_data_sets_the_table_and_the_first_sentences_have_each(facts):
    answers = answers_of(facts)
    table = answers_table(answers.assign(no_better=[True, False]))
    assert [row[0].text for row in table.rows] == facts.datasets
    assert table.marks == [False, True]
    assert [row[2].key for row in table.rows] == pytest.approx(answers["mean"].tolist())
    told = answer_sentences(facts, answers)
    for name, dataset, sentence in zip(answers["name"], facts.datasets, told, strict=True):
        assert sentence.startswith(f"On {dataset}, {name} ")
    assert answer_sentences(facts, pd.concat([answers] * 3))[-1].endswith("has 3 more data sets.")


def test_a_method_does_not_win_by_splits_that_another_lacks(finished):
    [compared] = finished.compared
    one, *others, other = compared.losses
    losses = compared.losses.assign(**dict.fromkeys([one, *others], 0.3), **{other: 0.4})
    losses[one] = losses[one].where(losses.index == losses.index[0], 0.0)
    losses.loc[losses.index[0], one] = np.nan  # 0 on all splits but the hardest
    facts = replace(finished)
    facts.__dict__["compared"] = [replace(compared, losses=losses)]
    assert answers_of(facts)["name"].tolist() == others[:1]
    losses.loc[losses.index[1], [*others, other]] = np.nan
    facts.__dict__["compared"] = [replace(compared, losses=losses)]
    assert answers_of(facts).empty
    assert len(answer_sentences(facts, answers_of(facts))) == 1


def test_the_data_are_those_of_the_results(finished):
    tree = finished.tree.copy()
    tree.attrs["data"] = json.dumps(
        {
            "heart": {
                "rows": 270, "features": 13, "missing": 17, "classes": {"no": 150, "yes": 120},
                "views": {"blood": 8, "scan": 5}, "matrices": {"genes": 3},
                "weights": "balanced classes",
            }
        }
    )  # fmt: skip
    table = data_table(Facts(tree, finished.status))
    headings = ("dataset", "rows", "features", "classes", "missing cells", "views", "weights")
    assert table.headings == headings
    (row,) = table.rows
    assert [cell.text for cell in row] == [
        "heart", "270", "13", "no: 150, yes: 120", "17",
        "blood: 8 features, scan: 5 features, genes: 3 matrices", "balanced classes",
    ]  # fmt: skip
    assert data_table(finished).rows == []


def test_the_confusion_matrix_sums_over_the_splits():
    counts = np.array([[[8, 2], [1, 9]], [[7, 3], [0, 10]]], dtype=float)
    names = {"class_name": ["no", "yes"], "predicted": ["no", "yes"]}
    runs = xr.Dataset({"confusion": (("split", "class_name", "predicted"), counts)}, names)
    place = {"dataset": "heart", "method": "level"}
    table = confusion_table(SimpleNamespace(data=runs, place=place))
    assert [[cell.text for cell in row[:3]] for row in table.rows] == [
        ["no", "15", "5"],
        ["yes", "1", "19"],
    ]
    assert [row[3].key for row in table.rows] == pytest.approx([0.75, 0.95])
    assert confusion_table(SimpleNamespace(data=xr.Dataset(), place=place)) is None


@pytest.mark.parametrize("of", ["finished", "facts"])
def test_the_runs_of_the_best_are_those_of_its_mean(of, request):
    facts = request.getfixturevalue(of)
    for row in answers_of(facts).to_dict("records"):
        runs = facts.chosen(row["dataset"], row["name"]).data
        assert set(runs["test_error"].dims) == {"split"}
        pd.testing.assert_series_equal(
            pd.Series(runs["test_error"].to_numpy()).dropna(),
            next(c for c in facts.compared if c.dataset == row["dataset"])
            .losses[row["name"]].dropna().reset_index(drop=True),
            check_names=False, check_index=False,
        )  # fmt: skip
