"""Runs along a path, and bytes of banks, as a plan states them.

tests/planning/test_planner.py and tests/planning/test_ids.py hold how plans are made.
"""

from __future__ import annotations

from dataclasses import replace

from mkldist.planning.model import Proposal
from tests.planning.plans import dataset, grid, plan_of

DATA = {"a": dataset("a", n_splits=1)}


def test_runs_of_a_path_differ_in_its_parameter_alone_and_have_an_order():
    plan = plan_of(DATA, {"level": grid("level", C=[10, 1], near=[0.7, 0.8])}, execution="path")
    chains = {}
    for run in sorted(plan.runs, key=lambda run: run.order):
        chains.setdefault(run.chain, []).append((run.params["near"], run.params["C"]))
    assert sorted(chains.values()) == [[(0.7, 1.0), (0.7, 10.0)], [(0.8, 1.0), (0.8, 10.0)]]


def test_without_a_path_every_run_is_a_chain_of_its_own():
    grids = {"level": grid("level", C=[1, 10]), "uniform": grid("uniform", C=[1, 10])}
    shared, path = plan_of(DATA, grids), plan_of(DATA, grids, execution="path")
    assert {run.on_path for run in shared.runs} == {False}
    assert len({run.chain for run in shared.runs}) == 4
    assert {run.order for run in shared.runs} == {0.0}
    assert len({run.chain for run in path.runs}) == 1 + 2


def test_a_run_at_another_point_differs_in_its_settings_alone():
    [run] = plan_of(DATA, {"level": grid("level", C=[1.0])}).runs
    point = Proposal({"C": 2.0}, {"trial": 1}, "before", is_followed=True)
    expected = {"params": {"C": 2.0}, "at": {"trial": 1}, "after": "before", "is_followed": True}
    assert run.at_other_point("other", point) == replace(run, id="other", **expected)


def test_banks_that_are_computed_in_every_pass_take_no_disk():
    banks = [{"family": "xu2008", "backend": "recompute"}]
    plan = plan_of(DATA, {"level": grid("level")}, banks=banks)
    assert not plan.banks[0].stored
    assert plan.banks[0].n_bytes > plan.bank_bytes == 0
