"""Data sets in zarr: arrays that are whole or damaged."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import zarr

from mkldist.data import checks
from mkldist.data.dataset import RawData
from mkldist.data.files import read_file
from mkldist.data.opening import is_zarr
from mkldist.data.tables import ColumnChoice
from mkldist.data.zarr_files import open_group
from mkldist.errors import DataError
from tests.data.mistakes import mistake

X = np.random.default_rng(0).normal(size=(50, 3))
Y = (X[:, 0] > 0).astype(np.int64)
NAMES = np.array(["no", "yes"])[Y]


def group(folder: Path, chunk: int = 8, **arrays: np.ndarray) -> Path:
    """Write a group whose arrays have chunks of a few rows."""
    path = folder / "t.zarr"
    node = zarr.open_group(path, mode="w")
    for name, values in arrays.items():
        chunks = (min(chunk, len(values)), *values.shape[1:])
        dtype = str if values.dtype.kind == "U" else values.dtype
        array = node.create_array(
            name,
            shape=values.shape,
            chunks=chunks,
            dtype=dtype,
            config={"write_empty_chunks": True},
        )
        array[...] = values.astype(object) if dtype is str else values
    return path


def read(path: Path, choice: ColumnChoice = ColumnChoice()) -> RawData:  # noqa: B008 - frozen
    return read_file(path, choice, "data set 't'")


def test_features_are_read_beside_their_labels(tmp_path):
    names = np.array(["b", "a", "c"])
    path = group(tmp_path, x=X.astype(np.float32), y=Y, feature_names=names)
    found = read(path)
    np.testing.assert_array_equal(found.x, X.astype(np.float32))
    assert found.x.dtype == np.float64
    np.testing.assert_array_equal(found.labels, Y)
    assert found.feature_names == ("b", "a", "c")
    assert found.origin == "file t.zarr"


def test_partitions_names_and_another_array_of_labels(tmp_path):
    ids = np.array([f"p{row}" for row in range(50)])
    path = group(tmp_path, x=X, target=NAMES, ids=ids, train=np.arange(9), test=np.arange(9, 50))
    found = read(path, ColumnChoice("target"))
    assert found.labels.tolist() == NAMES.tolist()
    assert found.ids.tolist() == ids.tolist()
    assert found.partitions[0].test.tolist() == [*range(9, 50)]


def test_texts_of_any_length(tmp_path):
    path = tmp_path / "t.zarr"
    node = zarr.open_group(path, mode="w")
    node.create_array("x", data=X)
    label = node.create_array("label", shape=50, chunks=9, dtype=str)
    label[:] = NAMES.astype(object)
    assert read(path, ColumnChoice("label")).labels.tolist() == NAMES.tolist()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_both_formats(tmp_path, zarr_format):
    zarr.save_group(tmp_path / "t.zarr", zarr_format=zarr_format, x=X, y=Y)
    assert is_zarr(tmp_path / "t.zarr")
    np.testing.assert_array_equal(read(tmp_path / "t.zarr").x, X)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": X}, ["no array 'y'", "zarr.save_group(folder, y=…)"]),
        ({"x": X, "z": Y}, ["no array 'y'", "the arrays are x, z"]),
        ({"x": X, "y": Y[:9]}, ["50 rows", "9 labels"]),
        ({"x": X[:, 0], "y": Y}, ["array 'x'", "shape (50,)"]),
        ({"x": X.astype(str), "y": Y}, ["array 'x'", "real numbers"]),
        ({"grams": X[None], "y": Y}, ["by grams"]),
        ({"a": X[:, 0], "label": Y}, ["no array 'x'"]),
        ({}, ["an empty group"]),
    ],
)
def test_groups_that_hold_no_data_set(tmp_path, arrays, words):
    path = group(tmp_path, **arrays)
    with mistake(*words):
        read(path)
    with pytest.raises(DataError, match=r"^(?!.*damaged)"):
        read(path)


def test_folders_that_hold_no_group(tmp_path):
    zarr.save_array(tmp_path / "one.zarr", X)
    with mistake("a single array of shape (50, 3)", "zarr.save_group(folder, x=X, y=y)"):
        read(tmp_path / "one.zarr")
    zarr.save_array(tmp_path / "grams.zarr", X[None])
    with mistake("by grams"):
        read(tmp_path / "grams.zarr")
    zarr.open_group(tmp_path / "tree.zarr", mode="w").create_group("run")
    with mistake("a group of groups ('run')"):
        read(tmp_path / "tree.zarr")
    with mistake("no such file", "'one.zarr'"):
        read(tmp_path / "oen.zarr")
    (tmp_path / "file.zarr").write_text("x")
    with mistake("a file", "a folder that zarr wrote"):
        read(tmp_path / "file.zarr")


def test_lost_and_damaged_chunks_are_refused(tmp_path):
    path = group(tmp_path, x=X, y=Y)
    chunk = next(p for p in sorted((path / "x" / "c").rglob("*")) if p.is_file())
    chunk.write_bytes(b"no codec wrote this")
    with mistake("damaged or cut short"):
        read(path)
    chunk.unlink()
    with mistake("array 'x'", "6 of 7 chunks", "write_empty_chunks"):
        read(path)


def test_features_that_do_not_fit_are_refused_before_they_are_read(tmp_path, monkeypatch):
    path = group(tmp_path, x=X.astype(np.int8), y=Y)
    monkeypatch.setattr(checks, "physical_memory", lambda: 2 * 8 * X.size - 1)
    with open_group(path, "t") as arrays, mistake("an array of", "half of this machine's memory"):
        arrays.features("x")


@pytest.mark.parametrize("place", ["compressor", "filters"])
def test_pickled_arrays_are_refused_and_execute_nothing(tmp_path, monkeypatch, place):
    monkeypatch.setattr("numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE", True, raising=False)
    path = tmp_path / "t.zarr"
    node = zarr.open_group(path, mode="w", zarr_format=2)
    node.create_array("x", data=X)
    node.create_array("y", data=NAMES.astype(str), chunks=(50,))
    document = json.loads((path / "y" / ".zarray").read_text())
    codec = {"id": "pickle", "protocol": 5}
    document |= {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "compressor": None}
    document |= {"compressor": codec} if place == "compressor" else {}
    document["filters"] += [codec] if place == "filters" else []
    (path / "y" / ".zarray").write_text(json.dumps(document))
    (path / "y" / "0").write_bytes(pickle.dumps(Executed(tmp_path / "executed")))
    with mistake("array 'y': found an array that the codec 'pickle' has written"):
        read(path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("chunk", "content", "said"),
    [
        ([10**9, 3], None, "array 'x': found chunks of shape (1000000000, 3) of an array of shape"),
        ([0, 3], None, "damaged or cut short"),
        # The head of a frame of zstd that claims 2**50 bytes.
        (None, b"\x28\xb5\x2f\xfd\xe0" + (2**50).to_bytes(8, "little"), "damaged or cut short ("),
    ],
)
def test_sizes_that_chunks_claim_are_not_allocated(tmp_path, chunk, content, said):
    path = tmp_path / "t.zarr"
    zarr.save_group(path, x=X, y=Y)
    document = json.loads((path / "x" / "zarr.json").read_text())
    if chunk is not None:
        document["chunk_grid"]["configuration"]["chunk_shape"] = chunk
        (path / "x" / "zarr.json").write_text(json.dumps(document))
    if content is not None:
        (path / "x" / "c" / "0" / "0").write_bytes(content)
    with mistake(said):
        read(path)


class Executed:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)
