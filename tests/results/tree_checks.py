"""Check that a tree of results holds the records that it was made from."""

from __future__ import annotations

import numpy as np
import xarray as xr

from mkldist.results.record import RunRecord
from mkldist.results.schema import RunState
from tests.results.sweeps import GRIDS


def path_of(run, plan):
    parts = [run.dataset, run.bank_label, run.key]
    return "/".join(parts if len(plan.spec.banks) > 1 else (run.dataset, run.key))


def where(run, grids=GRIDS):
    return {"split": run.split, **{name: run.params[name] for name in grids[run.key]}}


def assert_holds(tree: xr.DataTree, plan, records: list[RunRecord]) -> None:
    """Compare every value of the tree with the record that it came from."""
    by_id = {record.id: record for record in records}
    nodes = {path_of(run, plan): None for run in plan.runs}
    loaded = {path: tree[path].to_dataset().load() for path in nodes}
    for run in plan.runs:
        cell = loaded[path_of(run, plan)].sel(where(run))
        assert cell.run_id.item() == run.id
        record = by_id.get(run.id)
        if record is None:
            assert cell.state.item() == "waiting"
            assert np.isnan(cell.gap)
            assert np.isnan(cell.kernel_weights).all()
            continue
        assert cell.state.item() == record.state
        assert cell.error.item() == record.error
        assert cell.stop_reason.item() == record.stop_reason
        for name in ("objective", "dual_objective", "gap", "bias"):
            np.testing.assert_equal(cell[name].item(), getattr(record, name))
        for given in (record.scores, record.times, record.counters, record.extra):
            for name, value in given.items():
                assert cell[name].item() == value
        expected = record.kernel_weights
        if record.state is RunState.FAILED:
            expected = np.full(cell.sizes["kernel"], np.nan)
        np.testing.assert_array_equal(cell.kernel_weights, expected)
