"""Curves of gaps, losses, objectives and decisions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
import xarray as xr
from sklearn.calibration import calibration_curve
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from mkldist import analysis
from mkldist.analysis import (
    convergence_curves,
    learning_curve,
    loss_by_active_kernels,
    loss_by_bank_size,
    objective_path,
)
from mkldist.analysis.curves import (
    calibration,
    decisions_of,
    out_of_split_probabilities,
    precision_recall,
    roc,
)
from mkldist.analysis.pairing import Results, methods_by_data_set
from mkldist.calibration import fit_calibration
from mkldist.errors import InputError
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.rows import to_frame
from mkldist.results.tree import open_results
from tests.analysis.traced import learnt, traced
from tests.refit.sweeps import entry, recorded, swept, table
from tests.results.sweeps import GRIDS, made_up_facts, made_up_plan, made_up_record

RUNS = [
    ([0.8, 0.4, 0.5, 0.1], [1, 2, 3, 4], [0.1, 0.2, 0.3, 0.4]),
    ([0.6, 0.2], [2, 3], [1.0, 2.0]),
    ([0.9], [1], [0.1]),
]


def test_the_median_over_passes_is_that_of_the_best_gaps_so_far():
    table = convergence_curves(traced({"level": RUNS}), "passes").set_index("passes")
    # best so far at 1, 2, 3 and 4 passes: 0.8 0.4 0.4 0.1; none 0.6 0.2 0.2; 0.9 0.9 0.9 0.9
    assert table["gap"].to_dict() == {1.0: 0.9, 2.0: 0.6, 3.0: 0.4, 4.0: 0.2}
    assert table["gap_low"].to_dict() == {1.0: 0.8, 2.0: 0.4, 3.0: 0.2, 4.0: 0.1}
    assert np.isnan(table.loc[1.0, "gap_high"])  # the second run has no gap yet
    assert table.loc[2.0:, "gap_high"].tolist() == [0.9] * 3
    assert set(table["runs"]) == {3}


def test_over_seconds_curves_fall_from_the_first_time_to_the_last():
    table = convergence_curves(traced({"level": RUNS}))
    assert table["seconds"].is_monotonic_increasing
    assert table["gap"].is_monotonic_decreasing
    assert table["seconds"].iloc[-1] == pytest.approx(2.0)
    assert table["gap"].iloc[-1] == 0.2


def test_results_without_traces_have_no_rows():
    tree = traced({"level": RUNS})
    tree["ring/level"].children = {}
    assert convergence_curves(tree).empty


def test_methods_whose_runs_all_wait_have_no_rows():
    tree = traced({"level": RUNS, "silp": [([], [], [])] * 2})
    assert set(convergence_curves(tree)["method"]) == {"level"}


def test_traces_that_do_not_hold_passes_have_seconds_alone():
    tree = traced({"level": RUNS})
    tree["ring/level/convergence"].dataset = (
        tree["ring/level/convergence"].to_dataset().drop_vars("passes")
    )
    assert convergence_curves(tree, "passes").empty
    assert not convergence_curves(tree, "seconds").empty


def test_an_unknown_cost_is_refused():
    with pytest.raises(InputError, match="found against = 'pass'; expected \"passes\""):
        convergence_curves(traced({"level": RUNS}), "pass")


def test_intervals_are_corrected_for_overlap():
    table = learning_curve(learnt("level", {100: 0.2, 50: 0.3}, spread=0.01))
    assert table["dataset"].tolist() == ["ring", "ring"]
    assert table["n_train"].tolist() == [50, 100]
    assert table["mean"].to_numpy() == pytest.approx([0.3, 0.2])
    for row, n_train in zip(table.itertuples(), (50, 100), strict=True):
        half = 0.01 * math.sqrt(1 / 3 + 50 / n_train) * scipy.stats.t.ppf(0.975, 2)
        assert row.high - row.mean == pytest.approx(half)
        assert row.mean - row.low == pytest.approx(half)


def test_one_size_is_no_curve():
    assert learning_curve(learnt("level", {100: 0.2})).empty


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paths")
    plan, store = made_up_plan(), Journal(folder / "records.journal")
    for number, run in enumerate(plan.runs):
        record = made_up_record(run)
        store.append([RunRecord.failed(run, "broken") if number == 0 else record])
    lay_out(folder, plan, made_up_facts(plan, GRIDS))
    return open_results(folder)


def test_objectives_are_those_of_the_setting_of_least_mean_loss(tree):
    runs = to_frame(tree)
    runs = runs[runs["state"] == "complete"]
    table = objective_path(tree).set_index(["method", "C"])
    assert set(table.index.get_level_values("method")) == {"level", "simplemkl"}
    for (method, C), row in table.iterrows():
        own = runs[(runs["method"] == method) & (runs["C"] == C)]
        by_variant = (
            own.groupby(own["variant"].fillna("")) if method == "simplemkl" else [("", own)]
        )
        best = min((some for _, some in by_variant), key=lambda some: some["test_error"].mean())
        assert row["loss"] == pytest.approx(best["test_error"].mean())
        assert row["objective"] == pytest.approx(best["objective"].mean())
        assert row["objective_sd"] == pytest.approx(np.std(best["objective"], ddof=1))
        assert row["lower_bound"] == pytest.approx(best["dual_objective"].mean())
        assert row["n_splits"] == len(best)


def test_methods_without_the_hyperparameter_have_no_row(tree):
    assert objective_path(tree, "lam").empty


N_TRAIN, N_TEST = 80, 20
ERRORS = np.array([[0.30, 0.20], [0.28, 0.26], [0.32, np.nan]])  # (split, C)
KERNELS = np.array([[2.0, 5.0], [4.0, 8.0], [3.0, np.nan]])


def node(errors: np.ndarray = ERRORS, **attributes: str) -> xr.Dataset:
    """Return the runs of a method at two values of C, of which one failed."""
    dims = ("split", "C")
    sizes = {"n_train": N_TRAIN, "n_test": N_TEST, "n_unlabelled": 0}
    return xr.Dataset(
        {
            "run_id": (dims, np.full(errors.shape, "x", object)),
            "state": (dims, np.where(np.isnan(errors), "failed", "complete").astype(object)),
            "test_error": (dims, errors),
            "active_kernels": (dims, KERNELS),
        },
        {
            "split": [0, 1, 2],
            "C": [1.0, 10.0],
            **{name: ("split", np.full(3, size)) for name, size in sizes.items()},
        },
        attrs={"task": "classification", **attributes},
    )


def half_width(values: list[float]) -> float:
    factor = 1 / len(values) + N_TEST / N_TRAIN
    quantile = scipy.stats.t.ppf(0.975, len(values) - 1)
    return float(quantile * np.std(values, ddof=1) * math.sqrt(factor))


def test_each_setting_has_its_loss_and_its_number_of_kernels():
    table = loss_by_active_kernels(xr.DataTree.from_dict({"/ring/level": node()}))
    assert table["C"].tolist() == [1.0, 10.0]
    assert table["active_kernels"].tolist() == [3.0, 6.5]
    assert table["mean"].to_numpy() == pytest.approx([0.30, 0.23])
    assert table["n_splits"].tolist() == [3, 2]
    halves = [half_width([0.30, 0.28, 0.32]), half_width([0.20, 0.26])]
    assert (table["high"] - table["mean"]).to_numpy() == pytest.approx(halves)
    assert (table["mean"] - table["low"]).to_numpy() == pytest.approx(halves)
    assert set(table["loss"]) == {"test_error"}


def test_settings_without_a_complete_run_have_no_row():
    errors = np.where([True, False], ERRORS, np.nan)
    table = loss_by_active_kernels(xr.DataTree.from_dict({"/ring/level": node(errors)}))
    assert table["C"].tolist() == [1.0]
    nothing = np.full_like(ERRORS, np.nan)
    assert loss_by_active_kernels(xr.DataTree.from_dict({"/ring/level": node(nothing)})).empty


def test_sizes_of_a_bank_have_the_loss_of_the_setting_chosen_there():
    sizes = {100: ERRORS, 300: ERRORS - 0.1}
    tree = xr.DataTree.from_dict(
        {
            f"/ring/g-{size}/level": node(errors, bank=f"g-{size}", bank_series="g").assign_coords(
                n_kernels=size
            )
            for size, errors in sizes.items()
        }
    )
    table = loss_by_bank_size(tree)
    assert table["bank"].tolist() == ["g", "g"]
    assert table["n_kernels"].tolist() == [100, 300]
    # On the splits that both values of C have, C = 10 has the least mean.
    assert table["mean"].to_numpy() == pytest.approx([0.23, 0.13])
    assert (table["high"] - table["mean"]).to_numpy() == pytest.approx(half_width([0.20, 0.26]))


def test_a_bank_of_one_size_is_no_curve():
    one = node(bank="g").assign_coords(n_kernels=100)
    assert loss_by_bank_size(xr.DataTree.from_dict({"/ring/level": one})).empty


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the results of a sweep of two classes."""
    return swept(tmp_path_factory.mktemp("curves"), entry("uniform", C=10.0))


def sides(results):
    """Return the methods of a sweep of one data set."""
    [(_, found)] = methods_by_data_set(Results.of(results))
    return found


@pytest.mark.slow
def test_decisions_are_those_of_the_records(results):
    found = decisions_of(sides(results)["uniform"])
    records = recorded(results)
    assert [one.split for one in found] == [0, 1]
    for one, record in zip(found, sorted(records, key=lambda r: r.split), strict=True):
        np.testing.assert_array_equal(one.values, record.decision_values)
        np.testing.assert_array_equal(one.positive, table()["two"][record.test_rows] == "well")


@pytest.mark.slow
def test_curves_of_one_split_are_those_of_scikit_learn(results):
    one = decisions_of(sides(results)["uniform"])[:1]
    rate, hits, _ = roc_curve(one[0].positive, one[0].values)
    found = roc(one)
    np.testing.assert_array_equal(found["false_positive_rate"], rate)
    np.testing.assert_array_equal(found["true_positive_rate"], hits)
    precision, recall, _ = precision_recall_curve(one[0].positive, one[0].values)
    for row in precision_recall(one).to_dict("records"):
        first = np.flatnonzero(recall >= row["recall"] - 1e-9)[-1]  # recalls descend
        assert row["precision"] == precision[first]


def test_mean_curves_have_the_mean_areas(results):
    several = decisions_of(sides(results)["uniform"])
    found = roc(several)
    areas = [auc(*roc_curve(one.positive, one.values)[:2]) for one in several]
    own = auc(found["false_positive_rate"], found["true_positive_rate"])
    assert own == pytest.approx(np.mean(areas), abs=0.01)
    assert found["true_positive_rate"].iloc[-1] == 1.0
    assert (found["sd"] >= 0).all()
    precisions = [average_precision_score(one.positive, one.values) for one in several]
    found = precision_recall(several)
    assert found["precision"][1:].mean() == pytest.approx(np.mean(precisions), abs=0.005)


def test_probabilities_of_a_split_are_learnt_on_rows_of_others(results):
    first, second = decisions_of(sides(results)["uniform"])
    new = ~np.isin(second.rows, first.rows)
    by_hand = fit_calibration(second.values[new], second.positive[new])
    found = out_of_split_probabilities([first, second])
    np.testing.assert_array_equal(found[0], by_hand.probabilities(first.values))
    curve = calibration([first, second])
    assert curve["n"].sum() == len(first.values) + len(second.values)
    positive = np.concatenate([first.positive, second.positive])
    frequency, mean = calibration_curve(
        positive, np.concatenate(found), n_bins=10, strategy="quantile"
    )
    np.testing.assert_array_equal(curve["frequency"], frequency)
    np.testing.assert_array_equal(curve["probability"], mean)
    assert (curve["frequency"] * curve["n"]).sum() == pytest.approx(positive.sum())


def test_the_other_class_has_the_mirrored_curve(results):
    side = sides(results)["uniform"]
    well, ill = decisions_of(side)[0], decisions_of(side, "ill")[0]
    np.testing.assert_array_equal(ill.positive, ~well.positive)
    np.testing.assert_array_equal(ill.values, -well.values)


@pytest.mark.slow
def test_a_class_of_several_is_against_the_rest(tmp_path):
    results = swept(tmp_path, entry("uniform", C=10.0), "three")
    side = sides(results)["uniform"]
    record = min(recorded(results), key=lambda one: one.split)
    for place, name in enumerate(["0", "10", "20"]):
        one = decisions_of(side, name)[0]
        np.testing.assert_array_equal(one.values, record.decision_values[place])
        expected = table()["three"][record.test_rows] == 10 * place
        np.testing.assert_array_equal(one.positive, expected)


def test_a_method_has_all_curves_by_name(results):
    found = analysis.prediction_curves(results, "mine", "uniform")
    assert list(found) == ["roc", "precision_recall", "calibration"]
    with pytest.raises(InputError, match="no decision values of test rows"):
        analysis.prediction_curves(results, "mine", "level")
