"""Checksums of content, and the files, JSON documents and frames that carry them."""

import json

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.checksums import (
    CHECKSUM,
    MAGIC,
    Footer,
    arrays_of,
    checked_json,
    crc32c,
    frame,
    frame_header,
    json_value,
    parsed,
    unframed,
)


def test_the_checksum_is_crc32c():
    # The check value of the Castagnoli polynomial.
    assert crc32c([b"123456789"]) == (0xE3069283).to_bytes(4, "little")
    assert crc32c([b"1234", np.frombuffer(b"56789", np.uint8)]) == crc32c([b"123456789"])


def test_a_footer_fits_its_body_alone():
    footer = Footer(b"magic 1\0")
    content = b"body" + footer.of([b"bo", b"dy"])
    assert footer.body(content) == b"body"
    assert footer.n_bytes == len(content) - 4
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        assert footer.body(bytes(changed)) is None
        assert footer.body(content[:place]) is None
    assert Footer(b"magic 2\0").body(content) is None


DOCUMENT = {"name": "größe", "n": 3, "of": {"checksum": "crc32c:12345678"}, "list": [1.5, None]}
VALUES = st.none() | st.integers() | st.text(max_size=9) | st.lists(st.booleans(), max_size=3)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=4))
def test_a_document_comes_back(document):
    document.pop(CHECKSUM, None)
    text = checked_json(document)
    assert parsed(text) == document
    assert {**document, CHECKSUM: json.loads(text)[CHECKSUM]} == json.loads(text)


def test_the_checksum_is_that_of_the_other_entries():
    found = json.loads(checked_json(DOCUMENT))[CHECKSUM]
    expected = google_crc32c.value(json.dumps(DOCUMENT).encode()).to_bytes(4, "little").hex()
    assert found == f"crc32c:{expected}"


def test_every_flipped_bit_is_found():
    text = checked_json(DOCUMENT)
    for place in range(8 * len(text)):
        flipped = bytearray(text)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"."):
            parsed(bytes(flipped))


DEEP = (b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"3", b"\xff", b'{"a": 1}', *DEEP])
def test_what_is_no_document_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parsed(text)


@pytest.mark.parametrize("text", DEEP)
def test_a_text_that_is_nested_too_deep_is_no_document(text):
    with pytest.raises(ValueError, match="nested too deep"):
        json_value(text)
    assert json_value(b"[[3]]") == [[3]]


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
