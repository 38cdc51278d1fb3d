"""Convergence traces in the tree: of every length, whenever they come."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

from mkldist.results.export import export
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.rows import to_frame
from mkldist.results.schema import ITERATION, N_RANKS, RANK, TRACES
from mkldist.results.tree import open_results
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
def store(tmp_path) -> Journal:
    return Journal(tmp_path / "records.journal")


@pytest.mark.parametrize("few", [10**6, 0], ids=["at once", "when used"])
@pytest.mark.parametrize(
    "lengths", quick([[200, 1, 0], [0, 2, 9], [64, 65, 2], [0, 0, 0], [1, 5, 3]], 2)
)
def test_traces_of_any_length_in_any_order(tmp_path, store, monkeypatch, lengths, few):
    monkeypatch.setattr("mkldist.results.tree.FEW_RUNS", few)
    records = [traced(run, lengths[i % 3]) for i, run in enumerate(PLAN.runs)]
    lay_out(tmp_path, PLAN, FACTS)
    for until in (0, 4, 6, len(records)):
        for record in records[:until]:
            store.append([record])
        assert_traces(open_results(tmp_path), records[:until])
    assert "convergence" not in open_results(tmp_path)["heart/uniform"].children


def test_a_run_that_is_done_again_replaces_its_trace(tmp_path, store):
    run = next(run for run in PLAN.runs if run.params.get("trace"))
    lay_out(tmp_path, PLAN, FACTS)
    for record in (
        traced(run, 90),
        traced(run, 7),
        RunRecord.failed(run, "no memory", n_kernels=7),
    ):
        store.append([record])
        gap = open_results(tmp_path)["heart/level/convergence"].gap
        assert int(gap.notnull().sum()) == len(record.trace.get("gap", ()))


def test_exports_hold_traces_and_tables_leave_them_out(tmp_path, store):
    for i, run in enumerate(PLAN.runs):
        store.append([traced(run, i)])
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
    assert open_results(tmp_path)["heart/level/convergence"].sizes["iteration"] == 0
    with xr.open_datatree(
        export(tmp_path, "netcdf", tmp_path / "results.nc")[0], engine="netcdf4"
    ) as back:
        assert back["heart/level/convergence"].gap.shape == (2, 3, 2, 0)


def test_traces_explain_themselves(tmp_path):
    lay_out(tmp_path, PLAN, FACTS)
    node = open_results(tmp_path)["heart/level/convergence"].to_dataset()
    assert node.seconds.attrs["units"] == "s"
    assert all(node[variable.name].attrs["long_name"] for variable in TRACES)
