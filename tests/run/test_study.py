"""A study: its rounds, with each kind of search, for losses that a test makes up."""

from __future__ import annotations

import math

import pytest

from mkldist.run.rounds import Study, drawn_batch
from mkldist.solvers.grids import Space, Span
from mkldist.spec.model import SearchSpec

SPACE = Space({"C": Span(0.01, 100.0, log=True)}, {}, {})
FEW = Space({"k": Span(1, 5, whole=True)}, {}, {})


def study(space: Space = SPACE, **keys) -> Study:
    return Study(space, SearchSpec(**keys), seed=0, ask=drawn_batch)


def by_number(trial: int, rung: int) -> float:
    return float(trial)


def test_a_random_study_has_one_round():
    one = study(kind="random", trials=7)
    assert one.advance(by_number)
    assert (len(one.trials), one.rungs) == (7, [list(range(7))])
    assert not one.advance(by_number)


def test_an_adaptive_study_has_batches():
    one = study(kind="adaptive", trials=7, batch=3)
    sizes = []
    while one.advance(by_number):
        sizes.append(len(one.trials))
    assert sizes == [3, 6, 7]


def test_a_study_ends_when_all_settings_are_tried():
    one = study(FEW, kind="adaptive", trials=20, batch=4)
    while one.advance(by_number):
        pass
    assert sorted(values["k"] for values in one.trials) == [1, 2, 3, 4, 5]


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


@pytest.mark.parametrize("kind", ["adaptive", "halving"])
def test_failed_trials_lose(kind):
    one = study(kind=kind, trials=4)
    one.advance(by_number)
    more = one.advance(lambda trial, rung: math.inf)
    assert not more
