"""Convergence traces and coefficients in the tree: of every length, whenever they come."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mkldist.durable import write_json
from mkldist.errors import StoreError
from mkldist.results import convergence
from mkldist.results.convergence import ITERATIONS_PER_CHUNK
from mkldist.results.export import export
from mkldist.results.record_format import decode, encode
from mkldist.results.records import RecordStore, RunRecord
from mkldist.results.rows import to_frame
from mkldist.results.schema import ITERATION, N_RANKS, RANK, TRACES
from mkldist.results.tree import open_results, prepare
from mkldist.results.writer import TreeWriter
from mkldist.results.zarr_documents import read_root, write_root
from mkldist.sealed import sealed, unsealed
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record
from tests.variants import quick

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
def store(tmp_path) -> RecordStore:
    return RecordStore(tmp_path / "records")


L = ITERATIONS_PER_CHUNK


@pytest.mark.parametrize("limit", [None, 100], ids=["a chunk per split", "a chunk per run"])
@pytest.mark.parametrize(
    "lengths", quick([[3 * L, 1, 0], [0, 2, 9], [L, L + 1, 2], [0, 0, 0], [1, 5, 3]], 2)
)
def test_traces_of_any_length_in_any_order(tmp_path, store, monkeypatch, lengths, limit):
    if limit:
        monkeypatch.setattr("mkldist.results.zarr_documents.CHUNK_BYTES", limit)
    path = tmp_path / "results.zarr"
    records = [traced(run, lengths[i % 3]) for i, run in enumerate(PLAN.runs)]
    for record in records[:4]:
        store.write(record)
    prepare(path, PLAN, FACTS, store)
    assert_traces(open_results(path), records[:4])
    writer = TreeWriter(path)
    writer.write(records[4:6])
    assert_traces(open_results(path), records[:6])
    writer.write(records[6:])
    assert_traces(open_results(path), records)
    assert "convergence" not in open_results(path)["heart/uniform"].children


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 2 * L), min_size=14, max_size=14), st.permutations(range(14)))
def test_traces_written_one_by_one(tmp_path_factory, lengths, order):
    folder = tmp_path_factory.mktemp("sweep")
    prepare(folder / "results.zarr", PLAN, FACTS, RecordStore(folder / "records"))
    records = [traced(run, n) for run, n in zip(PLAN.runs, lengths, strict=True)]
    writer = TreeWriter(folder / "results.zarr")
    for i in order:
        writer.write([records[i]])
    assert_traces(open_results(folder), records)


def test_a_run_that_is_done_again_replaces_its_trace(tmp_path, store):
    path = tmp_path / "results.zarr"
    run = next(run for run in PLAN.runs if run.params.get("trace"))
    for record in (
        traced(run, 90),
        traced(run, 7),
        RunRecord.failed(run, "no memory", n_kernels=7),
    ):
        store.write(record)
        prepare(path, PLAN, FACTS, store)
        TreeWriter(path).write([record])
        gap = open_results(path)["heart/level/convergence"].gap
        assert int(gap.notnull().sum()) == len(record.trace.get("gap", ()))


def test_one_long_run_makes_no_chunks_of_the_others(tmp_path, store):
    path = tmp_path / "results.zarr"
    prepare(path, PLAN, FACTS, store)
    longest = next(run for run in PLAN.runs if run.params.get("trace") and run.split == 1)
    records = [traced(run, 4 * L if run is longest else 3) for run in PLAN.runs]
    TreeWriter(path).write(records)
    assert_traces(open_results(path), records)
    for variable in TRACES:
        folder = path / "heart/level/convergence" / variable.name / "c"
        n_chunks = [sum(f.is_file() for f in (folder / split).rglob("*")) for split in "01"]
        assert n_chunks == ([1, 4] if ITERATION in variable.dims else [1, 1])


def test_who_opened_the_tree_before_it_grew_reads_on(tmp_path, store):
    path = tmp_path / "results.zarr"
    first, second = [run for run in PLAN.runs if run.params.get("trace")][:2]
    prepare(path, PLAN, FACTS, store)
    writer = TreeWriter(path)
    writer.write([traced(first, 3)])
    before = xr.open_datatree(path, engine="zarr")
    writer.write([traced(second, 2 * L)])
    node = before["heart/level/convergence"].to_dataset().load()
    assert node.sizes["iteration"] == 3
    cell = node.sel(split=first.split, C=first.params["C"], trace=True)
    np.testing.assert_array_equal(cell.gap, traced(first, 3).trace["gap"])


def test_a_growth_that_was_cut_short_is_made_good(tmp_path, store, monkeypatch):
    path = tmp_path / "results.zarr"
    records = [traced(run, 5 + i) for i, run in enumerate(PLAN.runs)]
    prepare(path, PLAN, FACTS, store)
    TreeWriter(path).write(records[:3])

    def cut_short(root, documents):

        for where in list(documents)[:3]:
            write_json(root / where / "zarr.json", documents[where])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(convergence, "add_arrays", cut_short)
        with pytest.raises(KeyboardInterrupt):
            TreeWriter(path).write(records[3:])
    assert_traces(open_results(path), records[:3])
    for record in records:
        store.write(record)
    assert prepare(path, PLAN, FACTS, store).written == len(records) - 3
    assert_traces(open_results(path), records)


def test_exports_hold_traces_and_tables_leave_them_out(tmp_path, store):
    for i, run in enumerate(PLAN.runs):
        store.write(traced(run, i))
    prepare(tmp_path / "results.zarr", PLAN, FACTS, store)
    with xr.open_datatree(
        export(tmp_path, "netcdf", tmp_path / "results.nc")[0], engine="netcdf4"
    ) as back:
        xr.testing.assert_identical(back.load(), open_results(tmp_path).load())
    rows = to_frame(open_results(tmp_path))
    assert len(rows) == len(PLAN.runs)
    assert "largest_weights" not in rows


def test_a_tree_without_any_trace_yet_can_be_exported(tmp_path, store):
    prepare(tmp_path / "results.zarr", PLAN, FACTS, store)
    assert open_results(tmp_path)["heart/level/convergence"].sizes["iteration"] == 0
    with xr.open_datatree(
        export(tmp_path, "netcdf", tmp_path / "results.nc")[0], engine="netcdf4"
    ) as back:
        assert back["heart/level/convergence"].gap.shape == (2, 3, 2, 0)


def test_traces_explain_themselves_and_are_checked(tmp_path, store):
    path = tmp_path / "results.zarr"
    prepare(path, PLAN, FACTS, store)
    node = open_results(path)["heart/level/convergence"].to_dataset()
    assert node.seconds.attrs["units"] == "s"
    assert all(node[variable.name].attrs["long_name"] for variable in TRACES)
    root = json.dumps(read_root(path)).replace('"iteration", "rank"', '"iteration", "place"')
    write_root(path, json.loads(root))
    with pytest.raises(StoreError, match=r"heart/level/convergence/largest_\w+.*dims"):
        open_results(path)


def test_coefficients_stand_at_the_training_rows(tmp_path, store):
    plan = made_up_plan(coefficients=True, n_splits=2)
    train = {run.id: np.array([7, 0, 3, 9, 4]) for run in plan.runs}
    records = [
        dataclasses.replace(made_up_record(run), train_rows=train[run.id]) for run in plan.runs
    ]
    records[0] = RunRecord.failed(plan.runs[0], "no memory", n_kernels=7)
    for record in records:
        store.write(record)
    prepare(tmp_path / "results.zarr", plan, made_up_facts(plan), store)
    node = open_results(tmp_path)["heart/uniform"].to_dataset()
    assert "decision_values" not in node
    assert open_results(tmp_path)["heart"].label.sizes == {"sample": 10}
    for record in records:
        if record.key == "uniform":
            found = node.coefficients.sel(split=record.split)
            np.testing.assert_array_equal(found.sel(sample=record.train_rows), record.coefficients)
            assert int(found.notnull().sum()) == len(record.train_rows)
    failed = open_results(tmp_path)["heart/level"].coefficients.isel(split=0, C=0)
    assert failed.isnull().all()


def test_records_of_before_there_were_training_rows_are_read():
    header, arrays = unsealed(encode(made_up_record(PLAN.runs[0])))
    del arrays["train_rows"]
    found = decode(sealed(header, arrays))
    assert found is not None
    assert found.id == PLAN.runs[0].id
    assert len(found.train_rows) == 0


def test_coefficients_of_each_kernel_are_left_in_the_record(tmp_path, store):
    plan = made_up_plan(coefficients=True, n_splits=1)
    run = plan.runs[0]
    own = np.arange(15.0).reshape(3, 5)
    record = dataclasses.replace(
        made_up_record(run), train_rows=np.arange(5), kernel_coefficients=own
    )
    store.write(record)
    prepare(tmp_path / "results.zarr", plan, made_up_facts(plan), store)
    assert open_results(tmp_path)["heart/level"].coefficients.isnull().all()
    np.testing.assert_array_equal(store.read(run.id).kernel_coefficients, own)
