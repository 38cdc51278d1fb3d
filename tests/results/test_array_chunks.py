"""Arrays read from their chunks, against zarr."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from mkldist.results.array_chunks import read_array
from mkldist.results.zarr_documents import array_document, group_document, write_documents

SHAPE, CHUNKS = (5, 7), (2, 3)
DRAW = np.random.default_rng(0)
VALUES = {
    "float64": DRAW.normal(size=SHAPE),
    "int64": DRAW.integers(-(2**60), 2**60, SHAPE),
    "bool": DRAW.random(SHAPE) < 0.5,
    "string": np.array([["", "é", "complete", "x" * i, "a\0b", "日本", "-"] for i in range(5)]),
}


@pytest.fixture(params=VALUES)
def stored(request, tmp_path):
    """Return the folder, the metadata and the zarr array of an array of some chunks."""
    kind = request.param
    document = array_document(dict(zip("ab", SHAPE, strict=True)), kind, CHUNKS)
    write_documents(tmp_path, {"": group_document(), "x": document})
    return tmp_path / "x", document, zarr.open_group(tmp_path, mode="r+")["x"]


def test_values_and_gaps_are_those_of_zarr(stored):
    folder, document, array = stored
    np.testing.assert_array_equal(read_array(folder, document), array[...])
    array[1:4, 2:] = VALUES[document["data_type"]][1:4, 2:]
    expected = array[...]
    assert len(set(expected.ravel().tolist())) > 1
    found = read_array(folder, document)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == (object if document["data_type"] == "string" else expected.dtype)


def test_a_damaged_chunk_is_refused(stored):
    folder, document, array = stored
    array[...] = VALUES[document["data_type"]]
    chunk = folder / "c" / "1" / "1"
    whole = chunk.read_bytes()
    for content in (whole[:-1], whole[:6] + bytes([whole[6] ^ 1]) + whole[7:], b""):
        chunk.write_bytes(content)
        with pytest.raises((ValueError, RuntimeError)):
            read_array(folder, document)


def test_an_unknown_coding_is_refused(stored):
    folder, document, _ = stored
    with pytest.raises(ValueError, match="unknown coding"):
        read_array(folder, {**document, "codecs": document["codecs"][:1]})
