"""Rounds of a sweep: a function of the file and of what is recorded, and of nothing else."""

from __future__ import annotations

import itertools
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from mkldist.planning.model import Plan
from mkldist.planning.resolved import resolve
from mkldist.run.rounds import Rounds
from mkldist.spec.model import SweepSpec

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
SIZES = HALVING + '\nresource = "training-size"'


ADAPTIVE = pytest.mark.skipif(
    find_spec("optuna") is None, reason="adaptive search needs the extra `search`"
)


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


@pytest.mark.parametrize(
    ("search", "n_runs"),
    [
        ("kind = 'random'\ntrials = 7", [14]),
        pytest.param("kind = 'adaptive'\ntrials = 14\nbatch = 6", [12, 24, 28], marks=ADAPTIVE),
        (HALVING, [18, 24, 26]),
        (SIZES, [18, 24, 26]),
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


def test_a_replay_stops_where_a_run_is_missing():
    rounds, store = rounds_of(HALVING), Store()
    found = to_the_end(rounds, store)
    store.recorded.remove(next(iter(found[0])))
    rounds.replay(store)
    assert {run.id for run in rounds.plan.runs} == found[0]


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
    by_id = {run.id: run for run in rounds.plan.runs}
    tols = sorted({run.params["tol"] for run in by_id.values()}, reverse=True)
    assert tols == rounds.resolved.grids["two_moons"]["level"].dims["tol"]
    for run in by_id.values():
        rung = tols.index(run.params["tol"])
        assert bool(run.after) == (rung > 0)
        assert run.is_followed == (rung < 2)
        if run.after:
            last = by_id[run.after]
            assert last.params == run.params | {"tol": tols[rung - 1]}
            assert last.place == run.place


@pytest.mark.parametrize("fit", ["train", "all"])
def test_rungs_of_shares_learn_from_nested_rows(fit):
    rounds = rounds_of(SIZES, fit=fit)
    to_the_end(rounds, Store())
    _, splits = rounds.resolved.datasets["two_moons"]
    banks = {bank.id: bank for bank in rounds.plan.banks}
    for run in rounds.plan.runs:
        whole, part = splits[run.at["split"]], splits[run.split]
        assert set(part.train) <= set(whole.train)
        share = run.at["training_fraction"]
        assert len(part.train) == sum(-(-share * n // 1) for n in (10, 10))
        assert banks[run.bank].n_points == (len(part.train) if fit == "train" else 40)
        assert not run.after
    assert {run.split for run in rounds.plan.runs if run.at["training_fraction"] == 1} <= {0, 1}


def test_banks_are_kept_for_the_rounds_that_need_them():
    tolerances, sizes = rounds_of(HALVING), rounds_of(SIZES)
    of_all = {bank.id for bank in tolerances.plan.banks}
    assert tolerances.later_banks == of_all
    assert not sizes.later_banks & {bank.id for bank in sizes.plan.banks}
    for rounds in (tolerances, sizes):
        to_the_end(rounds, Store())
        assert not rounds.later_banks


@pytest.mark.parametrize(
    ("kind", "few", "many"),
    [("'random'", 6, 9), pytest.param("'adaptive'\nbatch = 6", 14, 18, marks=ADAPTIVE)],
)
def test_more_trials_repeat_none(kind, few, many):
    store = Store()
    to_the_end(rounds_of(f"kind = {kind}\ntrials = {few}"), store)
    few = set(store.recorded)
    more = rounds_of(f"kind = {kind}\ntrials = {many}")
    assert few <= to_the_end(more, store)[-1]


def test_the_best_is_that_of_the_last_rung_with_losses():
    rounds, store = rounds_of(HALVING), Store()
    to_the_end(rounds, store)
    assert len(rounds.best()) == 2
    for place, (loss, values) in rounds.best().items():
        [run] = [r for r in rounds.plan.runs if r.params["tol"] == 0.01 and r.place == place]
        assert loss == int(run.id[:6], 16) / 16**6
        assert values == {"C": run.params["C"]}


def test_a_search_takes_the_greatest_of_a_metric_that_is_better_greater():
    rounds, store = rounds_of(HALVING, metric="auc"), Store()
    first, *_ = to_the_end(rounds, store)
    aucs = {i: int(i[:6], 16) / 16**6 for i in first}
    for place in rounds.best():
        trials = [r for r in rounds.plan.runs if r.place == place and r.id in first]
        asked = {r.params["C"] for r in rounds.plan.runs if r.place == place and r.id not in first}
        best = sorted(trials, key=lambda run: -aucs[run.id])[: len(asked)]
        assert {run.params["C"] for run in best} == asked


def test_without_a_loss_there_is_no_best():
    rounds = rounds_of(HALVING)
    assert rounds.best() == {}
    failed = Store()
    failed.record(rounds.plan)
    failed.read = lambda run_id: SimpleNamespace(scores={})
    assert not rounds.advance(failed)
    assert rounds.best() == {}
