"""Banks for workers: one reference for each, and one snapshot of equal data."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from mkldist.data.snapshot import load_snapshot
from mkldist.errors import OutputError
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.run.sweep_setup import BankKey, bank_refs
from mkldist.spec.model import SweepSpec

SWEEP = """
name = "s"
[[datasets]]
name = "two_moons"
options = { n = 30 }
[preprocessing]
fit = "all"
[[banks]]
name = "plain"
normalisation = "none"
kernels = [{ function = "gaussian", widths = [1.0, 2.0] }]
[[banks]]
name = "traced"
normalisation = "trace"
kernels = [{ function = "gaussian", widths = [1.0, 2.0] }]
[[banks]]
name = "other"
kernels = [{ function = "gaussian", widths = [3.0] }]
[[methods]]
name = "uniform"
"""


@pytest.fixture(scope="module")
def planned():
    spec = SweepSpec.model_validate(tomllib.loads(SWEEP))
    resolved = resolve(spec, (), Path())
    return make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None), resolved


def test_banks_of_equal_kernels_share_a_store_but_no_reference(planned, tmp_path):
    plan, resolved = planned
    wanted = {bank.id for bank in plan.banks}
    refs = bank_refs(plan, resolved, wanted, "memory://banks", tmp_path)
    assert {key.label for key in refs} == {"plain", "traced", "other"}
    ids = {key.label: key.id for key in refs}
    assert ids["plain"] == ids["traced"] != ids["other"]
    assert {key.dataset for key in refs} == {"two_moons"}
    for key, ref in refs.items():
        assert (ref.plan.id, ref.plan.spec.label, ref.root) == (key.id, key.label, "memory://banks")
    assert {BankKey.of(run) for run in plan.runs} == refs.keys()


def test_workers_read_the_data_and_splits_of_the_sweep(planned, tmp_path):
    plan, resolved = planned
    refs = bank_refs(plan, resolved, {bank.id for bank in plan.banks}, "memory://b", tmp_path)
    [snapshot] = {ref.snapshot for ref in refs.values()}
    dataset, splits = load_snapshot(Path(snapshot))
    [(own, own_splits)] = resolved.datasets.values()
    np.testing.assert_array_equal(dataset.x, own.x)
    np.testing.assert_array_equal(dataset.y, own.y)
    assert [split.train.tolist() for split in splits] == [s.train.tolist() for s in own_splits]
    assert {ref.data_fingerprint for ref in refs.values()} == {dataset.fingerprint}


def test_banks_that_no_run_waits_for_are_left_out(planned, tmp_path):
    plan, resolved = planned
    [other] = {bank.id for bank in plan.banks if bank.spec.label == "other"}
    assert {key.label for key in bank_refs(plan, resolved, {other}, "b", tmp_path)} == {"other"}
    assert bank_refs(plan, resolved, (), "b", tmp_path / "none") == {}
    assert not (tmp_path / "none").exists()


def test_a_folder_that_cannot_be_made_is_named(planned, tmp_path):
    plan, resolved = planned
    (tmp_path / "snapshots").write_text("a file")
    with pytest.raises(OutputError, match="snapshots"):
        bank_refs(plan, resolved, {plan.banks[0].id}, "b", tmp_path / "snapshots")
