"""The course of weights over a trace's iterations: whole if there is room, else of the largest."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from mkldist.core.memory import TRACED_WEIGHT_BYTES, trace_bytes
from mkldist.solvers.progress import WeightHistory, largest


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
