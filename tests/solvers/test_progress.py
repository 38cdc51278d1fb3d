"""Clocks, bounds and traces of solvers."""

import threading
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import mkldist
from mkldist.core import compiled as compiled_module
from mkldist.core.compiled import compiled, preparation_seconds
from mkldist.core.memory import TRACED_WEIGHT_BYTES, trace_bytes
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers import progress as clock_module
from mkldist.solvers.progress import Bounds, Clock, Own, Trace, WeightHistory, largest
from tests.methods.instances import balanced


@pytest.fixture
def now(monkeypatch):
    """Return the time that the clock reads, for the test to change."""
    now = [100.0]
    for module in (clock_module, compiled_module):
        monkeypatch.setattr(
            module, "time", SimpleNamespace(perf_counter=lambda: now[0], thread_time=lambda: now[0])
        )
    return now


def test_a_clock_counts_while_it_runs_and_what_it_is_charged(now):
    clock = Clock()
    now[0] += 2.0
    assert clock.elapsed == 2.0
    clock.pause()
    now[0] += 50.0
    assert clock.elapsed == 2.0
    clock.charge(0.5)
    assert clock.elapsed == 2.5
    clock.resume()
    now[0] += 1.0
    assert clock.elapsed == 3.5
    assert clock.past(3.5)
    assert not clock.past(3.6)


@compiled
def plus_one(x):
    return x + 1


@pytest.mark.usefixtures("compiled_folder")
def test_a_clock_stands_still_while_its_thread_compiles():
    clock, begun = Clock(), time.perf_counter()
    assert plus_one(1) == 2
    took, counted = time.perf_counter() - begun, clock.elapsed
    assert counted < 0.5 * took
    wall, cpu = preparation_seconds()
    assert wall > 0.5 * took
    assert 0 < cpu <= wall


def test_a_clock_stands_still_while_python_calls_what_is_not_compiled(now, monkeypatch):
    monkeypatch.setattr(compiled_module, "SECONDS_IN_PYTHON", 60.0)

    def takes(seconds):
        now[0] += seconds

    def takes_more(seconds):
        in_python(seconds)
        now[0] += seconds

    python_first = compiled(python_first=True)
    in_python, with_another, clock = python_first(takes), python_first(takes_more), Clock()
    now[0] += 1.0
    in_python(3.0)
    with_another(5.0)
    now[0] += 1.0
    assert clock.elapsed == pytest.approx(2.0)


def test_a_clock_goes_on_while_another_thread_prepares(now, monkeypatch):
    monkeypatch.setattr(compiled_module, "SECONDS_IN_PYTHON", 60.0)

    def takes(seconds):
        now[0] += seconds

    clock = Clock()
    other = threading.Thread(target=compiled(python_first=True)(takes), args=(5.0,))
    other.start()
    other.join()
    assert clock.elapsed == pytest.approx(5.0)


DUAL = np.ones(3)


def test_the_best_value_point_and_lower_bound_are_kept():
    bounds = Bounds("first")
    for point, value, lower in (("a", 5.0, 1.0), ("b", 3.0, 0.5), ("c", 4.0, 2.0)):
        bounds.take(point, value, lower, np.array([lower]))
    assert (bounds.best, bounds.upper, bounds.lower) == ("b", 3.0, 2.0)
    assert bounds.dual_point == [2.0]
    assert not bounds.improve_lower(1.5, np.array([1.5]))
    assert bounds.dual_point == [2.0]
    assert bounds.gap == 1 / 3


def test_idle_counts_the_iterations_since_a_bound_became_better():
    bounds = Bounds("first", lower=0.0)
    seen = []
    for value, lower in ((5.0, 1.0), (5.0, 1.0), (6.0, 0.0), (5.0, 1.5), (4.0, 1.5), (4.0, 1.0)):
        bounds.take("point", value, lower, DUAL)
        seen.append(bounds.idle)
    assert seen == [0, 1, 2, 0, 0, 1]


def test_changes_below_the_progress_asked_for_are_taken_but_count_as_idle():
    bounds = Bounds("first", progress=0.1)
    bounds.take("a", 10.0, 1.0, DUAL)
    bounds.take("b", 9.5, 1.5, DUAL)
    assert (bounds.best, bounds.lower, bounds.idle) == ("b", 1.5, 1)
    bounds.take("c", 8.0, 1.5, DUAL)
    assert bounds.idle == 0


def test_a_restart_keeps_the_point_and_forgets_the_lower_bound():
    bounds = Bounds("first")
    bounds.take("a", 2.0, 1.9, DUAL)
    bounds.take("a", 2.0, 1.9, DUAL)
    bounds.restart(1.0)
    assert (bounds.best, bounds.upper, bounds.lower, bounds.idle) == ("a", 2.0, 1.0, 0)


def test_the_own_values_are_those_of_the_last_point():
    bounds = Bounds("first")
    for point, value, lower in (("a", 4.0, 3.0), ("b", 8.0, 2.0)):
        bounds.take(point, value, lower, DUAL)
    assert bounds.own == Own(8.0, 2.0)
    assert (relative_gap(*bounds.own), bounds.gap) == (0.75, 0.25)


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
    one = Trace(True, Clock())
    one.record(2.0, 1.0, np.array([0.25, 0.75]), Own(2.0, 1.0))
    trace = one.arrays()
    assert trace["largest_kernels"].tolist() == [[1, 0]]
    assert trace["largest_weights"].tolist() == [[0.75, 0.25]]
    assert trace["final_kernels"].tolist() == [1, 0]
    assert trace["final_weights"].tolist() == [[0.75, 0.25]]
    assert len(trace["seconds"]) == 1


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


def some_weights(n_iterations: int, n_kernels: int, share: float = 0.5) -> np.ndarray:
    """Return weights, of which a share is other than 0."""
    draw = np.random.default_rng(1)
    weights = draw.uniform(size=(n_iterations, n_kernels))
    return np.where(draw.uniform(size=weights.shape) < share, weights, 0.0)


def course_of(weights: np.ndarray, n_entries: int, least: int = 2) -> WeightHistory:
    course = WeightHistory(n_entries * TRACED_WEIGHT_BYTES, least)
    for row in weights:
        course.add(row)
    return course


def test_weights_of_all_iterations_are_kept_where_there_is_room():
    weights = some_weights(7, 11)
    course = course_of(weights, np.count_nonzero(weights))
    np.testing.assert_array_equal(course.of(np.arange(11)), weights)
    np.testing.assert_array_equal(course.of(np.array([10, 3])), weights[:, [10, 3]])


def test_of_equal_weights_the_first_stay_so_that_the_largest_of_a_row_are_known():
    course = course_of(np.full((9, 40), 0.025), 60)
    found = course.of(largest(np.full(40, 0.025), 2))
    assert not np.isnan(found).any()
    assert np.isnan(course.of(np.arange(40))).any()


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("n_entries", [60, 100, 200])
def test_without_room_the_largest_stay_and_the_others_are_unknown(n_entries, share):
    weights = some_weights(30, 20, share)
    found = course_of(weights, n_entries).of(np.arange(20))
    known = ~np.isnan(found)
    np.testing.assert_array_equal(found[known], weights[known])
    assert np.count_nonzero(np.nan_to_num(found)) <= max(n_entries, 30 * 2)
    for row, is_known, kept in zip(weights, known, found, strict=True):
        if not is_known.all():
            assert np.count_nonzero(np.nan_to_num(kept)) >= 2
            assert row[~is_known].max() <= row[is_known].min()
    assert known.all() == (np.count_nonzero(weights) <= n_entries)


@pytest.mark.slow
def test_many_iterations_of_many_kernels_take_the_bytes_of_the_plan():
    n_kernels = 200_000
    draw = np.random.default_rng(0)
    weights = draw.uniform(size=n_kernels)
    course = WeightHistory(trace_bytes(n_kernels), 5)
    tracemalloc.start()
    try:
        for _ in range(40):
            course.add(weights)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.01 * trace_bytes(n_kernels)
    assert peak < trace_bytes(n_kernels) + 5 * weights.nbytes
    top = np.argsort(-weights)[:5]
    np.testing.assert_array_equal(course.of(top), np.tile(weights[top], (40, 1)))
