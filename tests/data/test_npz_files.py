"""NumPy archives of features and labels; `archives` and its errors are tested through them."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import random_array, save_npz

from mkldist.data import checks, opening
from mkldist.data.dataset import RawData
from mkldist.data.files import read_file
from mkldist.data.tables import ColumnChoice
from mkldist.errors import DataError
from tests.data.mistakes import mistake

X, Y = np.arange(12.0).reshape(6, 2), np.array([1, -1, 1, -1, 1, -1])
PARTS = ("data", "indices", "indptr")


def save(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "t.npz", **arrays)
    return folder / "t.npz"


def read(path: Path, label: str | int | None = None) -> RawData:
    return read_file(path, ColumnChoice(label), "data set 't'")


def sparse_parts() -> tuple[np.ndarray, dict[str, Any]]:
    matrix = random_array((6, 9), density=0.3, format="csr", random_state=0)
    return matrix.toarray(), {**{p: getattr(matrix, p) for p in PARTS}, "shape": matrix.shape}


def test_arrays_of_any_number_type(tmp_path):
    for dtype in ("f4", "i2", "u1", ">f8"):
        found = read(save(tmp_path, x=X.astype(dtype), y=Y.reshape(6, 1)))
        assert found.x is not None
        assert found.x.dtype == np.float64
        np.testing.assert_array_equal(found.x, X)
        np.testing.assert_array_equal(found.labels, Y)
        assert found.feature_names == ("f0", "f1")
        assert found.partitions == ()


def test_sparse_parts_are_read_dense(tmp_path):
    dense, parts = sparse_parts()
    np.testing.assert_array_equal(read(save(tmp_path, y=Y, **parts)).x, dense)


def test_names_labels_and_partitions(tmp_path):
    train, test = np.array([[0, 1, 2], [3, 4, 5]]), np.array([[3, 4], [0, 1]])
    names = np.array(["age", "size"])
    path = save(tmp_path, x=X, target=Y.astype("S2"), feature_names=names, train=train, test=test)
    found = read(path, "target")
    assert found.feature_names == ("age", "size")
    assert [s.train.tolist() for s in found.partitions] == train.tolist()
    assert [s.test.tolist() for s in found.partitions] == test.tolist()


def test_capitals_name_the_same_arrays_unless_both_are_there(tmp_path):
    found = read(save(tmp_path, X=X, Y=Y))
    np.testing.assert_array_equal(found.x, X)
    np.testing.assert_array_equal(found.labels, Y)
    assert found.summary.notes == ("array 'X' is taken as x", "array 'Y' is taken as y")
    both = read(save(tmp_path, X=-X, x=X, y=Y))
    np.testing.assert_array_equal(both.x, X)
    assert both.summary.notes == ()


def test_arrays_that_are_not_there(tmp_path):
    with mistake("no array 'y'", "the arrays are x, yy", "Did you mean 'yy'?"):
        read(save(tmp_path, x=X, yy=Y))
    with mistake("no array 'y'", "the arrays are x"):
        read(save(tmp_path, x=X))
    with mistake("no array 'x'", "the arrays are y, z"):
        read(save(tmp_path, y=Y, z=X))
    with mistake("no array 'labels'", "Did you mean 'Labels'?"):
        read(save(tmp_path, x=X, Labels=Y), "labels")
    with mistake("no array 'labels'"):
        read(save(tmp_path, x=X, y=Y), "labels")
    with mistake("label = 2 for arrays"):
        read(save(tmp_path, x=X, y=Y), 2)


def test_python_objects_are_never_unpickled(tmp_path):
    with mistake("array 'y'", "Python objects", "astype"):
        read(save(tmp_path, x=X, y=np.array(["a", None] * 3, dtype=object)))
    with mistake("array 'x'", "Python objects"):
        read(save(tmp_path, x=X.astype(object), y=Y))


def test_rows_and_labels_must_fit(tmp_path):
    with mistake("6 rows of features but 4 labels"):
        read(save(tmp_path, x=X, y=Y[:4]))
    with mistake("no rows"):
        read(save(tmp_path, x=X[:0], y=Y[:0]))
    with mistake("array 'x'", "shape (6,)", "(n points, d ≥ 1 features)"):
        read(save(tmp_path, x=X[:, 0], y=Y))
    with mistake("array 'x'", "real numbers"):
        read(save(tmp_path, x=X.astype(complex), y=Y))
    with mistake("'feature_names'", "2 names, 1 of them distinct"):
        read(save(tmp_path, x=X, y=Y, feature_names=["a", "a"]))


def test_damaged_archives(tmp_path):
    path = save(tmp_path, x=np.random.default_rng(0).normal(size=(6, 500)), y=Y)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with mistake("cut short or damaged"):
        read(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    with mistake("cut short or damaged"):
        read(path)
    path.write_bytes(whole.replace(b"'fortran_order': False", b"'fortran_order': Fals]"))
    with mistake("cut short or damaged"):
        read(path)
    path.write_text("x,y\n1,2\n")
    with mistake("a file of another kind"):
        read(path)
    with path.open("wb") as stream:
        np.save(stream, X)
    with mistake("a single array"):
        read(path)


def test_sparse_parts_that_make_no_matrix(tmp_path):
    _, parts = sparse_parts()
    with mistake("make no sparse matrix"):
        read(save(tmp_path, y=Y, **{**parts, "indices": parts["indices"] + 100}))
    with mistake("make no sparse matrix"):
        read(save(tmp_path, y=Y, **{**parts, "indptr": parts["indptr"][:-2]}))
    with mistake("array 'indices'", "float64", "integers"):
        read(save(tmp_path, y=Y, **{**parts, "indices": parts["indices"] + 0.5}))
    with mistake("array 'data'", "real numbers"):
        read(save(tmp_path, y=Y, **{**parts, "data": parts["data"].astype(str)}))
    with mistake("array 'shape'", "two sizes"):
        read(save(tmp_path, y=Y, **{**parts, "shape": (6,)}))
    save_npz(tmp_path / "c.npz", random_array((6, 9), density=0.3, format="csc", random_state=0))
    with np.load(tmp_path / "c.npz") as archive:
        arrays = dict(archive)
    with mistake("another format", ".tocsr()"):
        read(save(tmp_path, y=Y, **arrays))


def test_what_does_not_fit_into_memory_is_refused_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "physical_memory", lambda: 800)
    _, parts = sparse_parts()
    with mistake("half of this machine's memory"):
        read(save(tmp_path, y=Y, **parts))


def test_a_sparse_matrix_of_vast_width_gets_no_names(tmp_path):
    parts = {"data": np.ones(6), "indices": np.zeros(6, int), "indptr": np.arange(7)}
    path = save(tmp_path, y=Y, shape=(6, 10**13), **parts)
    with mistake("the names of", "half of this machine's memory"):
        read_file(path, ColumnChoice(sparse=True), "data set 't'")


def test_an_array_that_unpacks_to_far_more_than_itself(tmp_path, monkeypatch):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, x=np.zeros((20_000, 3)), y=np.arange(20_000) % 2)
    assert read(path).x.shape == (20_000, 3)  # an array of this size is read
    monkeypatch.setattr(opening, "SMALL", 2**10)
    with mistake("array 'x'", "unpacks to more than", "at most 100 times its size"):
        read(path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_flipped_bit_is_refused_or_does_no_harm(tmp_path, packing):
    """Bits of the directory of an archive, that of encryption included, and of an array."""
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, array in {"x": X, "y": Y}.items():
            npy = io.BytesIO()
            np.save(npy, array)
            archive.writestr(f"{name}.npy", npy.getvalue())
    whole = path.read_bytes()
    entry, n_refused = whole.index(b"PK\x01\x02"), 0
    places = [*range(8 * entry, 8 * (entry + 46)), *range(8 * 36, 8 * 46)]
    for place in places:
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        try:
            np.testing.assert_array_equal(read(path).x, X)
        except DataError:
            n_refused += 1
    assert n_refused > len(places) // 3


def test_an_array_that_claims_more_than_the_file_holds_takes_no_memory(tmp_path):
    """An archive of 200 bytes that says that it has 32 TB is refused by its header."""
    header, labels = io.BytesIO(), io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": (4 * 10**12, 1)}
    np.lib.format.write_array_header_1_0(header, fields)
    np.save(labels, Y)
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(80))
        archive.writestr("y.npy", labels.getvalue())
    with mistake("array 'x'", "cut short or damaged", "29.10 TiB in a file of 208 B"):
        read(path)


def test_an_array_that_memory_cannot_hold_is_a_mistake_in_the_data(tmp_path, monkeypatch):
    path = save(tmp_path, x=X, y=Y)

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 29.1 TiB")

    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", refuse)
    with mistake("does not fit into memory (Unable to allocate 29.1 TiB)", "Write fewer rows"):
        read(path)
