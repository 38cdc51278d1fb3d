"""Rounds of a sweep, and what a search proposes: a function of the file and of the records."""

import itertools
import math
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mkldist.planning.model import Plan
from mkldist.planning.resolved import resolve
from mkldist.results.schema import RunState
from mkldist.run.rounds import (
    Rounds,
    Study,
    all_fresh,
    drawn,
    survivors,
)
from mkldist.solvers.grids import Space, Span
from mkldist.spec.model import SearchSpec, SweepSpec

SWEEP = """
name = "s"
[[datasets]]
name = "two_moons"
options = {{ n = 40 }}
[preprocessing]
fit = "{fit}"
[splits]
repeats = 2
[selection]
folds = 2
[search]
{search}
[[banks]]
[[banks.kernels]]
function = "gaussian"
widths = [0.1, 1.0]
{methods}
"""
LEVEL = '[[methods]]\nname = "level"\nC = { low = 0.01, high = 1000, scale = "log" }\n'
OTHER = LEVEL + 'label = "other"\n'
GRID = '[[methods]]\nname = "uniform"\nC = [1, 10]\n'
HALVING = 'kind = "halving"\ntrials = 9'


class Store:
    """Records of made-up losses, which depend on the run alone."""

    def __init__(self) -> None:
        self.recorded: set[str] = set()
        self.read_ids: list[str] = []

    def record(self, plan: Plan) -> None:
        self.recorded |= {run.id for run in plan.runs}

    def read(self, run_id: str):
        self.read_ids.append(run_id)
        if run_id not in self.recorded:
            return None
        score = int(run_id[:6], 16) / 16**6
        return SimpleNamespace(scores={"validation_error": score, "validation_auc": score})


def rounds_of(
    search: str, methods: str = LEVEL, fit: str = "train", metric: str = "error"
) -> Rounds:
    text = SWEEP.format(search=search, methods=methods, fit=fit)
    text = text.replace("[selection]\n", f'[selection]\nmetric = "{metric}"\n')
    spec = SweepSpec.model_validate(tomllib.loads(text))
    return Rounds(spec, resolve(spec, (), Path()), 1, None)


def to_the_end(rounds: Rounds, store: Store) -> list[set[str]]:
    """Record round after round; return the ids of all runs after each."""
    found = []
    more = True
    while more:
        store.record(rounds.plan)
        found.append({run.id for run in rounds.plan.runs})
        more = rounds.advance(store)
    return found


def test_a_sweep_of_grids_has_one_round_and_reads_nothing():
    rounds = rounds_of("kind = 'random'\ntrials = 2", LEVEL + GRID)
    text = SWEEP.replace("[search]\n{search}\n", "").format(methods=GRID, fit="train")
    spec = SweepSpec.model_validate(tomllib.loads(text))
    grids, store = Rounds(spec, resolve(spec, (), Path()), 1, None), Store()
    grids.replay(store)
    assert not grids.advance(store)
    assert grids.most is grids.plan
    assert store.read_ids == []
    ids = {run.id for run in grids.plan.runs}
    assert ids == {run.id for run in rounds.plan.runs if run.key == "uniform"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "n_runs"),
    [
        ("kind = 'random'\ntrials = 7", [14]),
        (HALVING, [18, 24, 26]),
    ],
)
def test_what_is_proposed_follows_from_what_is_recorded(search, n_runs):
    rounds, store = rounds_of(search), Store()
    found = to_the_end(rounds, store)
    assert [len(ids) for ids in found] == n_runs
    assert all(few <= more for few, more in itertools.pairwise(found))
    again = rounds_of(search)
    again.replay(store)
    assert again.plan.id == rounds.plan.id
    assert [run.id for run in again.plan.runs] == [run.id for run in rounds.plan.runs]
    assert len(rounds.most.runs) == n_runs[-1]
    lost = next(iter(found[-1] - found[-2])) if len(found) > 1 else next(iter(found[0]))
    store.recorded.remove(lost)
    again.replay(store)
    assert {run.id for run in again.plan.runs} == found[-1]
    assert not again.advance(store)


def test_the_same_setting_at_two_places_has_two_runs_whatever_was_proposed_elsewhere():
    both, store = rounds_of(HALVING, LEVEL + OTHER), Store()
    found = to_the_end(both, store)
    assert len(found[-1]) == len(both.plan.runs) == 2 * 26
    alone, own = rounds_of(HALVING, LEVEL), Store()
    to_the_end(alone, own)
    assert own.recorded <= store.recorded


def test_rungs_of_tolerances_follow_each_other():
    rounds = rounds_of(HALVING)
    to_the_end(rounds, Store())
    tols = sorted({run.params["tol"] for run in rounds.plan.runs}, reverse=True)
    assert tols == rounds.resolved.grids["two_moons"]["level"].dims["tol"]
    on_rungs = [
        {(run.place, run.at["trial"]) for run in rounds.plan.runs if run.params["tol"] == tol}
        for tol in tols
    ]
    assert on_rungs[0] > on_rungs[1] > on_rungs[2]


def test_banks_are_kept_for_the_rounds_that_need_them():
    rounds = rounds_of(HALVING)
    assert rounds.later_banks == {bank.id for bank in rounds.plan.banks}
    to_the_end(rounds, Store())
    assert not rounds.later_banks


def test_more_trials_repeat_none():
    store = Store()
    to_the_end(rounds_of("kind = 'random'\ntrials = 6"), store)
    few = set(store.recorded)
    more = rounds_of("kind = 'random'\ntrials = 9")
    assert few <= to_the_end(more, store)[-1]


def test_a_search_takes_the_greatest_of_a_metric_that_is_better_greater():
    rounds, store = rounds_of(HALVING, metric="auc"), Store()
    first, *_ = to_the_end(rounds, store)
    aucs = {i: int(i[:6], 16) / 16**6 for i in first}
    for place in {run.place for run in rounds.plan.runs}:
        trials = [r for r in rounds.plan.runs if r.place == place and r.id in first]
        asked = {r.params["C"] for r in rounds.plan.runs if r.place == place and r.id not in first}
        best = sorted(trials, key=lambda run: -aucs[run.id])[: len(asked)]
        assert {run.params["C"] for run in best} == asked


GIVEN_SWEEP = """
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


class GivenStore:
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
    spec = SweepSpec.model_validate(tomllib.loads(GIVEN_SWEEP))
    return Rounds(spec, resolve(spec, (), Path()), 1, None)


def test_runs_begin_when_the_runs_that_give_their_c_are_recorded(rounds):
    store, before = GivenStore(), {run.id for run in rounds.plan.runs}
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
    store = GivenStore()
    store.record(rounds)
    rounds.replay(store)
    ids = [run.id for run in rounds.plan.runs]
    assert len(ids) == len({*ids}) == 14
    rounds.replay(store)
    assert ids == [run.id for run in rounds.plan.runs]


@pytest.mark.parametrize("broken", [{"state": RunState.FAILED}, {"extra": {"norm_sum": 0.0}}])
def test_a_run_that_gives_no_c_leaves_out_those_that_take_it(rounds, broken):
    store = GivenStore()
    store.record(rounds)
    failed = next(run for run in rounds.plan.runs if run.key == "spicymkl")
    vars(store.records[failed.id]).update(broken)
    rounds.replay(store)
    assert sum(run.key == "level" for run in rounds.plan.runs) == 6
    assert rounds.without_C == [failed]
    assert rounds.most_runs == len(rounds.plan.runs) == 12


def test_c_is_rounded_to_six_digits(rounds):
    store = GivenStore()
    store.record(rounds)
    for record in store.records.values():
        record.extra["norm_sum"] = math.pi
    rounds.replay(store)
    given = {run.params["C"] for run in rounds.plan.runs if run.key == "level"}
    assert given == {float(f"{math.pi / 0.5:.6g}"), float(f"{math.pi / 2:.6g}")}


SPACE = Space({"C": Span(0.01, 100.0, log=True)}, {}, {})


def study(space: Space = SPACE, **keys) -> Study:
    return Study(space, SearchSpec(**keys), seed=0)


def by_number(trial: int, rung: int) -> float:
    return float(trial)


def test_halving_keeps_the_best_of_each_rung():
    one = study(kind="halving", trials=9)
    calls = []

    def loss(trial, rung):
        calls.append((trial, rung))
        return [8, 7, 6, 5, 4, 3, 2, 1, 0][trial] if rung == 0 else float(trial)

    while one.advance(loss):
        pass
    assert one.rungs == [list(range(9)), [6, 7, 8], [6]]
    assert calls == [(t, 0) for t in range(9)] + [(t, 1) for t in (6, 7, 8)]


def test_failed_trials_lose():
    one = study(kind="halving", trials=4)
    one.advance(by_number)
    more = one.advance(lambda trial, rung: math.inf)
    assert not more


LOSSES = Space({"C": Span(0.0, 1.0)}, {"loss": ["a", "b", "c"]}, {})
SIX = Space({"k": Span(1, 3, whole=True)}, {"loss": ["a", "b"]}, {})


def test_a_draw_depends_on_seed_and_trial_alone():
    one = [drawn(LOSSES, 0, trial) for trial in range(5)]
    assert one == [drawn(LOSSES, 0, trial) for trial in range(5)]
    assert one != [drawn(LOSSES, 1, trial) for trial in range(5)]
    other = Space({"lam": Span(0.0, 1.0), "C": Span(0.0, 1.0)}, {}, {})
    assert [values["C"] for values in one] == [drawn(other, 0, t)["C"] for t in range(5)]


def test_draws_are_uniform_and_independent():
    values = [drawn(LOSSES, 0, trial) for trial in range(3000)]
    C = np.array([v["C"] for v in values])
    assert abs(C.mean() - 0.5) < 0.02
    assert abs(C.var() - 1 / 12) < 0.005
    counts = np.unique([v["loss"] for v in values], return_counts=True)[1]
    assert abs(counts / 3000 - 1 / 3).max() < 0.03
    of_a = C[[v["loss"] == "a" for v in values]]
    assert abs(of_a.mean() - 0.5) < 0.03


def test_no_setting_is_tried_twice_and_a_small_space_ends():
    found = list(all_fresh(SIX, 0, 10))
    assert len(found) == 6
    assert len({tuple(values.items()) for values in found}) == 6


def test_more_trials_begin_with_the_same_settings():
    assert list(all_fresh(SIX, 3, 5))[:3] == list(all_fresh(SIX, 3, 3))


def test_lists_are_settings_too_and_are_looked_up_by_hash():
    lists = Space({}, {"widths": [[1.0], [2.0]], "start": [{"a": 1}, None]}, {})
    assert len(list(all_fresh(lists, 0, 9))) == 4
    compared = 0

    class Value(float):
        __hash__ = float.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

    many = Space({}, {"C": [Value(number) for number in range(300)]}, {})
    assert len(list(all_fresh(many, 0, 200))) == 200
    assert compared < 2000  # 200 * 199 / 2 and more where each is held to each


@pytest.mark.parametrize(
    ("losses", "factor", "kept"),
    [
        ([0.3, 0.1, 0.2], 3, [1]),
        ([0.3, 0.1, 0.2, 0.1], 3, [1, 3]),
        ([0.2, 0.2, 0.2], 2, [0, 1]),
        ([math.inf, 0.9, math.inf], 1, [1]),
        ([math.inf, math.inf], 2, []),
    ],
)
def test_the_best_go_on(losses, factor, kept):
    assert survivors(dict(enumerate(losses)), factor) == kept
