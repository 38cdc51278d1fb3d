"""Checksums of content, footers, and JSON documents that carry their checksum."""

from __future__ import annotations

import json

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mkldist.core.checksums import CHECKSUM, Footer, checked_json, crc32c, json_value, parsed


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
