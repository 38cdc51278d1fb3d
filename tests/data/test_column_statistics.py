"""Statistics of columns from blocks, against numpy on all rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mkldist.data.preprocessing import column_statistics

VALUES = st.floats(-1e6, 1e6).map(lambda v: round(v, 3)) | st.just(np.nan)


@settings(deadline=None)
@given(arrays(np.float64, (9, 3), elements=VALUES), st.sets(st.integers(1, 8)))
def test_blocks_give_the_statistics_of_all_rows(x: np.ndarray, cuts: set[int]) -> None:
    found = column_statistics(np.split(x, sorted(cuts)), 3)
    known = ~np.isnan(x)
    np.testing.assert_array_equal(found.count, known.sum(axis=0))
    for column in range(3):
        values = x[known[:, column], column]
        if not len(values):
            assert np.isnan([found.mean[column], found.low[column], found.deviation[column]]).all()
            continue
        assert found.mean[column] == pytest.approx(values.mean(), rel=1e-12, abs=1e-9)
        assert found.deviation[column] == pytest.approx(values.std(), rel=1e-9, abs=1e-9)
        assert (found.low[column], found.high[column]) == (values.min(), values.max())


def test_a_large_mean_costs_no_digits_of_the_deviation() -> None:
    small = np.random.default_rng(0).normal(size=(2000, 1))
    found = column_statistics(np.split(small + 1e9, 40), 1)
    assert found.deviation[0] == pytest.approx(small.std(), rel=1e-7)
    squares = ((small + 1e9) ** 2).mean() - (small + 1e9).mean() ** 2  # what sums of squares give
    assert abs(squares - small.var()) > 1.0


def test_one_block_gives_the_numbers_of_numpy_to_the_bit() -> None:
    x = np.random.default_rng(1).normal(3, 2, (50, 4))
    found = column_statistics([x], 4)
    np.testing.assert_array_equal(found.mean, x.mean(axis=0))
    np.testing.assert_array_equal(found.deviation, x.std(axis=0))
