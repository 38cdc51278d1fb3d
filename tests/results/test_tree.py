"""The tree of results, by `schema` and `node_variables`: every value, also while others read."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import mkldist
from mkldist.results.layout import TreeFacts
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.schema import SCALARS, TEXTS
from mkldist.results.tree import open_results, prepare
from mkldist.results.writer import TreeWriter
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.results.tree_checks import assert_holds, path_of, where
from tests.variants import quick


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(tmp_path / "records")


@pytest.mark.parametrize("banks", quick([["xu2008"], ["one", "two"]]))
def test_values_stand_at_their_places(tmp_path, store, banks):
    plan = made_up_plan(datasets=["heart", "wdbc"], banks=banks, predictions=True, n_splits=2)
    records = [made_up_record(run) for run in plan.runs]
    records[3] = RunRecord.failed(plan.runs[3], "no memory", n_kernels=7)
    for record in records[:30]:
        store.write(record)
    assert prepare(tmp_path / "results.zarr", plan, made_up_facts(plan), store).written == 30
    assert_holds(mkldist.open_results(tmp_path), plan, records[:30])
    writer = TreeWriter(tmp_path / "results.zarr")
    for record in records[30:35]:
        assert writer.write([record]) == 1
    writer.write(records[35:])
    tree = mkldist.open_results(tmp_path / "results.zarr")
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


def test_the_tree_explains_itself(tmp_path, store):
    plan = made_up_plan()
    prepare(tmp_path / "results.zarr", plan, made_up_facts(plan), store, lambda: {"numpy": "2"})
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


@pytest.mark.slow
def test_plain_xarray_reads_while_a_writer_is_at_work(tmp_path, store):
    plan = made_up_plan(n_splits=3)
    path = tmp_path / "results.zarr"
    prepare(path, plan, made_up_facts(plan), store)
    records = {run.id: made_up_record(run) for run in plan.runs}
    writer = TreeWriter(path)
    seen: list[int] = []

    def write() -> None:
        for record in records.values():
            writer.write([record])

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive() or not seen:
        done = 0
        for node in xr.open_datatree(path, engine="zarr").leaves:
            read = node.to_dataset()[["state", "run_id", "gap", "test_error"]].load()
            for place in np.argwhere(read.state.values == "complete"):
                record = records[str(read.run_id.values[tuple(place)])]
                assert read.run_id.values[tuple(place)] == record.id
                done += 1
        seen.append(done)
    thread.join()
    assert seen == sorted(seen)
    assert len(seen) > 1
    assert_holds(xr.open_datatree(path, engine="zarr"), plan, list(records.values()))


def test_complete_is_said_after_the_values_are_there(tmp_path, store):
    plan = made_up_plan({"level": {"C": [1.0]}}, datasets=["d"], n_splits=1)
    path = tmp_path / "results.zarr"
    prepare(path, plan, made_up_facts(plan, {"level": {"C": [1.0]}}), store)
    TreeWriter(path).write([made_up_record(plan.runs[0])])
    node = path / "d" / "level"
    written = {
        chunk: chunk.stat().st_mtime_ns for chunk in node.glob("*/c/**/*") if chunk.is_file()
    }
    state = written.pop(node / "state" / "c" / "0" / "0")
    del written[node / "run_id" / "c" / "0" / "0"]
    del written[node / "C" / "c" / "0"]
    assert len(written) > 10
    assert all(time_ <= state for time_ in written.values())


def chunks(path: Path) -> dict[Path, int]:
    found = (file for file in path.glob("*/*/*/c/**/*") if file.is_file())
    return {file.relative_to(path): file.stat().st_mtime_ns for file in found}


def test_a_write_touches_the_chunks_of_its_split_only(tmp_path, store):
    plan = made_up_plan()
    path = tmp_path / "results.zarr"
    for run in plan.runs:
        store.write(made_up_record(run))
    prepare(path, plan, made_up_facts(plan), store)
    before = chunks(path)
    run = next(r for r in plan.runs if (r.dataset, r.key, r.split) == ("heart", "simplemkl", 2))
    TreeWriter(path).write([dataclasses.replace(made_up_record(run), gap=0.5)])
    after = chunks(path)
    assert after.keys() == before.keys()
    touched = {file for file in after if after[file] != before[file]}
    assert {file.parts[:2] for file in touched} == {("heart", "simplemkl")}
    assert {file.parts[4] for file in touched} == {"2"}
    assert Path("heart/simplemkl/gap/c/2/0/0") in touched
    assert Path("heart/simplemkl/kernel_weights/c/2/0/0/0") in touched


@pytest.mark.slow
def test_a_million_kernels_are_laid_out_without_being_there(tmp_path, store):
    grids = {"level": {"C": list(np.geomspace(0.01, 100, 13))}}
    plan = made_up_plan(grids, datasets=["big"], n_splits=20, n_kernels=1_000_000)
    names = np.char.mod("gaussian(%d)[all]", np.arange(1_000_000)).tolist()
    facts = TreeFacts({"big": grids}, {("big", "xu2008"): {"kernel": np.array(names, object)}})
    path = tmp_path / "results.zarr"
    start = time.process_time()
    prepare(path, plan, facts, store)
    assert time.process_time() - start < 10
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) < 10e6
    record = made_up_record(plan.runs[7], n_kernels=1_000_000)
    TreeWriter(path).write([record])
    node = open_results(path)["big/level"].to_dataset()
    assert node.kernel_weights.nbytes == 8 * 20 * 13 * 1_000_000
    weights = node.kernel_weights[0, 7].load()
    np.testing.assert_array_equal(np.flatnonzero(weights), record.kernels)
    assert weights.kernel[record.kernels[0]].item() == f"gaussian({record.kernels[0]})[all]"
    folder = path / "big" / "level" / "kernel_weights" / "c"
    assert sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()) == [
        "0/7/0", "0/7/1",
    ]  # fmt: skip


def test_weights_of_many_kernels_take_space_for_those_that_are_not_zero(tmp_path, store):
    grids = {"level": {"C": [1.0, 2.0, 3.0]}}
    plan = made_up_plan(grids, n_splits=4, n_kernels=100_000)
    path = tmp_path / "results.zarr"
    prepare(path, plan, TreeFacts({"heart": grids}), store)
    draw = np.random.default_rng(0)
    records = []
    for run in plan.runs:
        kernels = np.sort(draw.choice(100_000, 50, replace=False))
        record = made_up_record(run, n_kernels=100_000)
        weights = draw.dirichlet(np.ones(50))
        records.append(dataclasses.replace(record, kernels=kernels, weights=weights))
        store.write(records[-1])
    TreeWriter(path).write(records)
    folders = (path / "heart" / "level" / "kernel_weights", store.directory)
    for folder in folders:
        taken = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        assert taken < len(records) * 5000  # of 800,000 bytes each
    node = open_results(path)["heart/level"].to_dataset()
    for record in records:
        weights = node.kernel_weights.sel(where(record, grids)).values
        np.testing.assert_array_equal(np.flatnonzero(weights), record.kernels)
        np.testing.assert_array_equal(weights[record.kernels], record.weights)


def test_the_chosen_kernel_is_named_once_a_run_has_chosen(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    prepare(path, plan, made_up_facts(plan), store)
    own = [run for run in plan.runs if run.key == "level" and run.split == 1]
    records = [
        dataclasses.replace(made_up_record(run), extra={"chosen_kernel": float(n)})
        for n, run in enumerate(own[:2])
    ]
    writer = TreeWriter(path)
    writer.write(records[:1])
    writer.write([records[1], RunRecord.failed(own[2], "no memory")])
    node = open_results(path)["heart/level"].to_dataset()
    assert node.chosen_kernel.sel(split=1).values.tolist() == [
        "gaussian(0)[all]", "gaussian(1)[all]", "",
    ]  # fmt: skip
    assert set(node.chosen_kernel.sel(split=0).values) == {""}


def test_reported_scalars_keep_clear_of_the_names_that_are_taken(tmp_path, store):
    plan, path = made_up_plan(), tmp_path / "results.zarr"
    run = next(run for run in plan.runs if run.key == "level")
    extra = {"C": 5.0, "kernel": 6.0, "a/b": 7.0, "state": 8.0}
    store.write(dataclasses.replace(made_up_record(run), extra=extra))
    prepare(path, plan, made_up_facts(plan), store)
    cell = open_results(path)[path_of(run, plan)].to_dataset().sel(where(run))
    names = ("reported_C", "reported_kernel", "a_b", "reported_state")
    assert [cell[name].item() for name in names] == [5.0, 6.0, 7.0, 8.0]
    assert cell.state.item() == "complete"


def test_weights_are_left_out_when_the_sweep_says_so(tmp_path, store):
    plan, path = made_up_plan(weights=False), tmp_path / "results.zarr"
    store.write(made_up_record(plan.runs[0]))
    prepare(path, plan, made_up_facts(plan), store)
    assert "kernel" not in open_results(path)["heart/level"].to_dataset().dims
