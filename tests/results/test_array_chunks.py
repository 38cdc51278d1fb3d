"""Arrays read from their chunks, against zarr."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from mkldist.results import array_chunks
from mkldist.results.array_chunks import read_array, read_part, write_rows
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


def test_zarr_reads_what_is_written_here(stored):
    folder, document, array = stored
    values = VALUES[document["data_type"]].astype(object)
    write_rows(folder, document, (), values, folder.parent)
    np.testing.assert_array_equal(array[...], values)
    assert not list(folder.parent.glob("*partial*"))


@pytest.mark.parametrize("part", [(0, 5, 0, 7), (1, 2, 3, 6), (2, 5, 6, 7), (3, 3, 0, 2)])
def test_a_part_is_read_from_its_chunks_alone(stored, part, monkeypatch):
    folder, document, array = stored
    array[...] = VALUES[document["data_type"]]
    rows, columns = slice(*part[:2]), slice(*part[2:])
    read = []
    plain = array_chunks._decoded
    monkeypatch.setattr(array_chunks, "_decoded", lambda *a: read.append(1) or plain(*a))
    np.testing.assert_array_equal(
        read_part(folder, document, [rows, columns]), array[rows, columns]
    )
    touched = {f"c/{i // 2}/{j // 3}" for i in range(*part[:2]) for j in range(*part[2:])}
    assert len(read) == sum((folder / path).exists() for path in touched)


def test_rows_and_single_values_are_written(tmp_path):
    rows = array_document({"a": 3, "b": 4}, "string", (1, 3))
    for row in range(3):
        write_rows(tmp_path / "rows", rows, (row,), np.array(list("abcd"), object), tmp_path)
    assert read_array(tmp_path / "rows", rows).tolist() == [list("abcd")] * 3
    assert len(list((tmp_path / "rows" / "c").glob("*/*"))) == 3 * 2
    number = array_document({}, "int64", ())
    write_rows(tmp_path / "number", number, (), np.array(7), tmp_path)
    assert read_array(tmp_path / "number", number) == 7


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
