"""Random settings: a function of seed and trial, uniform, and never twice."""

from __future__ import annotations

import numpy as np

from mkldist.run.rounds import all_fresh, drawn, fresh, setting_key
from mkldist.solvers.grids import Space, Span

SPACE = Space({"C": Span(0.0, 1.0)}, {"loss": ["a", "b", "c"]}, {})
FEW = Space({"k": Span(1, 3, whole=True)}, {"loss": ["a", "b"]}, {})


def test_a_draw_depends_on_seed_and_trial_alone():
    one = [drawn(SPACE, 0, trial) for trial in range(5)]
    assert one == [drawn(SPACE, 0, trial) for trial in range(5)]
    assert one != [drawn(SPACE, 1, trial) for trial in range(5)]
    other = Space({"lam": Span(0.0, 1.0), "C": Span(0.0, 1.0)}, {}, {})
    assert [values["C"] for values in one] == [drawn(other, 0, t)["C"] for t in range(5)]


def test_draws_are_uniform_and_independent():
    values = [drawn(SPACE, 0, trial) for trial in range(3000)]
    C = np.array([v["C"] for v in values])
    assert abs(C.mean() - 0.5) < 0.02
    assert abs(C.var() - 1 / 12) < 0.005
    counts = np.unique([v["loss"] for v in values], return_counts=True)[1]
    assert abs(counts / 3000 - 1 / 3).max() < 0.03
    of_a = C[[v["loss"] == "a" for v in values]]
    assert abs(of_a.mean() - 0.5) < 0.03


def test_no_setting_is_tried_twice_and_a_small_space_ends():
    found = list(all_fresh(FEW, 0, range(10), ()))
    assert len(found) == 6
    assert len({tuple(values.items()) for values in found}) == 6
    assert fresh(FEW, 0, 7, {setting_key(values) for values in found}) is None


def test_more_trials_begin_with_the_same_settings():
    assert list(all_fresh(FEW, 3, range(5), ()))[:3] == list(all_fresh(FEW, 3, range(3), ()))


def test_lists_are_settings_too_and_are_looked_up_by_hash():
    lists = Space({}, {"widths": [[1.0], [2.0]], "start": [{"a": 1}, None]}, {})
    found = list(all_fresh(lists, 0, range(9), ({"widths": [1.0], "start": None},)))
    assert len(found) == 3
    compared = 0

    class Value(float):
        __hash__ = float.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return super().__eq__(other)

    many = Space({}, {"C": [Value(number) for number in range(300)]}, {})
    assert len(list(all_fresh(many, 0, range(200), ()))) == 200
    assert compared < 2000  # 200 * 199 / 2 and more where each is held to each
