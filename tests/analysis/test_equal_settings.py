"""Runs of one method at equal settings in two results, and certificates that contradict."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mkldist.analysis.comparison import EqualSettings, at_equal_settings
from mkldist.analysis.pairing import paired
from tests.analysis.two_sweeps import by_name, level_and_uniform, made, records_of

ERRORS = {("heart", "level"): [0.1, 0.2, 0.3], ("heart", "uniform"): [0.2] * 3}
SPLITS = ("s0", "s1", "s2")


def level_in_both(folder, **changes) -> tuple[EqualSettings | None, tuple[np.ndarray, np.ndarray]]:
    first = made(folder / "a", ERRORS, split_names=SPLITS)
    second = made(folder / "b", ERRORS, split_names=SPLITS, **changes)
    pairs, _ = paired(first, second, by_name)
    seconds = tuple(
        np.array([sum(r.times[n] for n in ("own_seconds", "pass_seconds")) for r in
                  sorted(records_of(results), key=lambda r: r.id) if r.key == "level"])
        for results in (first, second)
    )  # fmt: skip
    return at_equal_settings(pairs[0]), seconds


def test_bounds_that_meet_agree(tmp_path):
    found, (first, second) = level_in_both(tmp_path, objective=10.05)
    assert found is not None
    assert found.n_runs == 6  # two values of C on three splits
    assert found.objective_change == pytest.approx(0.05 / 10.05)
    assert found.contradictions == 0
    assert found.seconds_ratio == pytest.approx(np.median(first / second))


def test_an_objective_below_the_bound_of_the_other_contradicts_it(tmp_path):
    found, _ = level_in_both(tmp_path, objective=9.0)
    assert found is not None
    assert found.contradictions == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "comparable"),
    [("far", 0.5, True), ("stop", "point", True), ("cache", 1, False), ("norm", 2.0, False)],
)
def test_settings_that_steer_the_solver_alone_leave_the_problem(tmp_path, name, value, comparable):
    first = made(tmp_path / "a", ERRORS, split_names=SPLITS)
    second = made(tmp_path / "b", ERRORS, split_names=SPLITS)
    pair, _ = paired(first, second, by_name)[0]
    node = pair.second.node
    settings = json.loads(node.attrs.get("settings", "{}"))
    node.attrs["settings"] = json.dumps({**settings, name: value})
    assert (at_equal_settings(pair) is not None) == comparable


@pytest.mark.slow
def test_other_kernels_or_methods_are_not_held_to_each_other(tmp_path):
    assert level_in_both(tmp_path, bank="another bank")[0] is None
    results = made(tmp_path / "c", ERRORS, split_names=SPLITS)
    pairs, _ = paired(results, results, level_and_uniform)
    assert at_equal_settings(pairs[0]) is None
