"""Sealed archives: read back to the last bit, refused after any change of a bit."""

from __future__ import annotations

import hashlib
import io
import zipfile

import numpy as np
import pytest

from mkldist.sealed import DIGEST_BYTES, is_whole, sealed, unsealed

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


@pytest.mark.parametrize(
    "values",
    [
        np.float64(3.5), np.zeros((0, 4)), np.zeros(0), np.zeros((2, 3), order="F"),
        np.arange(4, dtype=">i2"), np.array([True, False]), np.array(["é", "bc"]), np.array("text"),
        np.zeros((2, 3, 4), dtype=np.complex64),
    ],
)  # fmt: skip
def test_arrays_of_every_kind_are_those_of_numpy(values):
    content = sealed({}, {"first": np.arange(3), "values": values, "größe": np.ones(2)})
    with np.load(io.BytesIO(content)) as archive:
        expected = {name: archive[name] for name in archive.files if name != "header"}
    _, found = unsealed(content)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].flags.f_contiguous == array.flags.f_contiguous
        assert found[name].flags.writeable


def test_archives_are_read_without_numpy(monkeypatch):
    monkeypatch.setattr(np, "load", None)
    assert unsealed(CONTENT)[0] == HEADER


def resealed(archive: bytes) -> bytes:
    body = archive[:-2] + DIGEST_BYTES.to_bytes(2, "little")
    return body + hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()


def test_archives_of_other_programs_are_read_too():
    packed = io.BytesIO()
    np.savez_compressed(packed, header=np.frombuffer(b"{}", dtype=np.uint8), x=np.arange(3.0))
    header, arrays = unsealed(resealed(packed.getvalue()))
    assert header == {}
    np.testing.assert_array_equal(arrays["x"], np.arange(3.0))


def archive_of(**files: bytes) -> bytes:
    """Return a zip archive of some files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, file in files.items():
            archive.writestr(f"{name}.npy", file)
    return packed.getvalue()


def array_file(values: np.ndarray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, values)
    return packed.getvalue()


def header_of(text: bytes) -> bytes:
    """Return the file of a header's text."""
    return array_file(np.frombuffer(text, dtype=np.uint8))


NUMBERS = array_file(np.zeros(2))
NO_ARCHIVES = {
    "nothing": b"",
    "cut in the first entry": b"PK\x03\x04",
    "no names": b"PK\x03\x04" + bytes(40),
    "one array": NUMBERS,
    "no header": archive_of(x=NUMBERS),
    "a header that is a list": archive_of(header=header_of(b"[1]")),
    "a header that is cut short": archive_of(header=header_of(b"{")),
    "a header that is no text": archive_of(header=header_of(b"\xff\xfe")),
    "a file that is no array": archive_of(header=header_of(b"{}"), x=b"x"),
    "a wrong shape": archive_of(header=NUMBERS.replace(b"(2,)", b"2 3 ")),
    "objects": archive_of(header=NUMBERS.replace(b"<f8", b"|O8")),
    "a name that is no text": archive_of(x=NUMBERS).replace(b"x.npy", b"\xff.npy"),
}


@pytest.mark.parametrize("body", NO_ARCHIVES.values(), ids=NO_ARCHIVES)
def test_no_archive_is_none_though_its_digest_is_right(body):
    digest = hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
    assert unsealed(body + digest) is None
    assert unsealed(resealed(body)) is None


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
