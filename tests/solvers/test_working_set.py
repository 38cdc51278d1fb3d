"""The working set: its requests, their answers by class and point, and the kernels that join."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.requests import Combine, Quadratic
from mkldist.solvers.working_set import WorkingSet, most_newcomers, solved
from tests.methods import plain_bank

M, N, CLASSES = 60, 8, 3


@pytest.fixture
def grams() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(M, N, 4))
    return x @ x.transpose(0, 2, 1)


def answered(steps, grams: np.ndarray):
    """Return the requests of a generator, and what it returns."""
    seen, reply = [], None
    while True:
        try:
            seen.append(steps.send(reply))
        except StopIteration as end:
            return seen, end.value
        reply = plain_bank.reply(grams, seen[-1])


def forms(grams: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return ``sum_c v_jc' K_m v_jc`` for points (J, n, k), as (M, J)."""
    return np.einsum("jic,mil,jlc->mj", points, grams, points)


def at_work(*kernels: int) -> WorkingSet:
    chosen = WorkingSet(M, everything=False)
    chosen.take(np.array(kernels))
    return chosen


@pytest.mark.parametrize("n_kernels", [40, 60])
def test_few_kernels_are_all_at_work_from_the_start(n_kernels):
    chosen = WorkingSet(n_kernels, everything=False)
    assert chosen.everything == (n_kernels == 40)
    assert chosen.kernels.tolist() == list(range(40 if n_kernels == 40 else 0))
    assert len(WorkingSet(n_kernels, everything=True)) == n_kernels


def test_weights_and_combinations_are_of_the_kernels_in_their_order():
    chosen, weights = at_work(7, 2), np.array([0.25, 0.75])
    expected = np.zeros(M)
    expected[[7, 2]] = weights
    np.testing.assert_array_equal(chosen.spread(weights), expected)
    request = chosen.combination(weights)
    assert isinstance(request, Combine)
    assert request.kernels.tolist() == [7, 2]
    assert WorkingSet(M, everything=True).combination(expected).kernels is None


@pytest.mark.parametrize("shape", [(N,), (N, CLASSES)])
def test_forms_are_sums_over_the_classes_and_no_pass_on_some_kernels(grams, shape):
    point = np.random.default_rng(1).normal(size=shape)
    expected = forms(grams, point.reshape(1, N, -1))[:, 0]
    some, everything = at_work(7, 2, 30), WorkingSet(M, everything=True)
    seen, q = answered(some.quadratic(point), grams)
    np.testing.assert_allclose(q, expected[[7, 2, 30]])
    assert [request.kernels.tolist() for request in seen] == [[7, 2, 30]]
    seen, q = answered(everything.quadratic(point), grams)
    np.testing.assert_allclose(q, expected)
    assert [request.kernels for request in seen] == [None]


@pytest.mark.parametrize("shape", [(2, N), (2, N, CLASSES)])
def test_one_pass_visits_all_kernels_at_all_points(grams, shape):
    points, chosen = np.random.default_rng(2).normal(size=shape), at_work(7, 2)
    seen, q = answered(chosen.visit_all(points), grams)
    np.testing.assert_allclose(q, forms(grams, points.reshape(2, N, -1)))
    assert [request.kernels for request in seen] == [None]


def test_newcomers_are_the_largest_outside_above_the_threshold():
    chosen, q = at_work(0, 1), np.zeros(M)
    q[[0, 5, 9, 4]] = [9.0, 2.0, 3.0, 1.0]
    assert chosen.newcomers(q, 1.0).tolist() == [9, 5]
    many = np.arange(M, dtype=float)
    assert chosen.newcomers(many, -np.inf).tolist() == list(range(59, 39, -1))  # at most 20


@pytest.mark.parametrize("shape", [(2, N), (2, N, CLASSES)])
def test_kernels_that_join_are_asked_about_the_points_met(grams, shape):
    points, chosen = np.random.default_rng(3).normal(size=shape), at_work(7, 2)
    seen, q = answered(chosen.enlarge(np.array([30, 4]), points), grams)
    np.testing.assert_allclose(q, forms(grams, points.reshape(2, N, -1)).T[:, [30, 4]])
    assert [type(request) for request in seen] == [Quadratic]
    assert chosen.kernels.tolist() == [7, 2, 30, 4]
    assert answered(chosen.enlarge(np.array([5]), points[:0]), grams)[0] == []
    assert len(chosen) == 5


def test_a_working_set_may_double_or_take_a_small_share_of_very_many_kernels():
    assert most_newcomers(1000, 5) == 20
    assert most_newcomers(1000, 50) == 50
    assert most_newcomers(100_000, 30) == 50
    assert most_newcomers(1000, 5, first=40) == 40


def test_a_pass_is_due_at_a_share_of_the_last_gap_but_not_far_below_the_tolerance():
    assert solved(0.01, 1.0) == pytest.approx(0.3)
    assert solved(0.01, 1.0, 0.03) == pytest.approx(0.03)
    assert solved(0.01, 0.02) == pytest.approx(0.007)
