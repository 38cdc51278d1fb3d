"""Traces: bounds and weights that a method recorded, row by row."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist
from mkldist.solvers.progress import Clock, Own, Trace
from tests.methods.instances import balanced


class SlowClock(Clock):
    """A clock that advances by two seconds each time it is read."""

    reads = 0

    @property
    def elapsed(self) -> float:
        self.reads += 1
        return 2.0 * self.reads


def test_a_trace_that_is_not_asked_for_is_empty():
    trace = Trace(False, Clock())
    trace.record(2.0, 1.0, np.ones(3), Own(2.0, 1.0))
    assert trace.arrays() == {}
    assert Trace(True, Clock()).arrays() == {}


def test_rows_are_iterations():
    clock = SlowClock()
    trace = Trace(True, clock)
    clock.passes = 3
    trace.record(4.0, 1.0, np.array([0.0, 0.0003, 0.4, 0.1, 0.3, 0.1997, 0.0]), Own(8.0, 1.0))
    clock.passes = 5
    trace.record(2.0, 2.0, np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), Own(4.0))
    arrays = trace.arrays()
    assert arrays["seconds"].tolist() == [2.0, 4.0]
    assert arrays["passes"].tolist() == [3, 5]
    assert arrays["objective"].tolist() == [4.0, 2.0]
    assert arrays["dual_objective"].tolist() == [1.0, 2.0]
    assert arrays["gap"] == pytest.approx([0.75, 0.0])
    assert arrays["iterate_objective"].tolist() == [8.0, 4.0]
    assert arrays["iterate_gap"] == pytest.approx([0.875, np.nan], nan_ok=True)
    assert arrays["active_kernels"].tolist() == [4, 1]  # 0.0003 is less than 0.001 of 0.4
    assert arrays["largest_kernels"][0].tolist() == [2, 4, 5, 3, 1]
    assert arrays["largest_weights"][0].tolist() == [0.4, 0.3, 0.1997, 0.1, 0.0003]
    assert arrays["largest_weights"][1].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_array_equal(arrays["final_kernels"], arrays["largest_kernels"][1])
    assert arrays["final_weights"][:, 0].tolist() == [0.1, 1.0]
    np.testing.assert_array_equal(arrays["final_weights"][1], arrays["largest_weights"][1])


def test_weights_of_groups_are_recorded_as_those_of_their_kernels():
    trace = Trace(True, Clock(), lambda weights: np.repeat(weights, 2))
    trace.record(4.0, 1.0, np.array([0.0, 0.2, 0.3]), Own(4.0, 1.0))
    arrays = trace.arrays()
    assert arrays["active_kernels"].tolist() == [4]
    assert sorted(arrays["largest_kernels"][0, :4].tolist()) == [2, 3, 4, 5]
    assert arrays["largest_weights"][0].tolist() == [0.3, 0.3, 0.2, 0.2, 0.0]


def test_fewer_kernels_than_columns_for_them_are_all_listed():
    trace = Trace.of_one(True, Clock(), 2.0, 1.0, np.array([0.25, 0.75]))
    assert trace["largest_kernels"].tolist() == [[1, 0]]
    assert trace["largest_weights"].tolist() == [[0.75, 0.25]]
    assert trace["final_kernels"].tolist() == [1, 0]
    assert trace["final_weights"].tolist() == [[0.75, 0.25]]
    assert len(trace["seconds"]) == 1
    assert Trace.of_one(False, Clock(), 2.0, 1.0, np.ones(2)) == {}


def test_bounds_that_need_not_meet_have_no_gap():
    trace = Trace(True, Clock())
    trace.record(2.0, 1.0, np.ones(3), Own(3.0, 1.0))
    arrays = trace.arrays(certified=False)
    assert np.isnan([arrays["gap"], arrays["iterate_gap"]]).all()
    assert arrays["iterate_objective"].tolist() == [3.0]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("level", {}),
        ("level", {"acceleration": "none"}),
        ("silp", {}),
        ("simplemkl", {}),
        ("hessianmkl", {}),
        ("lp_mkl", {}),
        ("group_mkl", {}),
        ("skm", {}),
        ("spicymkl", {}),
        ("primalmkl", {}),
    ],
    ids=str,
)
def test_kernels_that_are_largest_at_the_end_are_followed_through_all_iterations(
    name, params, monkeypatch
):
    """The course is that of the iterates themselves, which a wrapper of the trace writes down."""
    iterates = []
    record = Trace.record

    def noted(self, objective, dual_objective, weights, own):
        iterates.append(weights.copy() if self._spread is None else self._spread(weights))
        record(self, objective, dual_objective, weights, own)

    monkeypatch.setattr(Trace, "record", noted)
    instance = balanced()
    further = {"groups": [0, 0, 0, 1, 1, 2, 2]} if name == "group_mkl" else {}
    found = mkldist.solve(
        name, instance.grams, instance.y, trace=True, tol=1e-4, **params, **further
    )
    trace, weights = found.trace, np.array(iterates)
    assert len(weights) == len(trace["objective"]) > 1
    last = np.sort(weights[-1])[::-1][:5]
    np.testing.assert_array_equal(trace["final_weights"][-1], last)
    np.testing.assert_array_equal(trace["final_weights"], weights[:, trace["final_kernels"]])
    assert len({*trace["final_kernels"].tolist()}) == 5
