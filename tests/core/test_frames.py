"""Frames: read back to the last bit, refused after any change of a bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.frames import MAGIC, arrays_of, frame, frame_header, unframed

HEAD = {"name": "wdbc", "values": [1, 0.1, None, {"deep": "ä"}]}
CONTENT = frame(HEAD, {"x": np.arange(6.0).reshape(2, 3), "y": np.array(["a", "bc"])})


@pytest.mark.parametrize(
    "values",
    [
        np.float64(3.5), np.zeros((0, 4)), np.zeros(0), np.zeros((2, 3), order="F"),
        np.arange(4, dtype=">i2"), np.array([True, False]), np.array(["é", "bc"]), np.array("text"),
        np.zeros((2, 3, 4), dtype=np.complex64), np.array([["é", ""], ["x", "bc"]], dtype=object),
        np.array([], dtype="U"), np.array([], dtype=object),
    ],
)  # fmt: skip
def test_arrays_of_every_kind_read_back(values):
    head, arrays = unframed(frame(HEAD, {"first": np.arange(3), "values": values}))
    assert head == HEAD
    assert list(arrays) == ["first", "values"]
    np.testing.assert_array_equal(arrays["values"], values)
    assert arrays["values"].dtype == values.dtype
    assert arrays["values"].shape == values.shape
    assert arrays["values"].flags.writeable


def test_one_flipped_bit_is_seen():
    for place in range(len(CONTENT)):
        altered = bytearray(CONTENT)
        altered[place] ^= 1 << (place % 8)
        assert unframed(bytes(altered)) is None, place


def test_a_part_of_a_frame_and_more_than_one_are_none():
    assert all(unframed(CONTENT[:length]) is None for length in range(len(CONTENT)))
    assert unframed(CONTENT + b"\0") is None
    assert unframed(CONTENT + CONTENT) is None


def test_a_header_says_how_long_its_frame_is():
    assert frame_header(CONTENT).n_bytes == len(CONTENT)
    assert frame_header(CONTENT + CONTENT).n_bytes == len(CONTENT)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_anything_else_is_no_frame(content):
    assert unframed(content) is None
    assert unframed(MAGIC + content) is None


@pytest.mark.parametrize("values", [[{}], [1, "a"], [None]])
def test_objects_are_not_written(values):
    with pytest.raises(TypeError, match="object"):
        frame({}, {"x": np.array(values, dtype=object)})


@pytest.mark.parametrize(
    "described",
    [
        [["x", "<f8", [7], 48]], [["x", "<f8", [2, 3], 40]], [["x", "|O", [2, 3], 48]],
        [["x", "no dtype", [2, 3], 48]], [["x", "<f8"]], [3], [["x", "<f8", "ab", 48]],
    ],
)  # fmt: skip
def test_descriptions_that_do_not_fit_are_refused(described):

    assert arrays_of(described, np.arange(6.0).tobytes()) is None
