"""Blocks of rows, and rows and columns that are moved within their array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.data import checks
from mkldist.data.checks import moved_up, row_blocks, rows_at_once


@given(st.integers(0, 50), st.integers(0, 5 * 2**22))
def test_blocks_cover_all_rows_once_and_fit(n_rows: int, row_bytes: int) -> None:
    blocks = list(row_blocks(n_rows, row_bytes))
    assert [row for block in blocks for row in range(block.start, block.stop)] == [*range(n_rows)]
    limit = max(checks.BLOCK_BYTES, row_bytes)
    assert all((block.stop - block.start) * row_bytes <= limit for block in blocks)


def test_a_row_of_many_bytes_is_a_block() -> None:
    assert rows_at_once(2**40) == 1


def ascending(places: set[int]) -> np.ndarray:
    return np.array(sorted(places), dtype=np.intp)


@pytest.mark.slow
@given(st.data())
def test_rows_and_columns_are_moved_without_a_copy(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    x = np.arange(n * d, dtype=np.float64).reshape(n, d)
    rows, columns = (
        data.draw(
            st.none()
            | st.sets(st.integers(0, size - 1)).map(lambda s: np.array(sorted(s), dtype=np.intp))
        )
        for size in (n, d)
    )
    expected = x.copy()
    expected = expected if rows is None else expected[rows]
    expected = expected if columns is None else expected[:, columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "BLOCK_BYTES", 8 * d * data.draw(st.integers(1, 4)))
        found = moved_up(x, rows, columns)
    np.testing.assert_array_equal(found, expected)
    assert not found.size or (np.shares_memory(found, x) and found.flags.c_contiguous)
