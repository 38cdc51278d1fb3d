"""The tree of results, made from a layout and records: every value, also of a sweep at work."""

import dataclasses
import importlib.util
import json
import os
import pickle
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import mkldist
from mkldist.core.checksums import frame, unframed
from mkldist.errors import InputError, OutputError, StoreError
from mkldist.methods.registry import METHODS
from mkldist.results.export import FORMATS, export
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.layout import (
    LAYOUT,
    TreeFacts,
    lay_out,
    read_layout,
    tree_layout,
    write_layout,
)
from mkldist.results.rows import method_nodes, place_of, to_frame
from mkldist.results.schema import COORDINATES, ITERATION, N_RANKS, RANK, SCALARS, TEXTS, TRACES
from mkldist.results.tree import Snapshot, names_at, open_results, reported
from tests.analysis.made_up import made
from tests.results.sweeps import (
    assert_holds,
    made_up_facts,
    made_up_plan,
    made_up_record,
    path_of,
    where,
)
from tests.variants import quick


@pytest.fixture
def store(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "records.journal")


@pytest.mark.parametrize("banks", quick([["xu2008"], ["one", "two"]]))
def test_values_stand_at_their_places_as_runs_are_recorded(tmp_path, store, banks):
    plan = made_up_plan(datasets=["heart", "wdbc"], banks=banks, predictions=True, n_splits=2)
    records = [made_up_record(run) for run in plan.runs]
    records[3] = RunRecord.failed(plan.runs[3], "no memory", n_kernels=7)
    lay_out(tmp_path, plan, made_up_facts(plan))
    assert_holds(mkldist.open_results(tmp_path), plan, [])
    for record in records[:30]:
        store.append([record])
    assert_holds(mkldist.open_results(tmp_path), plan, records[:30])
    for record in records[30:]:
        store.append([record])
    tree = mkldist.open_results(tmp_path)
    assert_holds(tree, plan, records)
    record = records[-1]
    cell = tree[path_of(plan.runs[-1], plan)].to_dataset().sel(where(plan.runs[-1]))
    np.testing.assert_array_equal(
        cell.decision_values.sel(sample=record.test_rows), record.decision_values
    )
    assert int(cell.decision_values.notnull().sum()) == len(record.test_rows)
    assert cell.kernel[2].item() == "gaussian(2)[all]"
    assert cell.active_kernels == record.n_active
    assert cell.nonzero_kernels == len(record.kernels)
    assert tree["heart"].label.values.tolist()[:3] == [-1.0, 1.0, 1.0]


def test_the_tree_explains_itself(tmp_path):
    plan = made_up_plan()
    lay_out(tmp_path, plan, made_up_facts(plan), lambda: {"numpy": "2"})
    tree = open_results(tmp_path)
    assert tree.attrs["sweep"] == "made-up"
    assert "dual_objective" in tree.attrs["gap_definition"]
    assert json.loads(tree.attrs["provenance"]) == {"numpy": "2"}
    assert json.loads(tree.attrs["spec"])["datasets"] == [{"name": "heart"}]
    node = tree["heart/simplemkl"].to_dataset()
    long_name = "relative duality gap; NaN where the problem is not convex"
    assert node.gap.attrs == {"long_name": long_name, "units": "1"}
    assert node.wall_seconds.attrs["units"] == "s"
    for variable in (*SCALARS, *TEXTS):
        assert node[variable.name].attrs["long_name"]
    assert node.sizes == {"split": 3, "C": 2, "variant": 2, "kernel": 7}


def test_a_changed_plan_shows_the_runs_that_it_shares(tmp_path, store):
    plan = made_up_plan(n_splits=2)
    for run in plan.runs:
        store.append([made_up_record(run)])
    lay_out(tmp_path, plan, made_up_facts(plan))
    grids = {"level": {"C": [0.1, 0.5, 1.0]}, "uniform": {}}
    changed = made_up_plan(grids, n_splits=3)
    kept = {run.id for run in plan.runs} & {run.id for run in changed.runs}
    assert not lay_out(tmp_path, changed, made_up_facts(changed, grids))
    tree = open_results(tmp_path)
    records = [made_up_record(run) for run in changed.runs if run.id in kept]
    assert [node.path for node in tree["heart"].leaves] == ["/heart/level", "/heart/uniform"]
    assert_holds(tree, changed, records)
    assert tree.attrs["other_runs"] == len(plan.runs) - len(kept)


@pytest.mark.slow
def test_a_million_kernels_are_opened_without_being_there(tmp_path, store):
    grids = {"level": {"C": list(np.geomspace(0.01, 100, 13))}}
    plan = made_up_plan(grids, datasets=["big"], n_splits=20, n_kernels=1_000_000)
    names = np.array([f"gaussian({m})[all]" for m in range(1_000_000)], dtype=object)
    facts = TreeFacts({"big": grids}, {("big", "xu2008"): {"kernel": names}})
    lay_out(tmp_path, plan, facts)
    assert (tmp_path / LAYOUT).stat().st_size < 10e6
    record = made_up_record(plan.runs[7], n_kernels=1_000_000)
    store.append([record])
    node = open_results(tmp_path)["big/level"].to_dataset()
    assert node.kernel_weights.nbytes == 8 * 20 * 13 * 1_000_000
    weights = node.kernel_weights[0, 7].load()
    np.testing.assert_array_equal(np.flatnonzero(weights), record.kernels)
    assert weights.kernel[record.kernels[0]].item() == f"gaussian({record.kernels[0]})[all]"


def test_vectors_that_are_read_when_used_are_those_that_are_read_at_once(
    tmp_path, store, monkeypatch
):
    plan = made_up_plan(n_splits=2, predictions=True, coefficients=True)
    lay_out(tmp_path, plan, made_up_facts(plan))
    rows = np.arange(5)
    for run in plan.runs[:-1]:
        store.append([replace(made_up_record(run), train_rows=rows)])
    now = open_results(tmp_path)
    monkeypatch.setattr("mkldist.results.tree.FEW_RUNS", 0)
    later = open_results(tmp_path)
    for name in ("kernel_weights", "decision_values", "coefficients"):
        values, lazy = (one["heart/simplemkl"][name] for one in (now, later))
        assert (values.chunks, lazy.chunks is None) == (None, False)
        np.testing.assert_array_equal(lazy, values)
        for key in ((0,), (slice(None), 1), (1, slice(None, None, -1), 0, slice(2, 5)), ([1, 0],)):
            np.testing.assert_array_equal(lazy[key], values[key])
    xr.testing.assert_identical(pickle.loads(pickle.dumps(later)).load(), now)


@pytest.mark.parametrize("few", [10**6, 0], ids=["at once", "when used"])
def test_a_record_with_damaged_arrays_is_refused(tmp_path, store, monkeypatch, few):
    monkeypatch.setattr("mkldist.results.tree.FEW_RUNS", few)
    plan = made_up_plan(n_splits=1)
    lay_out(tmp_path, plan, made_up_facts(plan))
    store.append(made_up_record(run) for run in plan.runs)
    content = bytearray(store.path.read_bytes())
    content[-1] ^= 1  # of the arrays of the last record
    store.path.write_bytes(content)
    with pytest.raises(StoreError, match=plan.runs[-1].id):
        open_results(tmp_path).load()
    assert len(Snapshot.of(tmp_path).tree(vectors=False)["heart"].children) == 3


def test_the_chosen_kernel_is_named_once_a_run_has_chosen(tmp_path, store):
    plan = made_up_plan()
    lay_out(tmp_path, plan, made_up_facts(plan))
    own = [run for run in plan.runs if run.key == "level" and run.split == 1]
    for n, run in enumerate(own[:2]):
        store.append([replace(made_up_record(run), extra={"chosen_kernel": float(n)})])
    store.append([RunRecord.failed(own[2], "no memory")])
    node = open_results(tmp_path)["heart/level"].to_dataset()
    assert node.chosen_kernel.sel(split=1).values.tolist() == [
        "gaussian(0)[all]", "gaussian(1)[all]", "",
    ]  # fmt: skip
    assert set(node.chosen_kernel.sel(split=0).values) == {""}


def test_reported_scalars_keep_clear_of_the_names_that_are_taken(tmp_path, store):
    plan = made_up_plan()
    run = next(run for run in plan.runs if run.key == "level")
    extra = {"C": 5.0, "kernel": 6.0, "a/b": 7.0, "state": 8.0}
    store.append([dataclasses.replace(made_up_record(run), extra=extra)])
    lay_out(tmp_path, plan, made_up_facts(plan))
    cell = open_results(tmp_path)[path_of(run, plan)].to_dataset().sel(where(run))
    names = ("reported_C", "reported_kernel", "a_b", "reported_state")
    assert [cell[name].item() for name in names] == [5.0, 6.0, 7.0, 8.0]
    assert cell.state.item() == "complete"


def test_weights_are_left_out_when_the_sweep_says_so(tmp_path, store):
    plan = made_up_plan(weights=False)
    store.append([made_up_record(plan.runs[0])])
    lay_out(tmp_path, plan, made_up_facts(plan))
    assert "kernel" not in open_results(tmp_path)["heart/level"].to_dataset().dims


def test_coefficients_stand_at_the_training_rows(tmp_path, store):
    plan = made_up_plan(coefficients=True, n_splits=2)
    rows = np.array([7, 0, 3, 9, 4])
    records = [replace(made_up_record(run), train_rows=rows) for run in plan.runs]
    records[0] = RunRecord.failed(plan.runs[0], "no memory", n_kernels=7)
    for record in records:
        store.append([record])
    lay_out(tmp_path, plan, made_up_facts(plan))
    tree = open_results(tmp_path)
    node = tree["heart/uniform"].to_dataset()
    assert "decision_values" not in node
    assert tree["heart"].label.sizes == {"sample": 10}
    for record in records:
        if record.key == "uniform":
            found = node.coefficients.sel(split=record.split)
            np.testing.assert_array_equal(found.sel(sample=record.train_rows), record.coefficients)
            assert int(found.notnull().sum()) == len(record.train_rows)
    assert tree["heart/level"].coefficients.isel(split=0, C=0).isnull().all()


def test_coefficients_of_each_kernel_are_left_in_the_record(tmp_path, store):
    plan = made_up_plan(coefficients=True, n_splits=1)
    run, own = plan.runs[0], np.arange(15.0).reshape(3, 5)
    record = replace(made_up_record(run), train_rows=np.arange(5), kernel_coefficients=own)
    store.append([record])
    lay_out(tmp_path, plan, made_up_facts(plan))
    assert open_results(tmp_path)["heart/level"].coefficients.isnull().all()
    np.testing.assert_array_equal(store.read(run.id).kernel_coefficients, own)


N_SPLITS = 4


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return a tree of two data sets, with coordinates of splits, classes and kernels."""
    folder = tmp_path_factory.mktemp("sweep")
    plan = made_up_plan(datasets=["heart", "wdbc"], n_splits=N_SPLITS, predictions=True)
    store = Journal(folder / "records.journal")
    for run in plan.runs:
        store.append([made_up_record(run)])
    facts = made_up_facts(plan)
    of_kernels = {
        "function": np.array(["gaussian", "linear", "gaussian"] * 2 + ["linear"], dtype=object),
        "family": np.full(7, "xu2008", dtype=object),
        "width": np.array([1.0, np.nan, 2.0, 1.0, np.nan, 2.0, np.nan]),
        "nu": np.arange(7.0),
    }
    splits = {"repeat": [0, 0, 1, 1], "fold": [0, 1, 0, 1], "n_train": [5] * 4, "n_test": [5] * 4}
    facts = replace(
        facts,
        kernels={key: {**own, **of_kernels} for key, own in facts.kernels.items()},
        splits={"heart": {name: np.array(values) for name, values in splits.items()}},
        n_features={"heart": 13},
        classes={"heart": ("healthy", "ill")},
    )
    lay_out(folder, plan, facts)
    return open_results(folder)


def test_a_node_has_the_coordinates_of_its_bank_and_data_set(tree):
    node = tree["heart/level"].to_dataset()
    for name in ("function", "family", "width", "nu", "kernel"):
        assert node[name].dims == ("kernel",)
    for name in ("repeat", "fold", "n_train", "n_test", "split"):
        assert node[name].dims == ("split",)
    assert node.repeat.values.tolist() == [0, 0, 1, 1]
    assert node.family.values.tolist() == ["xu2008"] * 7
    assert (node.n_kernels, node.n_features) == (7, 13)
    assert node.label.dims == ("sample",)
    assert node.class_name.values.tolist() == ["healthy", "ill"]
    assert node.attrs["positive_class"] == "ill"
    assert "width" not in tree["heart/level"].to_dataset(inherit=False).data_vars
    assert "n_features" not in tree["wdbc/level"].coords


def test_variables_and_coordinates_explain_themselves(tree):
    for node in tree.subtree:
        for name, variable in node.variables.items():
            assert variable.attrs["long_name"], name
            assert ("units" in variable.attrs) == (variable.dtype.kind in "fib"), name
    assert tree["heart/level"].C.attrs["long_name"].startswith("C: ")


def test_weights_are_summed_by_function_and_width(tree):
    weights = tree["heart/level"].kernel_weights
    by_width = weights.groupby("width").sum()
    assert by_width.width.values.tolist() == [1.0, 2.0]
    at = [np.flatnonzero(weights.width.values == width) for width in (1.0, 2.0)]
    expected = np.stack([weights.values[..., where].sum(axis=-1) for where in at], axis=-1)
    np.testing.assert_allclose(by_width.transpose("split", "C", "width"), expected)
    assert set(weights.groupby("function").sum().function.values) == {"gaussian", "linear"}
    linear = weights.sel(kernel=weights.function == "linear")
    assert linear.sizes["kernel"] == 3


def test_text_plots_selects_and_converts(tree):
    weights = tree["heart/level"].kernel_weights.isel(split=0)
    with mpl.rc_context({"backend": "agg"}):
        axes = Figure().subplots()
        weights.isel(C=0).plot(ax=axes)
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("kernel of the bank", (
            "weight of each kernel of the\nbank, normalised as asked [1]"))  # fmt: skip
    largest = weights.idxmax("kernel")
    np.testing.assert_array_equal(largest, weights.kernel[weights.argmax("kernel")])
    assert weights.kernel.astype(str).dtype.kind == "U"
    assert tree["heart/level"].stop_reason.astype(str).dtype.kind == "U"
    assert (tree["heart/level"].state == "complete").all()
    assert xr.align(weights, weights[:, :3], join="outer")[0].sizes["kernel"] == 7


def test_a_layout_comes_back_as_it_was_written(tmp_path):
    plan = made_up_plan(datasets=["heart", "wdbc"], banks=["one", "two"], predictions=True)
    layout = tree_layout(plan, made_up_facts(plan))
    write_layout(tmp_path, layout)
    found = read_layout(tmp_path)
    assert found.id == layout.id
    for one, other in zip(found.nodes, layout.nodes, strict=True):
        assert (one.dims, one.vectors, one.attributes) == (
            other.dims, other.vectors, other.attributes,
        )  # fmt: skip
        assert [(v.name, v.attributes, v.dims) for v in one.variables] == [
            (v.name, v.attributes, v.dims) for v in other.variables
        ]
        for name, coordinate in {**other.coordinates, **other.sizes}.items():
            same = {**one.coordinates, **one.sizes}[name]
            np.testing.assert_array_equal(same.values, coordinate.values)


def test_an_equal_layout_stays_as_it_is_and_keeps_its_provenance(tmp_path):
    plan = made_up_plan()
    lay_out(tmp_path, plan, made_up_facts(plan), lambda: {"numpy": "2"})
    before = (tmp_path / LAYOUT).stat().st_ino
    assert not lay_out(tmp_path, plan, made_up_facts(plan), lambda: {"numpy": "3"})
    assert (tmp_path / LAYOUT).stat().st_ino == before


def test_a_flipped_bit_anywhere_is_refused_and_mended(tmp_path):
    plan = made_up_plan(n_splits=1)
    lay_out(tmp_path, plan, made_up_facts(plan))
    path = tmp_path / LAYOUT
    whole, draw = path.read_bytes(), np.random.default_rng(0)
    for place in draw.choice(8 * len(whole), size=100, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with suppress(StoreError):  # a few bits of a compressed file are not used
            assert_holds(open_results(tmp_path), plan, [])
    path.write_bytes(whole[:-1])
    assert lay_out(tmp_path, plan, made_up_facts(plan))
    assert_holds(open_results(tmp_path), plan, [])


def test_another_layout_version_is_refused_and_replaced(tmp_path):
    plan = made_up_plan()
    lay_out(tmp_path, plan, made_up_facts(plan))
    path = tmp_path / LAYOUT
    _, outer = unframed(path.read_bytes())
    head, arrays = unframed(zlib.decompress(outer["packed"].tobytes()))
    packed = zlib.compress(frame({**head, "version": 99}, arrays))
    path.write_bytes(frame({}, {"packed": np.frombuffer(packed, np.uint8)}))
    with pytest.raises(StoreError, match="of another version"):
        open_results(tmp_path)
    assert lay_out(tmp_path, plan, made_up_facts(plan))
    assert_holds(open_results(tmp_path), plan, [])


@pytest.mark.parametrize("name", ["nothing", "empty"])
def test_no_results_is_an_error_that_says_so(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="a sweep's output folder") as caught:
        open_results(tmp_path / name)
    assert caught.value.exit_code == 2


def test_numbers_that_runs_report_are_variables_of_their_names(tmp_path):
    plan = made_up_plan({"uniform": {}}, n_splits=3)
    lay_out(tmp_path, plan, made_up_facts(plan, {"uniform": {}}))
    first, second, third = map(made_up_record, plan.runs)
    times = {"own_seconds": 1.5, "pass_seconds": 0.25, "wall_seconds": 9.0}
    extra = {"chosen_kernel": 1.0, "cv_error": 0.5}
    store = Journal(tmp_path / "records.journal")
    store.append([replace(first, times=times, extra=extra), replace(second, times={}), third])
    node = open_results(tmp_path)["heart/uniform"].to_dataset()
    assert node.seconds.values[0] == 1.75
    assert np.isnan(node.seconds.values[1])
    assert node.chosen_kernel.values.tolist() == [node.kernel.values[1], "", ""]
    assert node.cv_error.values[0] == 0.5
    assert np.isnan(node.cv_error.values[1:]).all()


def test_no_position_has_no_name():
    positions = np.array([[1, -1], [0, 1]])
    assert names_at(positions, ["a", "b"]).tolist() == [["b", ""], ["a", "b"]]
    assert names_at(np.array([np.nan, 0.0]), ["a", "b"]).tolist() == ["", "a"]


def test_scores_that_few_runs_have_are_explained():
    assert "logistic loss" in reported("log_loss").description
    assert reported("chosen_kernel").dtype == "string"
    assert reported("margin").description == "margin, as the run reported it"


@pytest.mark.parametrize("name", METHODS)
def test_no_parameter_of_a_method_has_the_name_of_a_coordinate(name):
    coordinates = {variable.name for variable in COORDINATES}
    assert not coordinates & METHODS[name].params.model_fields.keys()


ERRORS = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2, 0.2, 0.2]}
LEVEL = {("heart", "level"): [0.3, 0.2, 0.1]}
NAMES = ("s0", "s1", "s2")


def names(tree) -> list[tuple[str, str]]:
    return sorted((place_of(node)["bank"], str(node.name)) for node in method_nodes(tree))


def test_methods_of_several_sweeps_stand_in_one_tree(tmp_path):
    made(tmp_path / "a", {("heart", "level"): ERRORS["heart", "level"]}, split_names=NAMES)
    others = {("heart", method): ERRORS["heart", "uniform"] for method in ("uniform", "majority")}
    made(tmp_path / "b", others, split_names=NAMES)
    tree = mkldist.open_results(tmp_path / "a", tmp_path / "b")
    assert set(tree["heart"].children) == {"level", "uniform", "majority"}
    np.testing.assert_array_equal(
        tree["heart/uniform"].test_error.sel(C=1.0), ERRORS["heart", "uniform"]
    )
    pairs = mkldist.analysis.compare_methods(tree).set_index(["first", "second"])
    assert pairs.difference["level", "uniform"] == pytest.approx(0.0)


def test_runs_that_sweeps_share_are_there_once(tmp_path):
    made(tmp_path / "a", ERRORS, split_names=NAMES)
    made(tmp_path / "b", ERRORS, split_names=NAMES)
    tree = mkldist.open_results(tmp_path / "a", tmp_path / "b")
    assert set(tree["heart"].children) == {"level", "uniform"}


def test_banks_that_differ_under_one_name_are_told_apart_by_the_names_of_the_folders(tmp_path):
    made(tmp_path / "a", ERRORS, split_names=NAMES, bank="x")
    made(tmp_path / "b", LEVEL, split_names=NAMES, bank="y")
    tree = mkldist.open_results(tmp_path / "a", tmp_path / "b")
    assert names(tree) == [
        ("xu2008 (a)", "level"),
        ("xu2008 (a)", "uniform"),
        ("xu2008 (b)", "level"),
    ]
    np.testing.assert_array_equal(
        tree["heart/xu2008 (b)/level"].test_error.sel(C=1.0), LEVEL["heart", "level"]
    )
    file, _ = export([tmp_path / "a", tmp_path / "b"], "csv", tmp_path / "both.csv")
    assert file.read_text().count("\n") == 1 + 3 * 2 * 3  # methods, values of C, splits


@pytest.mark.parametrize(
    "other",
    [{"data": "others"}, {"split_names": ("s0", "s2", "s1")}, {"split_names": ("s0", "s1")}, None],
    ids=["data", "rows of splits", "number of splits", "the same folder"],
)
def test_other_data_and_splits_and_one_folder_twice_are_refused(tmp_path, other):
    made(tmp_path / "a", ERRORS, split_names=NAMES)
    changes = {"split_names": NAMES} | (other or {})
    made(tmp_path / "b", ERRORS, **changes)
    with pytest.raises(InputError):
        mkldist.open_results(tmp_path / "a", tmp_path / ("a" if other is None else "b"))


# Traces are a dim here; "uniform" has none.
GRIDS = {"level": {"C": [0.1, 1.0, 10.0], "trace": [True, False]}, "uniform": {"C": [1.0]}}
PLAN = made_up_plan(GRIDS, n_splits=2)
FACTS = made_up_facts(PLAN, GRIDS)


def traced(run, length: int) -> RunRecord:
    """Return a record with a trace of some length, if its run is to have one."""
    record = made_up_record(run)
    if not run.params.get("trace"):
        return dataclasses.replace(record, trace={})
    draw = np.random.default_rng(length)
    scalars = {v.name: draw.uniform(size=length) for v in TRACES if v.dims == (ITERATION,)}
    ranked = {
        "largest_weights": draw.uniform(size=(length, 3)),
        "largest_kernels": draw.integers(7, size=(length, 3)),
        "final_weights": draw.uniform(size=(length, 3)),
        "final_kernels": draw.integers(7, size=3 * (length > 0)),
    }
    return dataclasses.replace(record, trace={**scalars, **ranked, "unheard_of": np.ones(length)})


def assert_traces(tree: xr.DataTree, records: list[RunRecord]) -> None:
    node = tree["heart/level/convergence"].to_dataset().load()
    longest = max((len(r.trace.get("gap", ())) for r in records), default=0)
    assert node.sizes["iteration"] == longest
    assert node.iteration.values.tolist() == list(range(1, longest + 1))
    names = np.append(tree["heart"].kernel.values, "")
    assert set(node.data_vars) == {v.name for v in TRACES}
    by_place = {(r.split, r.params["C"], r.params["trace"]): r for r in records if r.key == "level"}
    for split in node.split.values:
        for C in node.C.values:
            for trace in (True, False):
                record = by_place.get((split, C, trace))
                cell = node.sel(split=split, C=C, trace=trace)
                for variable in TRACES:
                    of_names = variable.name in ("largest_kernels", "final_kernels")
                    shape = tuple({ITERATION: longest, RANK: N_RANKS}[d] for d in variable.dims)
                    expected = np.full(shape, -1 if of_names else np.nan)
                    given = record.trace.get(variable.name) if record else None
                    if given is not None:
                        expected[tuple(slice(s) for s in given.shape)] = given
                    if of_names:
                        expected = names[expected]
                    np.testing.assert_array_equal(cell[variable.name], expected)


@pytest.fixture
def traced_store(tmp_path) -> Journal:
    return Journal(tmp_path / "records.journal")


@pytest.mark.parametrize("few", [10**6, 0], ids=["at once", "when used"])
@pytest.mark.parametrize(
    "lengths", quick([[200, 1, 0], [0, 2, 9], [64, 65, 2], [0, 0, 0], [1, 5, 3]], 2)
)
def test_traces_of_any_length_in_any_order(tmp_path, traced_store, monkeypatch, lengths, few):
    monkeypatch.setattr("mkldist.results.tree.FEW_RUNS", few)
    records = [traced(run, lengths[i % 3]) for i, run in enumerate(PLAN.runs)]
    lay_out(tmp_path, PLAN, FACTS)
    for until in (0, 4, 6, len(records)):
        for record in records[:until]:
            traced_store.append([record])
        assert_traces(open_results(tmp_path), records[:until])
    assert "convergence" not in open_results(tmp_path)["heart/uniform"].children


def test_a_run_that_is_done_again_replaces_its_trace(tmp_path, traced_store):
    run = next(run for run in PLAN.runs if run.params.get("trace"))
    lay_out(tmp_path, PLAN, FACTS)
    for record in (
        traced(run, 90),
        traced(run, 7),
        RunRecord.failed(run, "no memory", n_kernels=7),
    ):
        traced_store.append([record])
        gap = open_results(tmp_path)["heart/level/convergence"].gap
        assert int(gap.notnull().sum()) == len(record.trace.get("gap", ()))


def test_exports_hold_traces_and_tables_leave_them_out(tmp_path, traced_store):
    for i, run in enumerate(PLAN.runs):
        traced_store.append([traced(run, i)])
    lay_out(tmp_path, PLAN, FACTS)
    with xr.open_datatree(
        export(tmp_path, "netcdf", tmp_path / "results.nc")[0], engine="netcdf4"
    ) as back:
        xr.testing.assert_identical(back.load(), open_results(tmp_path).load())
    rows = to_frame(open_results(tmp_path))
    assert len(rows) == len(PLAN.runs)
    assert "largest_weights" not in rows


def test_a_tree_without_any_trace_yet_can_be_exported(tmp_path):
    lay_out(tmp_path, PLAN, FACTS)
    node = open_results(tmp_path)["heart/level/convergence"].to_dataset()
    assert node.sizes["iteration"] == 0
    assert node.seconds.attrs["units"] == "s"
    assert all(node[variable.name].attrs["long_name"] for variable in TRACES)
    with xr.open_datatree(
        export(tmp_path, "netcdf", tmp_path / "results.nc")[0], engine="netcdf4"
    ) as back:
        assert back["heart/level/convergence"].gap.shape == (2, 3, 2, 0)


EXPORTED = made_up_plan(predictions=True, banks=("one", "two"), n_splits=2)
RECORDS = {run.id: made_up_record(run) for run in EXPORTED.runs[:-2]}
RECORDS[EXPORTED.runs[0].id] = RunRecord.failed(EXPORTED.runs[0], 'no "memory", or\nnone left')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    store = Journal(folder / "records.journal")
    for record in RECORDS.values():
        store.append([record])
    lay_out(folder, EXPORTED, made_up_facts(EXPORTED))
    return folder


@pytest.mark.slow
def test_netcdf_holds_the_tree(folder, tmp_path):
    target, *_ = export(folder, "netcdf", tmp_path / "new" / "results.nc")
    with xr.open_datatree(target, engine="netcdf4") as back:
        xr.testing.assert_identical(back.load(), open_results(folder).load())


@pytest.mark.slow
def test_zarr_holds_the_tree_for_any_reader(tmp_path, folder):
    plan = made_up_plan({"uniform": {}}, n_splits=2)
    Journal(tmp_path / "records.journal").append([made_up_record(plan.runs[0])])
    lay_out(tmp_path, plan, made_up_facts(plan, {"uniform": {}}))
    target, *_ = export(tmp_path, "zarr", tmp_path / "to" / "results.zarr")
    with xr.open_datatree(target, engine="zarr") as back:
        xr.testing.assert_equal(back.load(), open_results(tmp_path).load())
        assert back.attrs == open_results(tmp_path).attrs
    with pytest.raises(OutputError):
        export(tmp_path, "zarr", target)
    export(tmp_path, "zarr", target, overwrite=True)
    assert [path.name for path in target.parent.iterdir()] == ["results.zarr"]
    with pytest.raises(OutputError):  # a folder of another kind stays
        export(folder, "zarr", target.parent, overwrite=True)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_hold_a_row_per_run(folder, tmp_path, format):
    target, *_ = export(folder, format, tmp_path / f"results.{format}")
    if format == "csv":
        rows = pd.read_csv(target, keep_default_na=False, na_values={"gap": [""], "C": [""]})
    else:
        rows = pd.read_parquet(target)
    assert list(rows.columns[:8]) == [
        "dataset", "bank", "method", "split", "n_kernels", "C", "variant", "state",
    ]  # fmt: skip
    assert len(rows) == len(EXPORTED.runs)
    rows = rows.set_index("run_id")
    for run in EXPORTED.runs:
        row, record = rows.loc[run.id], RECORDS.get(run.id)
        assert (row.dataset, row.bank, row.method) == (run.dataset, run.bank_label, run.key)
        assert row.split == run.split
        np.testing.assert_equal(row.C, run.params.get("C", np.nan))
        assert run.params.get("variant") in (None, row.variant)
        assert row.state == ("waiting" if record is None else record.state)
        assert row.error == ("" if record is None else record.error)
        np.testing.assert_equal(row.gap, np.nan if record is None else record.gap)
        if record is not None and record.scores:
            assert float(row.test_error) == record.scores["test_error"]
            assert float(row.outer_iterations) == record.counters["outer_iterations"]


@pytest.mark.slow
def test_a_file_is_replaced_only_when_asked(folder, tmp_path):
    target = tmp_path / "results.csv"
    target.write_text("mine")
    with pytest.raises(OutputError, match="a file of that name"):
        export(folder, "csv", target)
    assert target.read_text() == "mine"
    export(folder, "csv", target, overwrite=True)
    assert target.read_text().startswith("dataset,")
    with pytest.raises(OutputError, match="a folder"):
        export(folder, "csv", tmp_path, overwrite=True)


def test_a_failed_export_leaves_nothing(folder, tmp_path, monkeypatch):
    def full(tree, target):
        target.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, "csv", full)
    with pytest.raises(OutputError, match="no space left"):
        export(folder, "csv", tmp_path / "results.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("said", [PermissionError(13, "Permission denied"), RuntimeError("HDF")])
def test_netcdf_on_a_full_disk_is_called_a_full_disk(folder, tmp_path, monkeypatch, said):
    def refused(*_, **__):
        raise said

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", refused)
    with pytest.raises((OutputError, RuntimeError), match=r"no permission to write|HDF"):
        export(folder, "netcdf", tmp_path / "results.nc")
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutputError, match="no space left on the device") as refusal:
        export(folder, "netcdf", tmp_path / "results.nc")
    assert refusal.value.where == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_named_with_the_nearest(folder, tmp_path):
    with pytest.raises(InputError, match=r"'netcd'.*Did you mean 'netcdf'"):
        export(folder, "netcd", tmp_path / "x")


@pytest.mark.parametrize(("format", "package"), [("netcdf", "netCDF4"), ("parquet", "pyarrow")])
def test_formats_say_which_package_to_install(folder, tmp_path, monkeypatch, format, package):
    assert importlib.util.find_spec(package) is not None
    monkeypatch.setattr("mkldist.results.export.find_spec", lambda name: None)
    with pytest.raises(InputError, match=rf"{package}.*pip install 'mkldist\[{format}\]'"):
        export(folder, format, tmp_path / "x")
    assert export(folder, "csv", tmp_path / "x.csv")


@pytest.mark.slow
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_weights_stand_beside_the_runs_a_row_per_kernel(folder, tmp_path, format):
    _, target = export(folder, format, tmp_path / f"all.{format}")
    assert target.name == f"all.weights.{format}"
    rows = pd.read_csv(target) if format == "csv" else pd.read_parquet(target)
    settings = ["C", "variant"]
    columns = [
        "dataset",
        "bank",
        "method",
        "split",
        *settings,
        "kernel",
        "weight",
        "run_id",
        "width",
    ]
    assert list(rows.columns) == columns
    assert rows["kernel"].tolist() == [f"gaussian({width - 1:g})[all]" for width in rows["width"]]
    found = {run_id: own.weight.tolist() for run_id, own in rows.groupby("run_id")}
    complete = {i: r for i, r in RECORDS.items() if r.error == "" and len(r.kernels)}
    assert found.keys() == complete.keys()
    for run_id, record in complete.items():
        assert found[run_id] == pytest.approx(record.weights.tolist())
        own = rows.loc[rows["run_id"] == run_id, "C"].unique()
        np.testing.assert_array_equal(own, record.params.get("C", np.nan))


def test_a_name_of_another_format_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match=r"netcdf, to be written to .*all.csv; expected a name"):
        export(folder, "netcdf", tmp_path / "all.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("vectors", [None, {"kernel": {}}])
def test_a_forged_layout_is_refused(tmp_path, vectors):
    plan = made_up_plan(datasets=["heart"])
    layout = tree_layout(plan, made_up_facts(plan))
    nodes = tuple(replace(node, vectors=vectors) for node in layout.nodes)
    write_layout(tmp_path, replace(layout, nodes=nodes))
    Journal(tmp_path / "records.journal").append(map(made_up_record, plan.runs))
    with pytest.raises(StoreError):
        open_results(tmp_path)
