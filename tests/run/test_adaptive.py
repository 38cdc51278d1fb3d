"""What Optuna proposes: a function of the trials before, in batches, near the optimum."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from mkldist.run.rounds import STARTUP, all_fresh, proposed
from mkldist.solvers.grids import Space, Span

SPACE = Space({"C": Span(1e-3, 1e3, log=True)}, {"loss": ["hinge", "squared"]}, {})
FEW = Space({"k": Span(1, 12, whole=True)}, {}, {})


def loss_of(values) -> float:
    return abs(math.log10(values["C"]) - 1.5) + (values["loss"] == "squared")


def searched(batch: int, n_trials: int, seed: int = 0):
    before = []
    while len(before) < n_trials:
        before += [(values, loss_of(values)) for values in proposed(SPACE, seed, before, batch)]
    return before


def test_the_first_trials_are_random_and_need_no_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    found = proposed(SPACE, 0, [], 16)
    assert found == list(all_fresh(SPACE, 0, range(16), ()))


def test_proposals_are_a_function_of_what_was_found():
    pytest.importorskip("optuna", reason="adaptive search needs the extra `search`")
    before = [(values, loss_of(values)) for values in all_fresh(SPACE, 0, range(STARTUP), ())]
    one = proposed(SPACE, 0, before, 6)
    assert one == proposed(SPACE, 0, before, 6)
    assert one[:4] == proposed(SPACE, 0, before, 4)
    assert one != proposed(SPACE, 1, before, 6)
    turned = [(values, -loss) for values, loss in before]
    assert one != proposed(SPACE, 0, turned, 6)
    assert len({values["C"] for values in one}) == 6


def test_later_trials_are_near_the_optimum():
    pytest.importorskip("optuna", reason="adaptive search needs the extra `search`")
    better = []
    for seed in range(5):
        losses = [loss for _, loss in searched(5, 50, seed)]
        better.append(np.median(losses[30:]) < np.median(losses[:STARTUP]))
    assert all(better)


def test_failed_trials_and_a_small_space_do_no_harm():
    pytest.importorskip("optuna", reason="adaptive search needs the extra `search`")
    before = []
    while batch := proposed(FEW, 0, before, 4):
        before += [(v, math.inf if v["k"] % 2 else float(v["k"])) for v in batch]
    assert sorted(values["k"] for values, _ in before) == list(range(1, 13))
