"""States kept for the next rung: taken once, bounded in bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import mkldist
from mkldist.methods.registry import METHODS
from mkldist.run.tasks import StateCache, bytes_of


@dataclass
class Inner:
    values: np.ndarray


@dataclass
class State:
    weights: np.ndarray
    points: list[Inner]
    bias: float = 0.0


def state(n: int) -> State:
    return State(np.zeros(n), [Inner(np.zeros(n)), Inner(np.zeros(2 * n))])


def test_bytes_are_those_of_all_arrays_within():
    assert bytes_of(state(10)) == 8 * 40
    assert bytes_of(None) == bytes_of(1.5) == bytes_of("text") == 0


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.has_path])
@pytest.mark.parametrize("acceleration", ["working-set", "none"])
def test_the_arrays_of_every_method_count(name, acceleration):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(12, 20, 6))
    grams, y = x @ x.transpose(0, 2, 1), np.where(np.arange(20) % 2, 1.0, -1.0)
    solution = mkldist.solve(name, grams, y, acceleration=acceleration, tol=0.1)
    if solution.state is not None:
        assert bytes_of(solution.state) >= 8 * 20


def test_a_state_is_taken_once():
    kept, one = StateCache(10_000), state(10)
    kept.keep("one", one)
    assert kept.take("other") is None
    assert kept.take("one") is one
    assert kept.take("one") is None


def test_those_kept_first_make_room():
    kept = StateCache(3 * 320)
    for name in "abcd":
        kept.keep(name, state(10))
    assert kept.take("a") is None
    assert all(kept.take(name) is not None for name in "bcd")
    for _ in range(5):  # of one name, the last counts alone
        kept.keep("b", state(10))
    kept.keep("c", state(10))
    assert kept.take("b") is not None
    kept.keep("large", state(1000))
    assert kept.take("large") is None
    assert kept.take("c") is None
