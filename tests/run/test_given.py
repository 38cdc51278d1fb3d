"""Rounds in which methods take their C from the recorded runs of another, on the same split."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from mkldist.planning.resolved import resolve
from mkldist.results.schema import RunState
from mkldist.run.rounds import Rounds
from mkldist.spec.model import SweepSpec

SWEEP = """
name = "s"
datasets = [{ name = "two_moons", options = { n = 40 } }]
splits = { repeats = 2 }
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 1.0]
[[methods]]
name = "spicymkl"
loss = "hinge"
C = [0.5, 2]
[[methods]]
name = "level"
C = { from = "spicymkl" }
near = [0.8, 0.9]
[[methods]]
name = "uniform"
"""


class Store:
    """Made-up records: the sum of norms is told by C and split of the run."""

    def __init__(self) -> None:
        self.records: dict[str, SimpleNamespace] = {}

    def record(self, rounds: Rounds) -> None:
        for run in rounds.plan.runs:
            norms = (10 * run.split + run.params["C"]) / run.params["C"]
            extra = {"norm_sum": norms}
            self.records[run.id] = SimpleNamespace(state=RunState.COMPLETE, extra=extra, scores={})

    def read(self, run_id: str) -> SimpleNamespace | None:
        return self.records.get(run_id)


@pytest.fixture
def rounds() -> Rounds:
    spec = SweepSpec.model_validate(tomllib.loads(SWEEP))
    return Rounds(spec, resolve(spec, (), Path()), 1, None)


def test_runs_begin_when_the_runs_that_give_their_c_are_recorded(rounds):
    store, before = Store(), {run.id for run in rounds.plan.runs}
    assert {run.key for run in rounds.plan.runs} == {"spicymkl", "uniform"}
    assert not rounds.advance(store)
    store.record(rounds)
    assert rounds.advance(store)
    taken = [run for run in rounds.plan.runs if run.key == "level"]
    found = sorted((run.split, run.at["source_C"], run.params["C"]) for run in taken)
    assert found == sorted(2 * [(0, 0.5, 0.5), (0, 2.0, 2.0), (1, 0.5, 10.5), (1, 2.0, 12.0)])
    assert sorted({run.params["near"] for run in taken}) == [0.8, 0.9]
    assert before < {run.id for run in rounds.plan.runs}
    store.record(rounds)
    assert not rounds.advance(store)
    assert not rounds.without_C


def test_the_whole_work_is_known_before_any_record(rounds):
    assert rounds.most_runs == len(rounds.most.runs) == 2 * (2 + 4 + 1)
    assert rounds.later_banks == {bank.id for bank in rounds.plan.banks}


def test_replaying_the_records_gives_the_same_runs(rounds):
    store = Store()
    store.record(rounds)
    rounds.replay(store)
    ids = [run.id for run in rounds.plan.runs]
    assert len(ids) == len({*ids}) == 14
    rounds.replay(store)
    assert ids == [run.id for run in rounds.plan.runs]


@pytest.mark.parametrize("broken", [{"state": RunState.FAILED}, {"extra": {"norm_sum": 0.0}}])
def test_a_run_that_gives_no_c_leaves_out_those_that_take_it(rounds, broken):
    store = Store()
    store.record(rounds)
    failed = next(run for run in rounds.plan.runs if run.key == "spicymkl")
    vars(store.records[failed.id]).update(broken)
    rounds.replay(store)
    assert sum(run.key == "level" for run in rounds.plan.runs) == 6
    assert rounds.without_C == [failed]
    assert rounds.most_runs == len(rounds.plan.runs) == 12


def test_c_is_rounded_to_six_digits(rounds):
    store = Store()
    store.record(rounds)
    for record in store.records.values():
        record.extra["norm_sum"] = math.pi
    rounds.replay(store)
    given = {run.params["C"] for run in rounds.plan.runs if run.key == "level"}
    assert given == {float(f"{math.pi / 0.5:.6g}"), float(f"{math.pi / 2:.6g}")}
