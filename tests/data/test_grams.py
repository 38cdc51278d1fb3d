"""Gram matrices: read with their labels, and checked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from mkldist.data import checks
from mkldist.data import grams as gram_checks
from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import RawData
from mkldist.data.gram_files import read_grams
from mkldist.data.grams import (
    check_finite,
    symmetric,
    usable_grams,
)
from mkldist.errors import GramError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
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


def test_archive_with_labels_and_partitions(tmp_path):
    path = npz(tmp_path, grams=GRAMS, y=Y, train=[[0, 1, 2]], test=[[3, 4]])
    found = read(path)
    np.testing.assert_array_equal(found.grams, GRAMS)
    np.testing.assert_array_equal(found.labels, Y)
    assert found.x is None
    assert found.partitions[0].test.tolist() == [3, 4]
    assert read(npz(tmp_path, grams=GRAMS, target=Y), label="target").labels.tolist() == Y.tolist()


@pytest.mark.parametrize("form", ["npy", "npz", "text", "header"])
def test_matrices_on_disk_with_a_file_of_labels(tmp_path, form):
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


def test_the_name_of_a_label_column_may_be_a_label(tmp_path):
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
def test_a_text_that_is_no_label_heads_labels_that_are_as_many_as_points(first, said, tmp_path):
    labels = tmp_path / "y.txt"
    labels.write_text("\n".join([first, *map(str, Y)]))
    grams = npy(tmp_path, GRAMS)
    if not said:
        assert read(grams, labels).labels.astype(int).tolist() == Y.tolist()
        return
    with pytest.raises(GramError, match=f"{said} for matrices of 6 points"):
        read(grams, labels)


def test_endings_may_be_in_capitals(tmp_path):
    grams, labels = npz(tmp_path, grams=GRAMS, y=Y), npy(tmp_path, Y, "y.npy")
    assert read(grams.rename(tmp_path / "G.NPZ")).labels.tolist() == Y.tolist()
    matrices = npy(tmp_path, GRAMS).rename(tmp_path / "G.NPY")
    assert read(matrices, labels.rename(tmp_path / "Y.NPY")).labels.tolist() == Y.tolist()


def test_zarr_array_and_group(tmp_path):
    zarr.save_array(tmp_path / "array.zarr", GRAMS)
    np.testing.assert_array_equal(
        read(tmp_path / "array.zarr", npy(tmp_path, Y, "y.npy")).grams, GRAMS
    )
    zarr.save_group(tmp_path / "group.zarr", grams=GRAMS, y=Y)
    found = read(tmp_path / "group.zarr")
    np.testing.assert_array_equal(found.grams, GRAMS)
    np.testing.assert_array_equal(found.labels, Y)


def test_labels_must_come_from_one_place(tmp_path):
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
def test_matrices_that_are_no_gram_matrices(tmp_path, grams, word):
    with pytest.raises(GramError, match="data set 't'") as caught:
        read(npz(tmp_path, grams=grams, y=Y))
    assert word in str(caught.value)


def test_damaged_files(tmp_path):
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
    with mistake("'.csv'"):
        (tmp_path / "g.csv").write_text("a,label\n1,2\n")
        read(tmp_path / "g.csv")
    with mistake("a directory"):
        read(tmp_path)


def test_zarr_stores_cut_short(tmp_path, monkeypatch):
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


def grams(m=3, n=12, rank=4, seed=0):
    factors = np.random.default_rng(seed).normal(size=(m, n, rank))
    return factors @ factors.swapaxes(1, 2)


@given(st.integers(1, 20), st.integers(1, 20), st.sampled_from([np.float32, np.float64]),
       st.floats(1e-30, 1e30))  # fmt: skip
def test_products_are_gram_matrices_at_any_scale(n, rank, dtype, scale):
    matrices = (grams(2, n, rank) * scale).astype(dtype)
    usable_grams(matrices, np.ones(n))


def test_zero_and_integer_and_boolean_matrices_pass():
    usable_grams(np.zeros((2, 3, 3)))
    usable_grams(np.array([[[2, 1], [1, 2]]]))
    usable_grams(np.eye(3, dtype=bool)[None])


@pytest.mark.parametrize(
    ("array", "y", "words"),
    [
        (np.ones((3, 4)), None, ["shape (3, 4)", "(M, n, n)", "mkldist.KernelBank(X"]),
        (np.ones((3, 3)), None, ["shape (3, 3)", "grams[None]"]),
        (np.ones((2, 3, 4)), None, ["shape (2, 3, 4)"]),
        (np.ones((0, 3, 3)), None, ["at least one"]),
        (np.ones((2, 0, 0)), None, ["at least one"]),
        (np.ones((1, 2, 2), dtype=complex), None, ["complex128", "real"]),
        (np.ones((1, 2, 2), dtype=object), None, ["object"]),
        (np.ones((1, 2, 2)), np.ones(3), ["3 labels", "2 points"]),
    ],
)
def test_wrong_shapes_and_types(array, y, words):
    with pytest.raises(GramError) as caught:
        usable_grams(array, y, where="bank.npz")
    assert all(word in str(caught.value) for word in ["bank.npz", *words])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_finite(value):
    matrices = grams()
    matrices[2, 5, 1] = value
    with pytest.raises(GramError, match=rf"kernel 2: found entry \(5, 1\) of {value}"):
        usable_grams(matrices)


def with_smallest_eigenvalue(relative_to_trace):
    """Return a matrix of trace 1 whose smallest eigenvalue is as given."""
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    values = np.array([relative_to_trace, 0.1, 0.2, 0.2, 0.2, 0.3 - relative_to_trace])
    matrix = (rotation * values) @ rotation.T
    return (matrix + matrix.T) / 2


@pytest.mark.parametrize(("value", "fine"), [(-0.5e-8, True), (-2e-8, False), (-0.1, False)])
def test_negative_eigenvalues_to_the_stated_tolerance(value, fine):
    matrices = np.stack([np.eye(6), 1e5 * with_smallest_eigenvalue(value)])
    if fine:
        usable_grams(matrices)
    else:
        with pytest.raises(
            GramError, match=r"kernel 1: found a smallest eigenvalue of -.*semi-definite"
        ):
            usable_grams(matrices)


def test_asymmetry_to_the_stated_tolerance():
    matrices = grams(1)
    largest = np.abs(matrices).max()
    matrices[0, 0, 1] += 0.5e-8 * largest
    usable_grams(matrices)
    matrices[0, 0, 1] += 1e-8 * largest
    with pytest.raises(GramError, match="symmetric"):
        usable_grams(matrices)


def counted(monkeypatch, module, name):
    """Count the calls of a function."""
    calls, original = [], getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: calls.append(1) or original(*given))
    return calls


def test_a_matrix_takes_one_factorisation_and_culprits_one_decomposition(monkeypatch):
    factorisations = counted(monkeypatch, gram_checks, "has_cholesky_factor")
    decompositions = counted(monkeypatch, np.linalg, "eigh")
    counted_too = counted(monkeypatch, np.linalg, "eigvalsh")
    usable_grams(grams(50))
    assert (len(factorisations), len(decompositions)) == (50, 0)
    usable_grams(np.stack([np.eye(6), 1e5 * with_smallest_eigenvalue(-0.5e-8)]))
    assert (len(factorisations), len(decompositions), len(counted_too)) == (52, 1, 0)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_the_largest_asymmetry_is_found_wherever_it_is(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        matrix = rng.normal(size=(n, n))
        matrix += matrix.T
        symmetric(matrix, 0.0, "here")
        i, j = rng.integers(n, size=2)
        matrix[i, j] += 1.0
        matrix.setflags(write=False)
        if i == j:
            symmetric(matrix, 0.0, "here")
        else:
            pair = rf"\({min(i, j)}, {max(i, j)}\) and \({max(i, j)}, {min(i, j)}\)"
            with pytest.raises(GramError, match=f"here: found entries {pair}"):
                symmetric(matrix, 1e-8, "here")


def test_entries_whose_sum_alone_is_infinite_are_finite():
    check_finite(np.full((2, 2), 1.7e308), "here", np.inf)


def test_single_precision_has_its_own_tolerance_and_is_not_changed():
    """Rounding to single precision would bring back the negative eigenvalues."""
    matrices = with_smallest_eigenvalue(-0.5e-6)[None].astype(np.float32)
    assert usable_grams(matrices) is matrices
    with pytest.raises(GramError, match="-1e-06 of the trace"):
        usable_grams(with_smallest_eigenvalue(-2e-6)[None].astype(np.float32))


def test_negative_eigenvalues_become_zero_and_others_stay():
    matrices = np.stack([np.eye(6), 1e5 * with_smallest_eigenvalue(-0.5e-8), np.zeros((6, 6))])
    given = matrices.copy()
    cured = usable_grams(matrices)
    np.testing.assert_array_equal(matrices, given)
    np.testing.assert_array_equal(cured[[0, 2]], given[[0, 2]])
    before, after = np.linalg.eigvalsh(given[1]), np.linalg.eigvalsh(cured[1])
    assert before[0] < -4e-4
    assert abs(after[0]) < 1e-10
    np.testing.assert_allclose(after[1:], before[1:], rtol=1e-12)


def test_values_whose_squares_overflow_are_refused():
    with pytest.raises(GramError, match=r"kernel 1.*values up to 1\.0e\+120.*Divide the matrix"):
        usable_grams(np.stack([np.eye(3), 1e120 * np.eye(3)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("diagonal", [(-1.0, -1.0, -1.0), (4.0, 1.0, -8.0)])
def test_a_negative_trace_is_what_was_found(diagonal, dtype):
    with pytest.raises(GramError) as caught:
        usable_grams(np.stack([np.eye(3), np.diag(diagonal)]).astype(dtype))
    assert "-3" in caught.value.found
    assert "e-0" not in caught.value.expected  # no limit above zero for an eigenvalue below it
    assert caught.value.where == "grams: kernel 1"


def test_names_of_matrices_and_of_points(tmp_path):
    names, points = ["clinical", "expression", "images", "texts"], [f"p{n}" for n in range(6)]
    for key in ("names", "kernel_names"):
        assert read(npz(tmp_path, grams=GRAMS, y=Y, **{key: names})).gram_names == tuple(names)
    for wrong in (names[:3], [*names[:3], names[0]]):
        with mistake(f"'kernel_names': found {len(wrong)} names"):
            read(npz(tmp_path, grams=GRAMS, y=Y, kernel_names=wrong))
    order = np.array([3, 0, 5, 1, 4, 2])
    np.savez(tmp_path / "y.npz", y=Y[order], names=np.array(points)[order])
    for key in ("names", "ids", "samples"):
        found = read(npz(tmp_path, grams=GRAMS, **{key: points}), tmp_path / "y.npz")
        assert found.labels.tolist() == Y.tolist()
        assert found.gram_names == ()
    with mistake("no label for 1 of 6 points ('other'"):
        read(npz(tmp_path, grams=GRAMS, ids=["other", *points[1:]]), tmp_path / "y.npz")


APART = {"K_train": GRAMS[:, :4, :4], "K_test": GRAMS[:, 4:, :4], "y_train": Y[:4], "y_test": Y[4:]}


def test_training_and_test_points_apart(tmp_path):
    found = read(npz(tmp_path, **APART))
    assert found.grams is not None
    assert found.apart
    known = np.ones((6, 6), dtype=bool)
    known[4:, 4:] = False
    np.testing.assert_allclose(found.grams, np.where(known, GRAMS, 0.0), atol=1e-14)
    assert [part.tolist() for part in (found.partitions[0].train, found.partitions[0].test)] == [
        [0, 1, 2, 3],
        [4, 5],
    ]
    one = read(npz(tmp_path, **APART | {"K_train": GRAMS[0, :4, :4], "K_test": GRAMS[0, 4:, :4]}))
    np.testing.assert_allclose(one.grams, found.grams[:1])
    with mistake("shape (4, 4, 2)", "(4, 2, 4)", error=GramError):
        read(npz(tmp_path, **APART | {"K_test": GRAMS[:, :4, 4:]}))
    with mistake("no array 'y_test'"):
        read(npz(tmp_path, **{name: value for name, value in APART.items() if name != "y_test"}))
    spec = DatasetSpec(name="t", grams="g.npz")
    with mistake('kind = "holdout"', 'kind = "predefined"'):
        npz(tmp_path, **APART)
        load_dataset(spec, (), tmp_path, 0, SplitsSpec())
