"""Times against sizes, and fits of their growth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy
import xarray as xr

from mkldist import analysis
from mkldist.analysis.growth import scaling, scaling_fits
from mkldist.errors import InputError
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
    fits = scaling_fits(tree, level=0.9).set_index(["method", "part"])
    nodes = [tree[f"ring/gaussians-{size}/silp"].ds for size in N_KERNELS]
    by_split = np.log([node["seconds"].mean("C").to_numpy() for node in nodes])
    x, y = np.log(N_KERNELS), by_split.mean(axis=1)
    centred = x - x.mean()
    slope = (centred @ y) / (centred @ centred)
    residuals = y - y.mean() - slope * centred
    error = np.sqrt(residuals @ residuals / (len(x) - 2) / (centred @ centred))
    exponents = centred @ by_split / (centred @ centred)
    half = max(
        scipy.stats.t.ppf(0.95, len(x) - 2) * error,
        scipy.stats.t.ppf(0.95, N_SPLITS - 1) * scipy.stats.sem(exponents),
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
    assert fits["lack_of_fit"].isna().all()


def test_a_law_that_bends_is_told_by_the_lack_of_fit_and_the_last_exponent():
    tree = study(noise=0.01)
    for size in N_KERNELS:
        node = tree[f"ring/gaussians-{size}/level"]
        node["own_seconds"] = node["own_seconds"] + 20.0  # seconds that every run takes
    (row,) = scaling_fits(tree).query("method == 'level' and part == 'solver'").to_dict("records")
    assert row["lack_of_fit"] < 1e-4
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


def test_the_times_of_a_build_may_be_variables_along_splits():
    tree = study()
    for node in tree.subtree:
        if "build_seconds" in node.coords:
            node.dataset = node.to_dataset().reset_coords("build_seconds")
    assert "build_seconds" in tree["ring/gaussians-100/level"].data_vars
    assert scaling(tree).equals(scaling(study()))


def test_another_size_is_refused():
    with pytest.raises(InputError, match=r"over = 'n_kernel'.*Did you mean 'n_kernels'"):
        scaling(study(), "n_kernel")


def test_the_functions_are_found_in_the_package():
    assert (analysis.scaling, analysis.scaling_fits) == (scaling, scaling_fits)
