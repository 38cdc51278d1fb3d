"""Gram matrices from files, with labels and partitions, and files that hold none."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from mkldist.data import checks
from mkldist.data.dataset import RawData
from mkldist.data.grams import read_grams
from mkldist.errors import GramError
from tests.data.mistakes import mistake

X = np.random.default_rng(0).normal(size=(6, 3))
GRAMS = np.stack([X[:, [j]] * X[:, j] for j in range(3)] + [X @ X.T])
Y = np.array([1, -1, 1, -1, 1, -1])


def npz(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "g.npz", **arrays)
    return folder / "g.npz"


def npy(folder: Path, array: np.ndarray, name: str = "g.npy") -> Path:
    np.save(folder / name, array, allow_pickle=True)
    return folder / name


def read(path: Path, labels: Path | None = None, label: str | None = None) -> RawData:
    return read_grams(path, labels, label, f"data set 't' ({path})")


def test_archive_with_labels_and_partitions(tmp_path: Path) -> None:
    path = npz(tmp_path, grams=GRAMS, y=Y, train=[[0, 1, 2]], test=[[3, 4]])
    found = read(path)
    np.testing.assert_array_equal(found.grams, GRAMS)
    np.testing.assert_array_equal(found.labels, Y)
    assert found.x is None
    assert found.partitions[0].test.tolist() == [3, 4]
    assert read(npz(tmp_path, grams=GRAMS, target=Y), label="target").labels.tolist() == Y.tolist()


def test_integers_become_floats(tmp_path: Path) -> None:
    grams = np.stack([np.eye(6, dtype=np.int64)])
    assert read(npz(tmp_path, grams=grams, y=Y)).grams.dtype == np.float64


@pytest.mark.parametrize("form", ["npy", "npz", "text", "header"])
def test_matrices_on_disk_with_a_file_of_labels(tmp_path: Path, form: str) -> None:
    path = npy(tmp_path, GRAMS.astype(np.float32))
    labels = tmp_path / f"y.{form}"
    if form == "npy":
        np.save(labels, Y)
    elif form == "npz":
        np.savez(labels, y=Y)
    else:
        labels.write_text("label\n" * (form == "header") + "\n".join(map(str, Y)) + "\n\n")
    found = read(path, labels)
    assert isinstance(found.grams, np.memmap)
    assert found.labels.astype(int).tolist() == Y.tolist()


def test_the_name_of_a_label_column_may_be_a_label(tmp_path: Path) -> None:
    labels = tmp_path / "y.txt"
    labels.write_text("y\nn\ny\nn\ny\nn\n")
    found = read(npy(tmp_path, GRAMS), labels)
    assert found.labels.tolist() == ["y", "n"] * 3
    assert found.row_labels.of(0) == "line 1"
    labels.write_text("y\nn\ny\nn\ny\n")
    with pytest.raises(GramError, match="5 labels for matrices of 6 points"):
        read(npy(tmp_path, GRAMS), labels)


@pytest.mark.parametrize(
    ("first", "said"), [("outcome3", ""), ("1", "7 labels"), ("2.5", "7 labels")]
)
def test_a_text_that_is_no_label_heads_labels_that_are_as_many_as_points(
    first, said, tmp_path: Path
):
    labels = tmp_path / "y.txt"
    labels.write_text("\n".join([first, *map(str, Y)]))
    grams = npy(tmp_path, GRAMS)
    if not said:
        assert read(grams, labels).labels.astype(int).tolist() == Y.tolist()
        return
    with pytest.raises(GramError, match=f"{said} for matrices of 6 points"):
        read(grams, labels)


def test_endings_may_be_in_capitals(tmp_path: Path) -> None:
    grams, labels = npz(tmp_path, grams=GRAMS, y=Y), npy(tmp_path, Y, "y.npy")
    assert read(grams.rename(tmp_path / "G.NPZ")).labels.tolist() == Y.tolist()
    matrices = npy(tmp_path, GRAMS).rename(tmp_path / "G.NPY")
    assert read(matrices, labels.rename(tmp_path / "Y.NPY")).labels.tolist() == Y.tolist()


def test_zarr_array_and_group(tmp_path: Path) -> None:
    zarr.save_array(tmp_path / "array.zarr", GRAMS)
    np.testing.assert_array_equal(
        read(tmp_path / "array.zarr", npy(tmp_path, Y, "y.npy")).grams, GRAMS
    )
    zarr.save_group(tmp_path / "group.zarr", grams=GRAMS, y=Y)
    found = read(tmp_path / "group.zarr")
    np.testing.assert_array_equal(found.grams, GRAMS)
    np.testing.assert_array_equal(found.labels, Y)


def test_labels_must_come_from_one_place(tmp_path: Path) -> None:
    with mistake("without labels", "Set labels"):
        read(npy(tmp_path, GRAMS))
    with mistake("without labels"):
        read(npz(tmp_path, grams=GRAMS))
    with mistake("labels in g.npz and in y.npy"):
        read(npz(tmp_path, grams=GRAMS, y=Y), npy(tmp_path, Y, "y.npy"))
    with mistake("labels y.npy", "no such file"):
        read(npy(tmp_path, GRAMS), tmp_path / "absent" / "y.npy")
    (tmp_path / "y.txt").write_text("label\n")
    with mistake("no labels", "one label per line"):
        read(npy(tmp_path, GRAMS), tmp_path / "y.txt")


@pytest.mark.parametrize(
    ("grams", "word"),
    [
        (GRAMS[0], "shape (6, 6)"),
        (GRAMS[:, :, :5], "shape (4, 6, 5)"),
        (GRAMS[:, :5, :5], "6 labels"),
        (-GRAMS, "kernel 0"),
        (GRAMS + np.triu(np.ones((6, 6))), "symmetric"),
        (np.where(np.eye(6), np.nan, GRAMS), "nan"),
    ],
)
def test_matrices_that_are_no_gram_matrices(tmp_path: Path, grams: np.ndarray, word: str) -> None:
    with pytest.raises(GramError, match="data set 't'") as caught:
        read(npz(tmp_path, grams=grams, y=Y))
    assert word in str(caught.value)


def test_damaged_files(tmp_path: Path) -> None:
    path = npy(tmp_path, GRAMS)
    whole = path.read_bytes()
    for content in (whole[:-100], whole[:20], b"label\n1\n", b"\x93NUMPY" + b"\xff" * 200):
        path.write_bytes(content)
        with mistake("cut short, damaged"):
            read(path, npy(tmp_path, Y, "y.npy"))
    with mistake("Python objects"):
        read(npy(tmp_path, np.array([None, 1], dtype=object)), npy(tmp_path, Y, "y.npy"))
    npz(tmp_path, grams=GRAMS).rename(tmp_path / "archive.npy")
    with mistake("an archive of arrays", "Name it .npz"):
        read(tmp_path / "archive.npy")
    with mistake("no array 'grams'", "Did you mean 'gram'?"):
        read(npz(tmp_path, gram=GRAMS, y=Y))
    with mistake("'.mat'"):
        read(npy(tmp_path, GRAMS).rename(tmp_path / "g.mat"))
    with mistake("a directory"):
        read(tmp_path)


def test_zarr_stores_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.zarr"
    array = zarr.create_array(path, shape=GRAMS.shape, chunks=(1, 6, 6), dtype="f8")
    array[:] = GRAMS
    chunks = sorted(p for p in (path / "c").rglob("*") if p.is_file())
    chunks[0].unlink()
    with mistake("3 of 4 chunks", "write_empty_chunks"):
        read(path)
    array[0] = GRAMS[0]
    chunks[0].write_bytes(chunks[0].read_bytes()[:10])
    with mistake("damaged or cut short"):
        read(path)
    (path / "zarr.json").write_text("{")
    with mistake("damaged or cut short"):
        read(path)
    zarr.save_group(tmp_path / "group.zarr", kernels=GRAMS)
    with mistake("no array 'grams' (the arrays are kernels)"):
        read(tmp_path / "group.zarr")
    monkeypatch.setattr(checks, "physical_memory", lambda: 100)
    zarr.save_array(tmp_path / "large.zarr", GRAMS)
    with mistake("half of this machine's memory", ".npy"):
        read(tmp_path / "large.zarr")
