"""The first part of the page: the answer, the data, and what the best method predicts."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mkldist.analysis.summary import TO_TRY
from mkldist.core.metrics import METRICS
from mkldist.report.answer import answer_sentences, answers_of, answers_table
from mkldist.report.facts import Facts
from mkldist.report.tables import confusion_table, data_table


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
    best, following = answer_sentences(finished, answers_of(finished))
    assert METRICS["error"].text(row["mean"], row["low"], row["high"]) in best
    assert f"{100 * row['difference']:+.2f} [" in following


def test_where_nothing_beats_a_constant_the_answer_says_so_and_what_to_try(finished):
    answers = answers_of(finished).assign(no_better=True, constant=0.2611)
    best, advice = answer_sentences(finished, answers)
    assert "26.11 %" in best
    assert advice == " ".join(TO_TRY)


def test_methods_that_are_alike_on_every_split_have_no_test(finished):
    alike = answers_of(finished).assign(difference=0.0, difference_low=0.0, difference_high=0.0)
    assert "p = " not in answer_sentences(finished, alike)[1]
    assert "p = " in answer_sentences(finished, answers_of(finished))[1]


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


def test_of_several_data_sets_a_table_has_each_and_sentences_count(facts):
    answers = answers_of(facts)
    table = answers_table(answers.assign(no_better=[True, False]))
    assert [row[0].text for row in table.rows] == facts.datasets
    assert table.marks == [False, True]
    assert [row[2].key for row in table.rows] == pytest.approx(answers["mean"].tolist())
    assert answers_table(answers.head(1)).rows == []
    won, told = answer_sentences(facts, answers)
    assert all(name in won for name in answers["name"])
    assert f"{(answers['p_holm'] < 0.05).sum()} of 2" in told


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
