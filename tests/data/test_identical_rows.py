"""Rows of equal features, against comparing all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mkldist.data.dataset import TextColumns
from mkldist.data.validate import identical_lines

VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan])


@pytest.mark.slow
@settings(deadline=None)
@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.integers(1, 3)), elements=VALUES))
def test_all_rows_that_have_an_equal_are_counted(x):
    words = [str((row + 0.0).tolist()) for row in x]
    count = sum(words.count(word) > 1 for word in words)
    found = identical_lines(x)
    assert bool(found) == bool(count)
    if found:
        assert found[0].startswith(f"{count} rows are equal to others in all features, such as row")


def test_rows_of_one_group_and_of_other_texts_do_not_count():
    x = np.array([[1.0], [1.0], [2.0]])
    assert identical_lines(x, groups=np.array([0, 0, 1])) == ()
    assert identical_lines(x, groups=np.array([0, 1, 1])) != ()
    assert identical_lines(x, TextColumns.of({"dna": ["a", "c", "a"]})) == ()
    assert identical_lines(x, TextColumns.of({"dna": ["a", "a", "a"]})) != ()
