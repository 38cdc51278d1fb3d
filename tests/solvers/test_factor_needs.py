"""Which factors lack too much for a solution: `factor_needs`, on numbers made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from mkldist.solvers import on_factors
from mkldist.solvers.exact_certificate import ExactForms


def solution(weights, coefficients=(1.0, 0.0, 2.0), slopes=(0.5, 0.0, 1.0)):
    return SimpleNamespace(
        kernel_weights=np.array(weights),
        coefficients=np.array(coefficients),
        dual_variables=np.array(slopes),
    )


def forms(exact, found, of_rests=None):
    exact, found = (np.array(one, dtype=float)[:, None] for one in (exact, found))
    rests = np.zeros_like(exact) if of_rests is None else np.array(of_rests, dtype=float)[:, None]
    return ExactForms(exact, found, rests)


def factor(rank, left=0.0):
    return SimpleNamespace(rank=rank, left=left)


def test_ranks_grow_by_the_root_of_what_is_lacking_within_limits():
    factors = [factor(10), factor(10), factor(100), factor(0)]
    wanted = on_factors.longer(factors, np.array([0, 1, 2, 3]), np.array([1.0, 4.0, 100.0, 9.0]))
    assert wanted == {0: 16, 1: 21, 2: 401, 3: 4}


def test_norms_that_lack_little_together_blame_no_kernel():
    one = solution([0.5, 0.5])
    assert on_factors.unit_of_norms(one) == pytest.approx(0.5)
    # 0.5 * 0.5 * 0.5 * lack: shares of 0.125 and 0.0125
    lack, active = np.array([1.0, 0.1]), np.arange(2)
    assert not on_factors.lacked_by_norms(one, active, lack, allowed=0.1375).any()
    ratios = on_factors.lacked_by_norms(one, active, lack, allowed=0.1)
    np.testing.assert_allclose(ratios, [2.5, 0.0])


def test_kernels_in_use_and_those_of_larger_forms_are_to_blame():
    # The largest form found is 4: kernel 2 would exceed it, kernel 1 would not.
    both = forms([4.4, 3.0, 5.0], [4.0, 1.0, 3.0])
    blame = on_factors.error_by_kernel(solution([1.0, 0.0, 0.0]), both, tol=0.01)
    np.testing.assert_allclose(blame, [0.1, 0.0, 0.5])
    assert on_factors.largest_errors(blame, 0.01).tolist() == [0, 2]


def test_where_those_lack_nothing_all_may_be_to_blame():
    both = forms([4.0, 3.0, 2.0], [4.0, 1.0, 2.0])
    blame = on_factors.error_by_kernel(solution([1.0, 0.0, 0.0]), both, tol=0.01)
    np.testing.assert_allclose(blame, [0.0, 0.5, 0.0])


def test_factors_without_any_form_are_to_blame_alike():
    blame = on_factors.error_by_kernel(solution([0.5, 0.5]), forms([1.0, 1.0], [0.0, 0.0]), 0.01)
    assert (blame > 1e100).all()


def test_diagonals_take_the_form_that_is_lacking_of_some_kernels():
    times = np.array([1.0, 1.0, 2.0, 1.0])
    both = forms([3.0, 3.0, 9.0, 0.5], [2.0, 2.0, 1.0, 1.0], of_rests=[0.5, 0.5, 1.0, 0.25])
    corrected = on_factors.corrected_diagonals(times, both, {0, 2, 3})
    np.testing.assert_allclose(corrected, [3.0, 1.0, 8.0, 0.0])


def test_narrow_kernels_are_known_by_what_their_factors_lack():
    assert on_factors.is_narrow(factor(5, left=0.3))
    assert not on_factors.is_narrow(factor(5, left=0.1))
    assert on_factors.may_help(factor(5, left=0.3))
    assert not on_factors.may_help(factor(5, left=0.95))
    assert not on_factors.may_help(factor(10**6, left=0.3))


def test_points_count_that_any_machine_uses():
    assert on_factors.used_points(solution([1.0])) == 2
    classes = solution([1.0], coefficients=[[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]])
    assert on_factors.used_points(classes) == 2


def test_a_share_of_the_loss_is_that_of_weight_and_rest():
    blame = on_factors.error_by_diagonals(
        solution([0.5, 0.5, 0.0]), [factor(1, 0.3), factor(1, 0.1), factor(1, 0.9)]
    )
    np.testing.assert_allclose(blame, [0.75, 0.25, 0.0])
    nothing = on_factors.error_by_diagonals(solution([1.0]), [factor(1, 0.0)])
    np.testing.assert_allclose(nothing, [0.0])
