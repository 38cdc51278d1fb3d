"""One row per run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import mkldist
from mkldist.errors import InputError, SpecError
from mkldist.results.journal import Journal
from mkldist.results.layout import TreeFacts, lay_out
from mkldist.results.rows import to_frame
from mkldist.results.tree import open_results
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record


def test_only_the_asked_columns_are_read(tmp_path):
    plan = made_up_plan()
    lay_out(tmp_path, plan, made_up_facts(plan))
    rows = to_frame(open_results(tmp_path), ("state", "gap"))
    assert list(rows.columns) == [
        "dataset", "bank", "method", "split", "n_kernels", "C", "variant", "state", "gap",
    ]  # fmt: skip
    assert len(rows) == len(plan.runs)


def test_places_without_a_run_have_no_row(tmp_path):
    grids = {"level": {"C": [0.1, 1.0, 100.0]}}
    plan = made_up_plan({"level": {"C": [0.1, 1.0]}}, n_splits=2)
    lay_out(tmp_path, plan, made_up_facts(plan, grids))
    rows = to_frame(open_results(tmp_path))
    assert set(rows.run_id) == {run.id for run in plan.runs}
    assert set(rows.C) == {0.1, 1.0}


@pytest.mark.parametrize("function", [mkldist.to_frame, mkldist.selected])
@pytest.mark.parametrize("tree", [5, None, "results/mine"])
def test_what_is_no_tree_is_refused(function, tree):
    with pytest.raises(
        SpecError, match=r"^tree: found .*; expected results.*mkldist\.open_results"
    ):
        function(tree)


NAN = np.nan
# Three splits, two values of C, two of p.
LOSSES = np.array(
    [
        [[0.3, 0.2], [0.2, 0.4]],  # two of equal loss: the first is taken
        [[NAN, 0.9], [0.1, NAN]],
        [[NAN, NAN], [NAN, NAN]],  # no outcome: the first setting
    ]
)
CHOSEN = [(0, 1), (1, 0), (0, 0)]


def selected_tree(score: str = "validation_error", *, task: str = "classification") -> xr.DataTree:
    dims = ("split", "C", "p")
    ids = np.array([f"run {i}" for i in range(LOSSES.size)]).reshape(LOSSES.shape)
    tuned = xr.Dataset(
        {"run_id": (dims, ids), score: (dims, LOSSES)},
        coords={"split": [0, 1, 2], "C": [1.0, 10.0], "p": [1.5, 2.0]},
        attrs={"task": task},
    )
    steps = np.arange(LOSSES.size * 4.0).reshape(*LOSSES.shape, 4)
    trace = xr.Dataset({"gap": ((*dims, "iteration"), steps)})
    fixed = xr.Dataset(
        {"run_id": ("split", ["x", "y", "z"]), score: ("split", [0.5, 0.5, NAN])},
        coords={"split": [0, 1, 2]},
        attrs={"task": task},
    )
    return xr.DataTree.from_dict(
        {"/d/tuned": tuned, "/d/tuned/convergence": trace, "/d/fixed": fixed}, name="sweep"
    )


@pytest.mark.parametrize(
    ("score", "task"), [("validation_error", "classification"), ("validation_rmse", "regression")]
)
def test_each_split_has_the_setting_of_its_least_loss(score, task):
    whole = selected_tree(score, task=task)
    found = mkldist.selected(whole)
    assert found.name == "sweep"
    node = found["d/tuned"]
    assert node["run_id"].dims == ("split",)
    assert node["C"].values.tolist() == [[1.0, 10.0][c] for c, _ in CHOSEN]
    assert node["p"].values.tolist() == [[1.5, 2.0][p] for _, p in CHOSEN]
    np.testing.assert_array_equal(node[score], [0.2, 0.1, NAN])
    for split, place in enumerate(CHOSEN):
        assert node["run_id"].values[split] == whole["d/tuned/run_id"].values[split, *place]
        gaps = node["convergence/gap"].values[split]
        np.testing.assert_array_equal(gaps, whole["d/tuned/convergence/gap"].values[split, *place])


def test_a_method_without_hyperparameters_stays_as_it_is():
    assert (
        mkldist.selected(selected_tree())["d/fixed"]
        .to_dataset()
        .identical(selected_tree()["d/fixed"].to_dataset())
    )


def test_results_without_selection_are_refused():
    with pytest.raises(InputError, match=r"without inner folds"):
        mkldist.selected(selected_tree("test_error"))


@pytest.mark.slow
def test_joined_results_are_not_selected_from():
    joined = mkldist.concat(selected_tree(), "dataset")
    with pytest.raises(InputError, match="Select first"):
        mkldist.selected(joined)


GRIDS = {"level": {"C": [0.1, 1.0]}, "uniform": {"C": [1.0, 9.0]}, "majority": {}}
SIZES = {"m4": 4, "m20": 20, "m100": 100}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return results of nested banks on two data sets of other sizes and classes."""
    folder = tmp_path_factory.mktemp("sweep")
    plan = made_up_plan(GRIDS, datasets=["heart", "wdbc"], banks=SIZES, n_splits=2)
    plan = replace(
        plan, banks=tuple(replace(bank, n_kernels=SIZES[bank.spec.label]) for bank in plan.banks)
    )
    store = Journal(folder / "records.journal")
    for run in plan.runs[:-1]:
        record = made_up_record(run, n_kernels=SIZES[run.bank_label])
        extra = {"margin": 2.0} if run.key == "level" else {}
        store.append([replace(record, extra=extra)])
    facts = TreeFacts(
        {"heart": GRIDS, "wdbc": GRIDS},
        {
            (bank.dataset, bank.spec.label): {
                "kernel": np.array([f"k{m}" for m in range(bank.n_kernels)], dtype=object),
                "width": np.arange(bank.n_kernels) + 0.5,
                "bank": np.full(bank.n_kernels, bank.spec.label, dtype=object),
            }
            for bank in plan.banks
        },
        splits={"heart": {"n_train": np.array([70, 71])}, "wdbc": {"n_train": np.array([9, 9])}},
        n_features={"heart": 13, "wdbc": 30},
    )
    lay_out(folder, plan, facts)
    return open_results(folder)


def test_nodes_are_in_natural_order(tree):
    assert list(tree["heart"].children) == ["m4", "m20", "m100"]


@pytest.mark.slow
def test_banks_stand_side_by_side_along_their_sizes(tree):
    joined = mkldist.concat(tree, "n_kernels")
    assert {node.path for node in joined.leaves} == {
        f"/{dataset}/{method}" for dataset in ("heart", "wdbc") for method in GRIDS
    }
    node = joined["wdbc/level"].to_dataset()
    assert node.n_kernels.values.tolist() == [4, 20, 100]
    assert node.n_kernels.attrs["long_name"] == "number of kernels of the bank"
    for bank, size in SIZES.items():
        own = tree[f"wdbc/{bank}/level"].to_dataset()
        part = node.sel(n_kernels=size)
        for name in ("gap", "test_error", "state", "run_id", "margin"):
            np.testing.assert_array_equal(part[name], own[name], err_msg=name)
        weights = part.kernel_weights.sel(kernel=own.kernel)
        np.testing.assert_array_equal(weights, own.kernel_weights)
        others = part.kernel_weights.drop_sel(kernel=own.kernel.values)
        assert others.isnull().all()
        np.testing.assert_array_equal(part.width.sel(kernel=own.kernel), own.width)
    assert node.width.dims == ("kernel",)
    assert "margin" not in joined["wdbc/uniform"]


@pytest.mark.slow
def test_joined_results_have_the_rows_of_their_parts(tree):
    apart, joined = (
        mkldist.to_frame(one).set_index("run_id").sort_index()
        for one in (tree, mkldist.concat(tree, "n_kernels"))
    )
    assert not joined.columns.duplicated().any()
    for name in ("dataset", "method", "split", "C", "n_kernels", "state", "test_error", "gap"):
        pd.testing.assert_series_equal(joined[name], apart[name])
    by_method = mkldist.to_frame(mkldist.concat(tree, "method_name"))
    assert by_method.groupby("method_name")["run_id"].nunique().sum() == len(apart)


@pytest.mark.slow
def test_methods_have_all_settings_and_those_without_stand_at_each(tree):
    node = mkldist.concat(tree, "method_name")["heart/m20"].to_dataset()
    assert node.method_name.values.tolist() == ["level", "majority", "uniform"]
    assert node.C.values.tolist() == [0.1, 1.0, 9.0]
    assert node.test_error.dims == ("method_name", "split", "C")
    own = tree["heart/m20/majority"]
    for C in (0.1, 1.0, 9.0):
        part = node.sel(method_name="majority", C=C)
        np.testing.assert_array_equal(part.test_error, own.test_error)
        np.testing.assert_array_equal(part.run_id, own.run_id)
        np.testing.assert_array_equal(part.kernel_weights, own.kernel_weights)
    assert node.gap.sel(method_name="level", C=9.0).isnull().all()
    assert set(node.state.sel(method_name="level", C=9.0).values) == {""}
    np.testing.assert_array_equal(
        node.gap.sel(method_name="uniform", C=[1.0, 9.0]), tree["heart/m20/uniform"].gap
    )
    assert node.margin.sel(method_name="uniform").isnull().all()


@pytest.mark.slow
def test_data_sets_stand_along_their_names_or_sizes(tree):
    joined = mkldist.concat(tree, "dataset")
    node = joined["m4/level"].to_dataset()
    assert node.dataset.values.tolist() == ["heart", "wdbc"]
    assert node.n_features.values.tolist() == [13, 30]
    assert node.n_train.dims == ("dataset", "split")
    by_size = mkldist.concat(tree, "n_train")["m4/level"]
    assert by_size.n_train.values.tolist() == [9, 70]
    np.testing.assert_array_equal(by_size.gap[1], tree["heart/m4/level"].gap)


def test_another_dimension_and_equal_sizes_are_refused(tree):
    with pytest.raises(InputError, match=r"n_kernel'.*Did you mean 'n_kernels'"):
        mkldist.concat(tree, "n_kernel")
    with pytest.raises(InputError, match="no n_test of heart"):
        mkldist.concat(tree, "n_test")
    twice = tree.copy()
    twice["heart/m20/level"].coords["n_kernels"] = 4
    with pytest.raises(InputError, match=r"heart/level.*n_kernels = 4 of m4 and m20"):
        mkldist.concat(twice, "n_kernels")


def test_a_searched_parameter_is_not_joined_with_a_grid_of_it(tmp_path):
    plan = made_up_plan({"level": {"C": [1.0, 2.0]}, "uniform": {"C": [1.0, 2.0]}})
    trial = {1.0: 0, 2.0: 1}
    batches = tuple(
        replace(batch, runs=tuple(
            replace(run, at={"trial": trial[run.params["C"]]}) if run.key == "level" else run
            for run in batch.runs
        ))
        for batch in plan.batches
    )  # fmt: skip
    plan = replace(plan, batches=batches)
    facts = TreeFacts(
        {"heart": {"level": {"trial": [0, 1]}, "uniform": {"C": [1.0, 2.0]}}},
        run_parameters={"heart": {"level": ["C"]}},
    )
    store = Journal(tmp_path / "records.journal")
    for run in plan.runs:
        store.append([made_up_record(run)])
    lay_out(tmp_path, plan, facts)
    tree = open_results(tmp_path)
    np.testing.assert_array_equal(tree["heart/level"].C, [[1.0, 2.0]] * 3)
    with pytest.raises(InputError, match=r"a search of C in level.*mkldist\.selected"):
        mkldist.concat(tree, "method_name")
    level = mkldist.concat(tree, "n_kernels")["level"]
    assert level.C.dims == ("split", "trial")
