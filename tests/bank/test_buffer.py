"""Memory that one bank after another is loaded into."""

import numpy as np

from mkldist.bank.readers import BankBuffer


def test_a_bank_takes_the_memory_of_the_last_one_if_it_is_about_as_large():
    buffer = BankBuffer()
    first = buffer.take((3, 100), np.dtype("float64"))
    assert np.shares_memory(first, buffer.take((4, 60), np.dtype("float64")))
    assert np.shares_memory(first, buffer.take((5, 100), np.dtype("float32")))
    for shape in [(4, 100), (1, 100)]:
        other = buffer.take(shape, np.dtype("float64"))
        assert other.shape == shape
        assert not np.shares_memory(first, other)
    buffer.clear()
    assert not np.shares_memory(other, buffer.take((1, 100), np.dtype("float64")))
