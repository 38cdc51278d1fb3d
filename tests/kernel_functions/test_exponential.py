"""Values of kernel functions that are too small to count: zero, and no subnormal number."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.kernel_functions import chi_squared, gaussian, laplacian_rbf, matern, periodic
from mkldist.kernel_functions.exponential import VANISHES_AT, exponential
from tests.kernel_functions.points import values

FAR = np.geomspace(1e-3, 1e6, 4000)[:, None]
ORIGIN = np.zeros((1, 1))
FUNCTIONS = [
    (gaussian, 0.0), (laplacian_rbf, 0.0), (chi_squared, 0.0), (matern, 0.3), (matern, 0.5),
    (matern, 1.5), (matern, 2.5), (matern, 9.0), (periodic, 3.0),
]  # fmt: skip


def test_exponentials_are_numpys_or_zero():
    arguments = np.array([0.0, -1.0, VANISHES_AT + 1e-9, VANISHES_AT, -700.0, -740.0, -np.inf])
    found = arguments.copy()
    exponential(found)
    np.testing.assert_array_equal(found[:3], np.exp(arguments[:3]))
    assert not found[3:].any()


@pytest.mark.parametrize(("module", "second"), FUNCTIONS)
def test_no_value_is_so_small_that_processors_are_slow_with_it(module, second):
    found = values(module.FUNCTION, FAR, ORIGIN, 0.05, second)
    some = found[found > 0.0]
    assert len(some) < len(found)
    assert some.min() > 1e3 * np.finfo(np.float32).tiny
    assert some.max() > 0.9


def test_a_value_that_vanishes_is_lost_in_rounding_beside_the_diagonal():
    assert 1.0 + 1e15 * np.exp(VANISHES_AT) == 1.0
