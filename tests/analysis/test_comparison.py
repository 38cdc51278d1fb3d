"""Pairs of methods compared on splits and points; sweeps that were run twice."""

import json
import math
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from mkldist import analysis
from mkldist.analysis.comparison import (
    Pair,
    Results,
    agreement,
    compare_pair,
    compare_results,
    compare_sweeps,
    matching,
    over_data_sets,
    paired,
)
from mkldist.analysis.losses import (
    ROPE,
    Compared,
    at_best,
    compare_methods,
    compare_over_data_sets,
    compared_losses,
    inference,
    losses_at_best,
    only_shifted,
    overlap_of,
    pairs_of,
    ranks_of,
)
from mkldist.analysis.statistics import Overlap
from mkldist.core.metrics import NOTHING, p_value_text
from mkldist.errors import InputError
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.spec.model import SelectionSpec
from tests.analysis.made_up import (
    N_TEST,
    N_TRAIN,
    by_name,
    level_and_uniform,
    made,
    pair,
)
from tests.report.made_up import N_SPLITS, made_up
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

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


def test_a_wide_region_of_equivalence_holds_all_of_the_posterior(tmp_path):
    results = made(tmp_path, errors())
    (found,) = compare_results(results, results, level_and_uniform, rope=10.0).pairs
    assert found.posterior.equivalent == pytest.approx(1.0, abs=1e-4)
    assert found.p_value > stats.ttest_rel(LEVEL, UNIFORM).pvalue  # which is too sure


def test_p_values_of_several_data_sets_are_adjusted_by_holm(tmp_path):
    results = made(tmp_path, errors(2))
    pairs = compare_results(results, results, level_and_uniform).pairs
    p_values = sorted(one.p_value for one in pairs)
    expected = np.minimum(1.0, np.maximum.accumulate(np.array([2, 1]) * p_values))
    assert sorted(one.p_holm for one in pairs) == pytest.approx(expected)


def test_copies_of_a_test_on_other_banks_count_once(tmp_path):
    results = made(tmp_path, errors(), banks=("a", "b"))
    pairs = compare_results(results, results, level_and_uniform).pairs
    assert len(pairs) == 4  # each bank's level with each bank's uniform, whose errors are equal
    assert [one.p_holm for one in pairs] == [one.p_value for one in pairs]
    table = compare_methods(results.tree)
    differ = table[table["p_value"] < 1]
    assert (differ["p_holm"] == np.minimum(1, 3 * differ["p_value"])).all()


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
    assert np.isnan([same.losses.low, same.losses.high]).all()
    assert same.p_value == 1.0
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


def test_no_function_has_the_name_of_a_module_which_would_hide_it():
    functions = [name for name in dir(analysis) if callable(getattr(analysis, name))]
    modules = [name for name in functions if find_spec(f"mkldist.analysis.{name}")]
    assert modules == []


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


FIRST_OF_PAIRING = {("heart", "level"): [0.1, 0.2, 0.3, 0.2, 0.1], ("heart", "uniform"): [0.2] * 5}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return made(tmp_path_factory.mktemp("first"), FIRST_OF_PAIRING)


def test_methods_of_one_tree_are_paired_split_by_split_at_their_best_setting(first):
    (pair,), unpaired = paired(first, first, level_and_uniform)
    assert unpaired == []
    assert isinstance(pair, Pair)
    assert pair.splits == tuple((j, j) for j in range(5))
    np.testing.assert_allclose(pair.first.losses, FIRST_OF_PAIRING["heart", "level"])
    assert pair.first.settings(range(5)) == {"C": 1.0}


def test_splits_of_two_trees_are_paired_by_their_rows_and_not_by_their_positions(first, tmp_path):
    names = ("s3", "new", "s0")
    second = made(
        tmp_path, {key: row[:3] for key, row in FIRST_OF_PAIRING.items()}, split_names=names
    )
    pairs, unpaired = paired(first, second, by_name)
    assert unpaired == []
    assert [pair.splits for pair in pairs] == [((0, 2), (3, 0))] * 2


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data": "other data"}, "their data differ (fingerprints the data and other data)"),
        (
            {"split_names": ("a", "b", "c", "d", "e")},
            "their splits differ: no split has the same rows in both",
        ),
    ],
    ids=["data", "splits"],
)
def test_other_rows_are_not_paired(first, tmp_path, changes, reason):
    second = made(tmp_path, FIRST_OF_PAIRING, **changes)
    pairs, unpaired = paired(first, second, by_name)
    assert pairs == []
    assert [one.reason for one in unpaired] == [reason] * 2
    assert unpaired[0].place == "heart, level"


def test_two_trees_need_the_records_that_tell_their_rows(first, tmp_path):
    second = made(tmp_path / "second", FIRST_OF_PAIRING)
    (tmp_path / "second" / "records.journal").unlink()
    pairs, unpaired = paired(first, second, by_name)
    assert pairs == []
    assert "holds no records, which tell if data and splits are the same" in unpaired[0].reason


def test_data_sets_of_one_tree_alone_take_no_part(first, tmp_path):
    second = made(
        tmp_path, {("wdbc", method): row for (_, method), row in FIRST_OF_PAIRING.items()}
    )
    assert paired(first, second, by_name) == ([], [])


def test_validation_chooses_the_setting_of_each_split(tmp_path):
    plan = made_up_plan({"level": {"C": [1.0, 10.0]}}, n_splits=3)
    plan = replace(plan, spec=plan.spec.model_copy(update={"selection": SelectionSpec()}))
    validation = {(0, 1.0): 0.1, (0, 10.0): 0.2, (1, 1.0): 0.3, (1, 10.0): 0.2, (2, 1.0): 0.0,
                  (2, 10.0): 0.1}  # fmt: skip
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        error = 0.5 - validation[run.split, run.params["C"]]  # test errors would choose the other
        scores = {"test_error": error, "validation_error": 0.5 - error}
        store.append([replace(made_up_record(run), scores=scores)])
    facts = made_up_facts(plan, {"level": {"C": [1.0, 10.0]}})
    lay_out(tmp_path, plan, facts)
    results = Results.of(str(tmp_path))
    assert results.validated
    chosen = results.chosen(results.nodes()[0], "test_error")
    np.testing.assert_allclose(chosen.losses, [0.4, 0.3, 0.5])
    assert chosen.settings(range(3)) == {"C": [1.0, 10.0, 1.0]}


def test_methods_match_by_name_and_never_with_themselves(first):
    level, uniform = first.places()
    by_names = matching(first, first, ("level", "uniform"))
    assert by_names(level, uniform)
    assert not by_names(uniform, level)
    assert not matching(first, first, ("level", "xu2008/level"))(level, level)
    assert matching(first, first)(level, level)


ERRORS_OF_PAIRING = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2] * 3}
SPLITS_OF_PAIRING = ("s0", "s1", "s2")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "comparable"),
    [("far", 0.5, True), ("stop", "point", True), ("cache", 1, False), ("norm", 2.0, False)],
)
def test_settings_that_steer_the_solver_alone_leave_the_problem(tmp_path, name, value, comparable):
    first = made(tmp_path / "a", ERRORS_OF_PAIRING, split_names=SPLITS_OF_PAIRING)
    second = made(tmp_path / "b", ERRORS_OF_PAIRING, split_names=SPLITS_OF_PAIRING)
    pair, _ = paired(first, second, by_name)[0]
    node = pair.second.node
    settings = json.loads(node.attrs.get("settings", "{}"))
    node.attrs["settings"] = json.dumps({**settings, name: value})
    assert ("objective" in compare_pair(pair).measures) == comparable


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    return made_up(tmp_path_factory.mktemp("sweep"), damaged=False, datasets=("a", "b", "c"))


@pytest.mark.slow
def test_each_method_is_compared_at_its_setting_of_least_mean_loss(facts):
    found = compared_losses(facts.tree)
    assert [compared.dataset for compared in found] == ["a", "b", "c"]
    for compared in found:
        assert not compared.validated
        rows = facts.runs[facts.runs["dataset"] == compared.dataset]
        for method in ("level", "simplemkl", "uniform"):
            own = rows[rows["method"] == method]
            means = own.groupby(["C", "variant"], dropna=False)["test_error"].mean()
            assert compared.losses[method].mean() == pytest.approx(means.min())
        assert compared.overlap.variance_factor(N_SPLITS) == pytest.approx(1 / 5 + 20 / 80)


def test_pairs_have_the_corrected_test(facts):
    table = compare_methods(facts.tree)
    assert len(table) == 9
    row = table.iloc[0]
    losses = compared_losses(facts.tree)[0].losses
    difference = (losses[row["first"]] - losses[row["second"]]).to_numpy()
    plain = stats.ttest_1samp(difference, 0).statistic
    statistic = plain * np.sqrt((1 / 5) / (1 / 5 + 20 / 80))
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(statistic), 4))
    assert row["difference"] == pytest.approx(difference.mean())
    total = row[["first_better", "equivalent", "second_better"]].sum()
    assert total == pytest.approx(1.0)
    for _, some in table.groupby("dataset"):
        assert some["p_holm"].min() == pytest.approx(min(1.0, 3 * some["p_value"].min()))


def test_over_data_sets_means_are_ranked(facts):
    over = compare_over_data_sets(facts.tree)
    assert over.losses.shape == (3, 3)
    ranks = over.losses.rank(axis=1).mean()
    assert over.ranks.mean_ranks.to_dict() == pytest.approx(ranks.to_dict())
    assert len(over.pairs) == 3


def test_methods_without_all_splits_are_not_ranked():
    easy = {"level": [0.3, 0.1, 0.2], "uniform": [0.4, 0.2, 0.3], "align": [np.nan, 0.0, np.nan]}
    tables = [pd.DataFrame(easy), pd.DataFrame(easy).fillna(0.0)]
    failed_all = pd.DataFrame({name: [0.5, np.nan] for name in easy}).iloc[::-1]
    own = [
        Compared(name, name, "test_error", table, Overlap(60, 30), {}, validated=True)
        for name, table in zip("abc", [*tables, failed_all], strict=True)
    ]
    over = ranks_of(own)
    assert over.losses.columns.tolist() == ["level", "uniform"]
    assert over.losses["level"].tolist() == pytest.approx([0.2, 0.2, 0.5])
    assert over.left_out == ("align",)
    nothing = [replace(one, losses=pd.DataFrame({"level": [0.1, np.nan], "uniform": [np.nan, 0.2]}))
               for one in own[:2]]  # fmt: skip
    assert ranks_of(nothing) is None


def of_sizes(facts, names):
    """Return a copy of a tree whose data sets, by name, are sizes of one of the names given."""
    tree = facts.tree.copy()
    for node in tree.subtree:
        if "method" in node.attrs:
            node.attrs["dataset_series"] = names[node.path.split("/")[1]]
    return tree


def test_sizes_of_one_data_set_count_once_by_the_largest(facts):
    tree = of_sizes(facts, {"a": "wdbc", "b": "wdbc", "c": "c"})
    for node in tree["b"].subtree:
        if "n_train" in node.coords:
            node.coords["n_train"] = node.coords["n_train"] + 1
    over = compare_over_data_sets(tree)
    assert over.losses.index.tolist() == ["b", "c"]
    assert compare_over_data_sets(of_sizes(facts, dict.fromkeys("abc", "wdbc"))) is None


def test_equal_differences_on_all_splits_have_no_test():
    table = pd.DataFrame({"level": [0.1, 0.2, 0.3], "uniform": [0.15, 0.25, 0.35]})
    one = Compared("a", "a", "test_error", table, Overlap(60, 30), {}, validated=True)
    (row,) = pairs_of([one]).to_dict("records")
    assert row["difference"] == pytest.approx(-0.05)
    assert np.isnan([row["p_value"], row["p_holm"], row["first_better"]]).all()


def test_losses_of_real_values_are_equivalent_within_a_hundredth_of_the_second():
    losses = np.array([200.0, 210.0, 190.0])
    table = pd.DataFrame({"first": losses + np.array([1.0, -0.5, 0.2]), "second": losses})
    one = Compared("a", "a", "rmse", table, Overlap(60, 30), {}, validated=True)
    (row,) = pairs_of([one]).to_dict("records")
    scale = np.std([1.0, -0.5, 0.2], ddof=1) * np.sqrt(1 / 3 + 0.5)
    t = stats.t(2, loc=0.7 / 3, scale=scale)
    assert row["equivalent"] == pytest.approx(t.cdf(2.0) - t.cdf(-2.0))


def test_one_data_set_is_not_compared_over_data_sets(tmp_path):
    one = made_up(tmp_path, damaged=False, datasets=("a",))
    assert compare_over_data_sets(one.tree) is None


def test_a_setting_does_not_win_by_splits_that_others_lack():
    # C = 1 has all splits, C = 10 is better on the two splits that both have.
    losses = np.array([[0.3, 0.2], [0.3, 0.2], [0.0, np.nan], [0.0, np.nan]])
    state = np.where(np.isnan(losses), "waiting", "complete")
    dims = ("split", "C")
    data = xr.Dataset(
        {"test_error": (dims, losses), "state": (dims, state), "run_id": (dims, state)},
        {"split": np.arange(4), "C": [1.0, 10.0]},
    )
    found = at_best(xr.DataTree(data))
    assert found.C == 10.0
    np.testing.assert_array_equal(losses_at_best(found, "test_error"), losses[:, 1])
    # Without a split that both have, the one of most splits counts.
    apart = np.array([[0.3, np.nan], [0.3, np.nan], [0.3, np.nan], [np.nan, 0.1]])
    data["test_error"] = (dims, apart)
    data["state"] = (dims, np.where(np.isnan(apart), "waiting", "complete"))
    assert at_best(xr.DataTree(data)).C == 1.0


def parts(**sizes: list[int]) -> xr.Dataset:
    return xr.Dataset({name: ("split", values) for name, values in sizes.items()})


def test_the_overlap_is_of_the_mean_sizes_of_the_chosen_splits():
    data = parts(n_train=[60, 70, 200], n_test=[30, 20, 1], n_unlabelled=[5, 5, 5])
    assert overlap_of(data, [0, 1]) == Overlap(65.0, 25.0)
    assert overlap_of(data, [1]) == Overlap(70.0, 20.0, independent=True)
    assert overlap_of(data).n_train == pytest.approx(110.0)


def test_without_test_rows_the_unlabelled_ones_are_the_scored_part():
    data = parts(n_train=[10, 10], n_test=[0, 0], n_unlabelled=[80, 90])
    assert overlap_of(data) == Overlap(10.0, 85.0)


def test_the_test_is_the_corrected_one():
    differences = np.array([0.1, 0.3, -0.05])
    scale = differences.std(ddof=1) * np.sqrt(1 / 3 + 0.5)
    p_value, posterior = inference(differences, Overlap(60, 30), 0.02)
    assert p_value == pytest.approx(2 * stats.t.sf(differences.mean() / scale, 2))
    assert posterior.above == pytest.approx(stats.t.sf((0.02 - differences.mean()) / scale, 2))


@pytest.mark.parametrize("differences", [[0.1], [0.1, 0.1, 0.1], [-0.3, -0.3]])
def test_nothing_is_tested_without_a_spread(differences):
    p_value, posterior = inference(np.array(differences), Overlap(60, 30), 0.02)
    assert np.isnan([p_value, *posterior]).all()


def test_no_difference_anywhere_is_equivalent_and_not_a_shift():
    assert not only_shifted(np.zeros(3))
    assert only_shifted(np.full(3, 0.1))
    assert inference(np.zeros(3), Overlap(60, 30), 0.02) == (1.0, (0.0, 1.0, 0.0))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "< 0.001"), (9.9e-4, "< 0.001"), (1e-3, "0.001"), (1.0, "1.000"), (math.nan, NOTHING)],
)
def test_p_values_have_three_decimals(value, text):
    assert p_value_text(value) == text
