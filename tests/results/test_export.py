"""Exports hold the values of the tree, in all three `formats`."""

from __future__ import annotations

import importlib.util
import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from mkldist.errors import InputError, OutputError
from mkldist.results import export as module
from mkldist.results.export import export
from mkldist.results.journal import Journal
from mkldist.results.layout import lay_out
from mkldist.results.record import RunRecord
from mkldist.results.tree import open_results
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

PLAN = made_up_plan(predictions=True, banks=("one", "two"), n_splits=2)
RECORDS = {run.id: made_up_record(run) for run in PLAN.runs[:-2]}
RECORDS[PLAN.runs[0].id] = RunRecord.failed(PLAN.runs[0], 'no "memory", or\nnone left')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    store = Journal(folder / "records.journal")
    for record in RECORDS.values():
        store.append([record])
    lay_out(folder, PLAN, made_up_facts(PLAN))
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
    assert len(rows) == len(PLAN.runs)
    rows = rows.set_index("run_id")
    for run in PLAN.runs:
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

    monkeypatch.setitem(module.FORMATS, "csv", full)
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
    monkeypatch.setattr(module, "find_spec", lambda name: None)
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
