"""Numbers of active kernels over data sets, held to scipy and to the R-MKL paper."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from mkldist.analysis.comparison import active_kernels, compare_active_kernels
from tests.analysis.two_sweeps import made

PUBLISHED = Path(__file__).parents[2] / "sweeps" / "papers" / "published"


def published(table: str) -> pd.DataFrame:
    numbers = pd.read_csv(PUBLISHED / f"{table}.csv").query("metric == 'active_kernels'")
    return numbers.pivot(index="data set", columns="method", values="mean")


@pytest.mark.parametrize(("table", "n_skm"), [("rmkl_table2", 9), ("rmkl_table3", 8)])
def test_no_two_methods_of_the_paper_differ_in_their_numbers_of_kernels(table, n_skm):
    counts = published(table)
    found = compare_active_kernels(counts).set_index(["first", "second"])
    assert len(found) == 3
    assert (found["p_value"] > 0.05).all()
    both = counts[["rmkl", "skm"]].dropna()  # SKM failed on colon in Table 3
    row = found.loc[("rmkl", "skm")]
    assert row["n_datasets"] == len(both) == n_skm
    assert row["p_value"] == pytest.approx(stats.ttest_rel(both["rmkl"], both["skm"]).pvalue)
    assert row["mean_difference"] == pytest.approx((both["rmkl"] - both["skm"]).mean())


def test_a_difference_that_all_data_sets_show_is_found():
    sparse, dense = [1.0, 2.0, 3.0, 2.0, 4.0], [18.0, 19.0, 17.0, 20.0, 18.0]
    (row,) = compare_active_kernels(pd.DataFrame({"a": sparse, "b": dense})).itertuples()
    mean = sum(a - b for a, b in zip(sparse, dense, strict=True)) / 5
    assert row.mean_difference == mean
    assert row.p_value == row.p_holm < 0.001


def test_equal_differences_have_no_test_and_none_at_all_a_p_value_of_one():
    counts = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0], "c": [1.0, 2.0], "d": [5.0, math.nan]})
    found = compare_active_kernels(counts).set_index(["first", "second"])["p_value"]
    assert math.isnan(found["a", "b"])
    assert found["a", "c"] == 1.0
    assert ("a", "d") not in found.index


def test_numbers_are_means_over_the_complete_runs(tmp_path):
    errors = {("heart", "level"): [0.1, 0.2], ("wdbc", "level"): [0.1, math.nan]}
    errors |= {("heart", "skm"): [0.1, 0.2], ("wdbc", "skm"): [math.nan, math.nan]}
    active = {("heart", "level"): 2, ("wdbc", "level"): 5}
    made(tmp_path, errors, split_names=("s0", "s1"), active=active)
    found = active_kernels(tmp_path)
    assert found["level"].to_dict() == {"heart": 2.0, "wdbc": 5.0}
    assert found.loc["heart", "skm"] == 3.0
    assert math.isnan(found.loc["wdbc", "skm"])
    assert active_kernels(tmp_path, ["skm"]).columns.tolist() == ["skm"]
