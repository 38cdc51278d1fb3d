"""Curves of gaps, losses, objectives and decisions."""

import math

import numpy as np
import pandas as pd
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
from mkldist.analysis.comparison import Results, methods_by_data_set
from mkldist.analysis.curves import (
    calibration,
    decisions_of,
    out_of_split_probabilities,
    precision_recall,
    roc,
)
from mkldist.analysis.growth import scaling, scaling_fits
from mkldist.calibration import fit_calibration
from mkldist.errors import InputError
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import lay_out
from mkldist.results.rows import to_frame
from mkldist.results.tree import open_results
from tests.analysis.made_up import learnt, traced
from tests.analysis.studies import (
    LAWS,
    N_KERNELS,
    N_SPLITS,
    SETTINGS,
    build_seconds,
    pass_seconds,
    solver_seconds,
    study,
)
from tests.fit.sweeps import entry, recorded, swept, table
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
        assert row["mean"] == pytest.approx(best["test_error"].mean())
        assert row["sd"] == pytest.approx(np.std(best["test_error"], ddof=1))
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


BOTH = {"n_kernels": (100, 300, 1000), "n_train": (100, 200, 400)}


def test_a_row_holds_the_mean_times_of_a_method_at_a_size():
    table = scaling(study())
    assert table[["dataset", "bank"]].drop_duplicates().to_numpy().tolist() == [
        ["ring", "gaussians"]
    ]
    assert table["method"].drop_duplicates().tolist() == list(LAWS)
    row = table.set_index(["method", "n_kernels"]).loc[("silp", 1000)]
    own = np.mean([solver_seconds("silp", 1000, 200, C) for C in SETTINGS])
    assert row["own_seconds"] == pytest.approx(own)
    assert row["pass_seconds"] == pytest.approx(pass_seconds(1000, 200))
    assert row["seconds"] == pytest.approx(own + pass_seconds(1000, 200))
    assert row["run_cpu_seconds"] == pytest.approx(0.5 * row["seconds"])
    assert (row["passes"], row["gap_max"]) == (7.0, 1e-3)
    n_runs = N_SPLITS * len(SETTINGS)
    assert row[["planned", "complete", "counted", "early", "failed"]].tolist() == [
        n_runs, n_runs, n_runs, 0, 0,
    ]  # fmt: skip


def test_the_build_counts_once_a_split_and_not_once_a_run():
    row = scaling(study()).set_index(["method", "n_kernels"]).loc[("level", 300)]
    assert row["build_seconds"] == pytest.approx(build_seconds(300, 200))
    runs = sum(solver_seconds("level", 300, 200, C) + pass_seconds(300, 200) for C in SETTINGS)
    assert row["total_seconds"] == pytest.approx(build_seconds(300, 200) + runs)
    assert row["settings"] == len(SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize(("over", "at"), [("n_kernels", 0), ("n_train", 1)])
def test_the_exponents_of_exact_laws_are_found_at_every_value_of_the_other_size(over, at):
    fits = scaling_fits(study(**BOTH), over)
    other = "n_train" if over == "n_kernels" else "n_kernels"
    for method, laws in LAWS.items():
        own = fits[(fits["method"] == method) & (fits["part"] == "solver")]
        assert own[other].tolist() == list(BOTH[other])
        for name in ("exponent", "low", "high", "last_exponent"):
            assert own[name].to_numpy() == pytest.approx(laws[at])
    for part in ("build", "passes"):
        some = fits[fits["part"] == part]
        assert some["exponent"].to_numpy() == pytest.approx([1.0, 2.0][at])


def test_a_fit_agrees_with_the_formula_of_a_regression_line_and_its_interval():
    tree = study(noise=0.3)
    fits = scaling_fits(tree).set_index(["method", "part"])
    nodes = [tree[f"ring/gaussians-{size}/silp"].ds for size in N_KERNELS]
    by_split = np.log([node["seconds"].mean("C").to_numpy() for node in nodes])
    x, y = np.log(N_KERNELS), by_split.mean(axis=1)
    centred = x - x.mean()
    slope = (centred @ y) / (centred @ centred)
    residuals = y - y.mean() - slope * centred
    error = np.sqrt(residuals @ residuals / (len(x) - 2) / (centred @ centred))
    exponents = centred @ by_split / (centred @ centred)
    half = max(
        scipy.stats.t.ppf(0.975, len(x) - 2) * error,
        scipy.stats.t.ppf(0.975, N_SPLITS - 1) * scipy.stats.sem(exponents),
    )
    row = fits.loc[("silp", "run")]
    assert row[["exponent", "low", "high"]].to_numpy(float) == pytest.approx(
        [slope, slope - half, slope + half]
    )
    assert row["n_values"] == by_split.size
    assert row["factor"] * 1000 ** row["exponent"] == pytest.approx(
        np.exp(y.mean() + slope * (np.log(1000) - x.mean()))
    )
    assert row["at_largest"] == pytest.approx(np.mean(nodes[-1]["seconds"]))


@pytest.mark.slow
def test_failed_and_waiting_runs_do_not_shift_the_times_of_the_others():
    tree = study()
    largest = tree["ring/gaussians-3000/silp"]
    largest["state"][0, 1] = "failed"  # so C = 10 is missing on one split of the largest size
    largest["state"][1, :] = "waiting"
    largest["seconds"][1, :] = np.nan
    table = scaling(tree).set_index(["method", "n_kernels"])
    row = table.loc[("silp", 3000)]
    assert row[["complete", "failed", "waiting"]].tolist() == [3, 1, 2]
    assert row[["counted", "splits"]].tolist() == [2, 1]  # the split that has both settings
    own = np.mean([solver_seconds("silp", 3000, 200, C) for C in SETTINGS])
    assert row["own_seconds"] == pytest.approx(own)
    fits = scaling_fits(tree).set_index(["method", "part"])
    assert fits.loc[("silp", "solver"), "exponent"] == pytest.approx(LAWS["silp"][0])
    assert fits.loc[("silp", "solver"), "n_values"] == 3 * N_SPLITS + 1


def test_a_setting_that_fails_at_the_largest_size_counts_at_none():
    tree = study()
    tree["ring/gaussians-3000/silp"]["state"][:, 1] = "failed"
    table = scaling(tree).set_index(["method", "n_kernels"])
    for size in N_KERNELS:
        assert table.loc[("silp", size), "settings"] == 1
        assert table.loc[("silp", size), "own_seconds"] == pytest.approx(
            solver_seconds("silp", size, 200, SETTINGS[0])
        )
    assert table.loc[("level", 100), "settings"] == 2


def test_a_size_of_which_no_run_is_complete_yet_has_counts_and_no_times():
    tree = study()
    for method in LAWS:
        node = tree[f"ring/gaussians-3000/{method}"]
        node["state"][:] = "waiting"
        node["seconds"][:] = np.nan
    table = scaling(tree)
    waiting = table[table["n_kernels"] == 3000]
    assert waiting["waiting"].tolist() == [N_SPLITS * len(SETTINGS)] * 2
    assert waiting["seconds"].isna().all()
    assert (scaling_fits(tree)["largest"] == 1000).all()


@pytest.mark.slow
def test_runs_that_stopped_early_count_and_are_counted():
    tree = study()
    tree["ring/gaussians-1000/level"]["stop_reason"][:, 0] = "time_limit"
    table = scaling(tree).set_index(["method", "n_kernels"])
    assert table.loc[("level", 1000), "early"] == N_SPLITS
    fits = scaling_fits(tree).set_index(["method", "part"])
    assert fits.loc[("level", "run"), "early"] == N_SPLITS
    assert fits.loc[("silp", "run"), "early"] == 0


@pytest.mark.slow
def test_a_c_that_follows_from_the_split_is_no_setting():
    """As of methods with ``C = { from = ... }``, beside a method that has C itself."""

    def follow(node: xr.Dataset) -> xr.Dataset:
        if node.attrs.get("method") != "silp":
            return node
        given = node.rename(C="source_C")
        own = np.arange(given.state.size).reshape(given.state.shape) + float(given.n_kernels)
        return given.assign_coords(C=(given.state.dims, own))

    pd.testing.assert_frame_equal(
        scaling(study().map_over_datasets(follow)), scaling(study()), check_like=True
    )


@pytest.mark.parametrize("n_splits", [1, 3])
def test_two_sizes_have_an_exponent_without_an_interval(n_splits):
    fits = scaling_fits(study((100, 1000), n_splits=n_splits, settings=(1.0,)))
    assert np.isinf(fits["low"]).all()
    assert np.isinf(fits["high"]).all()


def test_a_law_that_bends_is_told_by_the_last_exponent():
    tree = study(noise=0.01)
    for size in N_KERNELS:
        node = tree[f"ring/gaussians-{size}/level"]
        node["own_seconds"] = node["own_seconds"] + 20.0  # seconds that every run takes
    (row,) = scaling_fits(tree).query("method == 'level' and part == 'solver'").to_dict("records")
    assert row["exponent"] + 0.1 < row["last_exponent"] < 1.0


def test_banks_with_numbers_in_their_names_are_a_series_and_others_are_not():
    assert scaling(study(series=False))["bank"].unique().tolist() == ["gaussians"]
    other = study((100, 1000), series=False)
    for size, name in ((100, "narrow"), (1000, "wide")):
        for method in LAWS:
            other[f"ring/gaussians-{size}/{method}"].attrs["bank"] = name
    assert scaling(other).empty
    assert scaling_fits(other).empty


def test_data_sets_are_never_mixed():
    tree = study(n_kernels=(100,), n_train=(100, 200, 400), series=False)
    assert scaling(tree, "n_train").empty


def test_folds_of_nearly_one_size_are_one_size():
    tree = study(n_splits=3)
    for size in N_KERNELS:
        for method in LAWS:
            node = tree[f"ring/gaussians-{size}/{method}"]
            node.coords["n_train"] = ("split", [199, 200, 200])
    assert scaling(tree)["n_train"].unique().tolist() == [200]
    assert scaling(tree, "n_train").empty


def test_what_old_results_do_not_hold_is_missing():
    table = scaling(study(build=False))
    assert table["build_seconds"].isna().all()
    assert table["total_seconds"].isna().all()
    assert set(scaling_fits(study(build=False))["part"]) == {"passes", "solver", "run", "cpu"}


def test_another_size_is_refused():
    with pytest.raises(InputError, match=r"over = 'n_kernel'.*Did you mean 'n_kernels'"):
        scaling(study(), "n_kernel")


def test_the_functions_are_found_in_the_package():
    assert (analysis.scaling, analysis.scaling_fits) == (scaling, scaling_fits)
