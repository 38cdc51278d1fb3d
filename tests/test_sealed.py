"""Sealed archives: read back to the last bit, refused after any change of a bit."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from mkldist.sealed import is_whole, sealed, unsealed

HEADER = {"name": "wdbc", "values": [1, 0.1, None]}
ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "y": np.array(["a", "bc"])}
CONTENT = sealed(HEADER, ARRAYS)


def test_header_and_arrays_read_back():
    header, arrays = unsealed(CONTENT)
    assert header == HEADER
    assert list(arrays) == list(ARRAYS)
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], values)
        assert arrays[name].dtype == values.dtype


def test_other_programs_read_the_archive():
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as archive:
        assert archive.testzip() is None
    with np.load(io.BytesIO(CONTENT)) as archive:
        assert sorted(archive.files) == ["header", "x", "y"]


@pytest.mark.parametrize("place", [*range(0, len(CONTENT), 97), len(CONTENT) - 1])
def test_one_flipped_bit_is_seen(place):
    altered = bytearray(CONTENT)
    altered[place] ^= 4
    assert not is_whole(bytes(altered))
    assert unsealed(bytes(altered)) is None


@pytest.mark.parametrize("length", [0, 1, 15, 16, 100, len(CONTENT) - 1])
def test_the_beginning_of_an_archive_is_none(length):
    assert unsealed(CONTENT[:length]) is None


def test_objects_that_would_be_unpickled_are_not_written():
    with pytest.raises(ValueError, match="allow_pickle"):
        sealed({}, {"x": np.array([{}], dtype=object)})
