"""Metadata documents, held against those that zarr itself writes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from mkldist.results.zarr_documents import (
    CHUNK_BYTES,
    add_arrays,
    array_document,
    group_document,
    read_root,
    run_chunks,
    write_documents,
)


@pytest.mark.parametrize(
    ("dtype", "fill"), [("float64", np.nan), ("int64", 0), ("bool", False), ("string", "waiting")]
)
def test_array_document_means_what_zarr_writes(tmp_path, dtype, fill):
    theirs = zarr.create_array(
        tmp_path / "a",
        shape=(20, 13),
        chunks=(1, 13),
        dtype=dtype,
        fill_value=fill,
        compressors=[ZstdCodec(level=0, checksum=False), Crc32cCodec()],
        dimension_names=("split", "C"),
        attributes={"units": "1"},
    )
    document = array_document(
        {"split": 20, "C": 13}, dtype, (1, 13), fill=fill if dtype == "string" else None,
        attributes={"units": "1"},
    )  # fmt: skip
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "zarr.json").write_text(json.dumps(document))
    ours = zarr.open_array(tmp_path / "b", mode="r")
    assert ours.metadata.to_dict() == theirs.metadata.to_dict()


def test_zarr_reads_nested_groups_from_the_root_document_alone(tmp_path):
    array = array_document({"x": 3}, "float64", (3,))
    documents = {
        "": group_document({"n": 1}), "b": group_document(), "a": group_document(),
        "b/m": group_document(), "a/x": array, "b/m/v": array, "a/m": group_document(),
        "b/x": array, "a/m/v": array,
    }  # fmt: skip
    write_documents(tmp_path / "t", documents)
    for inner in (tmp_path / "t").glob("*/**/zarr.json"):
        inner.unlink()
    group = zarr.open_group(tmp_path / "t", mode="r", use_consolidated=True)
    assert group.attrs["n"] == 1
    for path in ("a/x", "a/m/v", "b/x", "b/m/v"):
        assert group[path].shape == (3,)
    assert np.isnan(group["a/x"][:]).all()


def test_added_arrays_are_known_to_the_root(tmp_path):
    root = tmp_path / "t"
    write_documents(root, {"": group_document({"n": 1}), "a": group_document()})
    add_arrays(root, {"a/new": array_document({"x": 2}, "float64", (2,))})
    assert set(read_root(root)["consolidated_metadata"]["metadata"]) == {"a", "a/new"}
    assert read_root(root)["attributes"] == {"n": 1}
    assert zarr.open_group(root, mode="r")["a/new"].shape == (2,)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"consolidated_metadata": null}'])
def test_a_damaged_root_is_a_value_error(tmp_path, content):
    (tmp_path / "zarr.json").write_text(content)
    with pytest.raises(ValueError):  # noqa: PT011, the message is Python's own for JSON
        read_root(tmp_path)


@pytest.mark.parametrize("vector", [None, 1, 442, 40_000, 1_000_000])
def test_chunks_hold_one_split_and_are_not_large(vector):
    chunks = run_chunks({"split": 20, "C": 13, "lam": 3}, vector)
    assert chunks[0] == 1
    assert len(chunks) == 3 + (vector is not None)
    assert 8 * np.prod(chunks) <= CHUNK_BYTES


def test_a_flipped_bit_anywhere_in_a_root_is_found(tmp_path):
    write_documents(tmp_path, {"": group_document({"n": 1}), "x": array_document({}, "int64", ())})
    path = tmp_path / "zarr.json"
    whole = path.read_bytes()
    for place in np.random.default_rng(1).choice(8 * len(whole), size=500, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(ValueError):  # noqa: PT011, the message may be Python's own for JSON
            read_root(tmp_path)
