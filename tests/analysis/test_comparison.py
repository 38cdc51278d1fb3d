"""Pairs of methods compared on splits and points; sweeps that were run twice."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from mkldist import analysis
from mkldist.analysis.comparison import (
    ROPE,
    PointCounts,
    active_kernels,
    agreement,
    compare_active_kernels,
    compare_results,
    compare_sweeps,
    mcnemar_points,
    over_data_sets,
    point_counts,
)
from mkldist.analysis.pairing import Pair
from mkldist.errors import InputError
from tests.analysis.made_up_pairs import pair
from tests.analysis.two_sweeps import N_TEST, N_TRAIN, by_name, level_and_uniform, made

LEVEL = [0.10, 0.20, 0.30, 0.20, 0.15]
UNIFORM = [0.20, 0.22, 0.35, 0.18, 0.30]


def errors(n_datasets: int = 1) -> dict[tuple[str, str], list[float]]:
    """Return errors on data sets on which level is a little better from one to the next."""
    found = {}
    for number in range(n_datasets):
        found[f"d{number}", "level"] = [value - 0.01 * number for value in LEVEL]
        found[f"d{number}", "uniform"] = UNIFORM
    return found


@pytest.fixture(scope="module")
def one_data_set(tmp_path_factory):
    results = made(tmp_path_factory.mktemp("one"), errors())
    return compare_results(results, results, level_and_uniform)


def test_a_pair_has_the_corrected_interval_test_and_posterior(one_data_set):
    (found,) = one_data_set.pairs
    differences = np.subtract(LEVEL, UNIFORM)
    scale = differences.std(ddof=1) * math.sqrt(1 / 5 + N_TEST / N_TRAIN)
    t = stats.t(4, loc=differences.mean(), scale=scale)
    assert found.losses.difference == pytest.approx(differences.mean())
    assert (found.losses.first, found.losses.second) == pytest.approx((0.19, 0.25))
    assert (found.losses.low, found.losses.high) == pytest.approx(t.interval(0.95))
    statistic = abs(differences.mean()) / scale
    assert found.p_value == pytest.approx(2 * stats.t.sf(statistic, 4))
    assert found.posterior == pytest.approx((t.cdf(-ROPE), t.cdf(ROPE) - t.cdf(-ROPE), t.sf(ROPE)))
    assert (found.first, found.second, found.n_splits) == ("level", "uniform", 5)
    assert found.first_setting == {"C": 1.0}
    assert "objective" not in found.measures


def test_a_naive_test_would_be_too_sure(one_data_set):
    naive = stats.ttest_rel(LEVEL, UNIFORM).pvalue
    assert one_data_set.pairs[0].p_value > naive


def test_a_wide_region_of_equivalence_holds_all_of_the_posterior(tmp_path):
    results = made(tmp_path, errors())
    (found,) = compare_results(results, results, level_and_uniform, rope=10.0).pairs
    assert found.posterior.equivalent == pytest.approx(1.0, abs=1e-4)


def test_p_values_of_several_data_sets_are_adjusted_by_holm(tmp_path):
    results = made(tmp_path, errors(2))
    pairs = compare_results(results, results, level_and_uniform).pairs
    p_values = sorted(one.p_value for one in pairs)
    expected = np.minimum(1.0, np.maximum.accumulate(np.array([2, 1]) * p_values))
    assert sorted(one.p_holm for one in pairs) == pytest.approx(expected)


def test_one_split_has_no_test(tmp_path):
    found = {key: row[:1] for key, row in errors().items()}
    results = made(tmp_path, found, split_names=("s0",))
    (found,) = compare_results(results, results, level_and_uniform).pairs
    assert found.losses.difference == pytest.approx(-0.1)
    assert np.isnan([found.p_value, found.losses.low, found.posterior.equivalent]).all()


def test_equal_differences_by_chance_make_nothing_certain(tmp_path):
    found = {("heart", "level"): [0.10, 0.20, 0.15], ("heart", "uniform"): [0.15, 0.25, 0.20]}
    results = made(tmp_path, found, split_names=("s0", "s1", "s2"))
    (shifted,) = compare_results(results, results, level_and_uniform).pairs
    assert shifted.losses.difference == pytest.approx(-0.05)
    assert np.isnan([shifted.p_value, shifted.losses.low, shifted.posterior.below]).all()
    (same, _) = compare_results(results, results, by_name).pairs
    assert (same.losses.low, same.losses.high, same.p_value) == (0.0, 0.0, 1.0)
    assert same.posterior.equivalent == 1.0


@pytest.mark.parametrize("n_datasets", [5, 6])
def test_data_sets_together_are_tested_only_where_the_test_can_find_something(n_datasets):
    differences = [-0.06 - 0.01 * number for number in range(n_datasets)]
    pairs = [pair(0.3 + d, 0.3, dataset=f"d{n}") for n, d in enumerate(differences)]
    (over,) = over_data_sets(pairs)
    assert over.datasets == tuple(f"d{number}" for number in range(n_datasets))
    assert over.median_difference == pytest.approx(np.median(differences))
    if n_datasets == 5:
        assert math.isnan(over.p_value)
    else:
        assert over.p_value == pytest.approx(stats.wilcoxon(differences).pvalue)
        assert over.p_holm == over.p_value < 0.05
    assert over.posterior.below > 0.99


def test_losses_of_other_units_are_compared_as_shares_of_the_second():
    pairs = [pair(0.9 * size, size, dataset=f"d{size:g}", loss="rmse") for size in (1.0, 50.0, 4e6)]
    (over,) = over_data_sets(pairs)
    assert over.median_difference == pytest.approx(-0.1)
    assert over_data_sets(pairs[:1]) == ()


def test_sizes_of_one_data_set_are_not_data_sets():
    sizes = [
        pair(0.2 - 0.01 * n, 0.3, dataset=f"wdbc-{n}", series="wdbc", n_train=100.0 * n)
        for n in range(1, 7)
    ]
    assert over_data_sets(sizes) == ()
    (over,) = over_data_sets([*sizes, pair(0.1, 0.3)])
    assert over.datasets == ("wdbc-6", "heart")
    assert over.median_difference == pytest.approx(np.median([-0.16, -0.2]))


@pytest.mark.slow
def test_one_method_in_two_sweeps_is_compared_on_the_splits_of_both(tmp_path):
    first = made(tmp_path / "a", errors())
    changed = {key: row[::-1][:3] for key, row in errors().items()}
    second = made(tmp_path / "b", changed, split_names=("s4", "s3", "s2"))
    found = compare_results(first, second, by_name)
    assert [one.first for one in found.pairs] == ["level", "uniform"]
    for one in found.pairs:
        assert (one.n_splits, one.left_out) == (3, (2, 0))
        assert one.losses.difference == pytest.approx(0.0)
        assert one.equal_settings is not None
        assert one.measures["objective"].difference == 0.0


FIRST, SECOND = [0.1, 0.2, 0.3], [0.2, 0.25, 0.2]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweeps")
    errors = {("heart", "level"): FIRST, ("heart", "uniform"): SECOND}
    for name in ("one", "two"):
        made(folder / name, errors, split_names=("s0", "s1", "s2"), banks=("a", "b"))
    return folder


@pytest.mark.slow
def test_methods_of_two_sweeps_are_compared_bank_by_bank(folders):
    found = analysis.compare_sweeps(str(folders / "one"), folders / "two")
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        (name, name) for name in ("a/level", "a/uniform", "b/level", "b/uniform")
    ]
    assert all(pair.losses.difference == 0.0 for pair in found.pairs)


def test_two_methods_of_a_sweep_have_the_difference_of_their_errors(folders):
    found = compare_sweeps(folders / "one", methods=("level", "b/uniform"), rope=0.5)
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("a/level", "b/uniform"),
        ("b/level", "b/uniform"),
    ]
    for one in found.pairs:
        assert one.losses.difference == pytest.approx(np.mean(FIRST) - np.mean(SECOND))
        assert one.rope == 0.5


def test_one_sweep_needs_methods(folders):
    with pytest.raises(InputError, match="found one sweep without methods; expected two sweeps"):
        compare_sweeps(folders / "one")


ERRORS = {("heart", "level"): [0.1] * 3, ("heart", "uniform"): [0.2] * 3}
SPLITS = ("s0", "s1", "s2")


def counts(folder, level, uniform) -> PointCounts | None:
    wrong = {"level": level, "uniform": uniform}
    results = made(folder, ERRORS, split_names=SPLITS, wrong=wrong)
    return compare_results(results, results, level_and_uniform).pairs[0].points


def test_points_are_counted_and_p_values_adjusted_for_the_splits(tmp_path):
    found = counts(tmp_path, [[], [0, 1], [5]], [range(12), [1, 2], [5]])
    # Split 0: level alone has 12 right. Split 1: one each. Split 2: both miss the same point.
    assert found is not None
    assert (found.first_better, found.second_better, found.undecided) == (1, 0, 2)
    assert (found.first_only, found.second_only) == (13, 1)
    assert found.smallest_p == pytest.approx(3 * stats.binomtest(12, 12).pvalue)


def test_the_second_method_may_be_better(tmp_path):
    found = counts(tmp_path, [range(15)] * 3, [[]] * 3)
    assert found is not None
    assert (found.first_better, found.second_better, found.undecided) == (0, 3, 0)


def test_without_predictions_there_are_no_counts(tmp_path):
    results = made(tmp_path, ERRORS, split_names=SPLITS)
    assert compare_results(results, results, level_and_uniform).pairs[0].points is None


def side(labels, test_rows, values, n_test, loss="test_error") -> Any:
    """Return a method with predictions on one split."""
    record = SimpleNamespace(test_rows=np.array(test_rows), decision_values=np.array(values))
    coords = {"label": ("sample", np.array(labels, float)), "n_test": ("split", [n_test])}
    return SimpleNamespace(records=[record], data=xr.Dataset(coords=coords), loss=loss)


def test_of_several_classes_a_tie_goes_to_the_most_frequent_in_training():
    # Rows 5 to 8 are scored. Of the training rows, three are of class 2, one each of 0 and 1; over
    # all rows class 0 is the most frequent.
    labels = [2, 2, 2, 0, 1, 2, 0, 0, 0]
    tie_of_0_and_2 = [1.0, 0.0, 1.0]
    second = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    first = [tie_of_0_and_2, tie_of_0_and_2, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    sides = [side(labels, [5, 6, 7, 8], np.transpose(rows), 4) for rows in (first, second)]
    found = point_counts(Pair(*sides, splits=((0, 0),)))
    # The first predicts 2, 2, 0, 2 and the second 2, 0, 0, 1 where 2, 0, 0, 0 is right.
    assert found is not None
    assert (found.first_only, found.second_only) == (0, 1)


def test_classes_without_training_rows_are_counted():
    labels = [1, 0, 0, 2]  # class 2 is not in the training rows
    sides = [side(labels, [3], np.array([row]).T, 1) for row in ([0, 0, 1], [0, 1, 0])]
    found = point_counts(Pair(*sides, splits=((0, 0),)))
    assert found is not None
    assert (found.first_only, found.second_only) == (1, 0)


@pytest.mark.parametrize(("loss", "only"), [("test_error", (1, 0)), ("unlabelled_error", (0, 2))])
def test_unlabelled_rows_stand_after_the_test_rows(loss, only):
    labels = [1, -1, 1, 1, 1, 1]
    values = ([1.0, -1.0, -1.0], [-1.0, 1.0, 1.0])  # of the rows 3, 4, 5; the first is a test row
    sides = [side(labels, [3, 4, 5], row, 1, loss) for row in values]
    found = point_counts(Pair(*sides, splits=((0, 0),)))
    assert found is not None
    assert (found.first_only, found.second_only) == only


RMKL = ("skm", "simplemkl", "rmkl")
# Do et al. (2009): points of SKM, SimpleMKL and R-MKL.  In Table 3, SKM failed on colon.
TABLE_2 = {
    "ionosphere": (1.5, 1.5, 0), "liver": (1.5, 1.5, 0), "sonar": (1, 1, 1), "wdbc": (1, 0, 2),
    "wpbc": (1, 1, 1), "musk1": (1, 0, 2), "colon": (1, 1, 1), "cns": (1, 1, 1),
    "female": (1, 0, 2), "leukemia": (0.5, 0.5, 2),
}  # fmt: skip
TABLE_3 = dict.fromkeys(TABLE_2, (1, 1, 1)) | {"colon": (math.nan, 1.5, 1.5)}


def repeated(folder, table):
    """Return results in which each rank of a method on a data set costs it 10 wrong points."""
    errors, wrong = {}, {}
    for dataset, points in table.items():
        known = sorted({one for one in points if not math.isnan(one)}, reverse=True)
        for method, own in zip(RMKL, points, strict=True):
            failed = math.isnan(own)
            errors[dataset, method] = [math.nan if failed else 0.3]
            wrong[dataset, method] = [range(0 if failed else 10 * known.index(own))]
    return made(folder, errors, split_names=("s0",), wrong=wrong)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "totals"), [(TABLE_2, (10.5, 7.5, 12)), (TABLE_3, (9, 10.5, 10.5))]
)
def test_the_points_of_the_paper_add_up_to_its_totals(tmp_path, table, totals):
    found = mcnemar_points(repeated(tmp_path, table))
    for dataset, points in table.items():
        expected = [0 if math.isnan(one) else one for one in points]  # a failure has no point
        assert found.loc[dataset, list(RMKL)].tolist() == expected
    assert found.sum()[list(RMKL)].tolist() == list(totals)


def points(folder, level, uniform, **options):
    errors = {("heart", method): [0.1] * len(level) for method in ("level", "uniform")}
    names = [f"s{number}" for number in range(len(level))]
    wrong = {"level": level, "uniform": uniform}
    results = made(folder, errors, split_names=names, wrong=wrong, **options)
    return mcnemar_points(results.path).loc["heart"].to_dict()


def test_folds_of_a_repetition_are_one_test(tmp_path):
    # Three points in a fold are too few to tell, six in both folds are enough.
    assert stats.binomtest(3, 3).pvalue > 0.05 > stats.binomtest(6, 6).pvalue
    level, uniform = [[], []], [[0, 1, 2], [3, 4, 5]]
    assert points(tmp_path / "two", level, uniform, folds=2) == {"level": 1.0, "uniform": 0.0}
    assert points(tmp_path / "one", level, uniform) == {"level": 0.5, "uniform": 0.5}


def test_points_are_averaged_over_repetitions(tmp_path):
    level = [[], [], [], [0]]
    uniform = [range(6), [], [1], [2]]  # level is better in the first of four repetitions alone
    assert points(tmp_path, level, uniform) == {"level": 0.625, "uniform": 0.375}


def test_methods_are_compared_on_the_same_bank_and_as_asked(tmp_path):
    errors = {("heart", method): [0.1] for method in ("level", "uniform", "skm")}
    wrong = {"level": [[]], "uniform": [range(9)], "skm": [range(9)]}
    results = made(tmp_path, errors, split_names=("s0",), wrong=wrong, banks=("a", "b"))
    found = mcnemar_points(results).loc["heart"]
    assert (found["a/level"], found["b/level"], found["a/skm"]) == (2.0, 2.0, 0.5)
    two = mcnemar_points(results, ["level", "b/skm"])
    assert two.loc["heart", "b/level"] == 1.0
    assert "a/level" not in two


def test_without_predictions_there_are_no_points(tmp_path):
    errors = {("heart", method): [0.1] for method in ("level", "uniform")}
    assert mcnemar_points(made(tmp_path, errors, split_names=("s0",))).empty


def test_no_function_has_the_name_of_a_module_which_would_hide_it():
    functions = [name for name in dir(analysis) if callable(getattr(analysis, name))]
    modules = [name for name in functions if find_spec(f"mkldist.analysis.{name}")]
    assert modules == []


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


ERRORS_TWICE = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2, 0.25, 0.2]}
SPLITS_TWICE = ("s0", "s1", "s2")


@pytest.fixture
def tree(tmp_path):
    def of(name, errors=ERRORS_TWICE, **changes):
        return made(tmp_path / name, errors, split_names=SPLITS_TWICE, **changes).tree

    return of


def test_equal_results_are_equal_to_the_bit(tree):
    found = agreement(tree("a"), tree("b"))
    assert (found.n_runs, found.n_equal, found.n_alone) == (12, 12, (0, 0))
    assert found.objective_difference == 0.0
    assert found.loss_differences == {"test_error": 0.0}
    assert found.holds


def test_differences_within_the_certificates_agree(tree):
    changed = ERRORS_TWICE | {("heart", "level"): [0.1, 0.2, 0.35]}
    found = agreement(tree("a", gap=0.01), tree("b", changed, objective=10.05, gap=0.01))
    assert (found.n_runs, found.n_equal) == (12, 0)
    assert found.objective_difference == pytest.approx(0.05 / 10.05)
    assert found.loss_differences["test_error"] == pytest.approx(0.05)
    assert found.holds


def test_intervals_without_a_common_point_contradict_each_other(tree):
    found = agreement(tree("a", gap=0.01), tree("b", objective=10.2, gap=0.01))
    assert len(found.contradictions) == 12
    assert found.contradictions[0] == "heart/xu2008/level, split 0, C 1.0"
    assert not found.holds


def test_runs_that_one_lacks_are_counted(tree):
    failed = ERRORS_TWICE | {("heart", "level"): [0.1, np.nan, 0.3]}
    found = agreement(tree("a"), tree("b", failed))
    assert (found.n_runs, found.n_alone) == (10, (2, 0))
    assert not found.holds
