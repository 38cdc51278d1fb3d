"""Checks of arrays, blocks of rows, and sparse features."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from mkldist.data import checks
from mkldist.data.catalogue import load_dataset
from mkldist.data.checks import (
    as_features,
    check_fits,
    check_rows,
    check_sparse,
    moved_up,
    row_blocks,
)
from mkldist.data.dataset import Dataset
from mkldist.data.validate import summary_lines
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from tests.data.mistakes import mistake


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "bool", ">f8"])
def test_features_become_contiguous_float64(dtype):
    values = np.array([[0, 1], [1, 1], [1, 0]], dtype=dtype)[:, ::-1]
    found = as_features(values, "t")
    np.testing.assert_array_equal(found, [[1, 0], [1, 1], [0, 1]])
    assert found.dtype == np.dtype("float64")
    assert found.flags.c_contiguous


@pytest.mark.parametrize("values", [
    np.array([["1"]]), np.array([[1]], object), np.array([[1j]]), np.ones(3),
    np.ones((3, 0)), np.ones((2, 2, 2)),
])  # fmt: skip
def test_what_is_no_matrix_of_real_numbers(values):
    with mistake("an array of "):
        as_features(values, "t")


def test_a_text_in_an_array_is_named_with_its_place():
    values = np.array([[1, "2"], ["old", 3]], dtype=object)
    with mistake("t, row 1 (from 0), column 'age': found 'old'; expected a number"):
        as_features(values, "t", ("age", "crp"))
    with mistake("t, row 0 (from 0), column 1 (from 0): found '1,5'", "decimals with a point"):
        as_features(np.array([["1", "1,5"]]), "t")


def test_rows_and_labels_are_as_many():
    check_rows(3, 3, "t")
    with mistake("3 rows of features but 4 labels", "one label per row"):
        check_rows(3, 4, "t")
    with mistake("no rows"):
        check_rows(0, 0, "t")


def test_half_of_the_memory_is_the_limit(monkeypatch):
    monkeypatch.setattr(checks, "physical_memory", lambda: 8 * 2**30)
    check_fits(4 * 2**30, "t", "Select features first")
    with mistake("4.5 GiB", "at most 4.0 GiB, half of this machine's memory", "Select features"):
        check_fits(9 * 2**29, "t", "Select features first")


@given(st.integers(0, 50), st.integers(0, 5 * 2**22))
def test_blocks_cover_all_rows_once_and_fit(n_rows, row_bytes):
    blocks = list(row_blocks(n_rows, row_bytes))
    assert [row for block in blocks for row in range(block.start, block.stop)] == [*range(n_rows)]
    limit = max(checks.BLOCK_BYTES, row_bytes)
    assert all((block.stop - block.start) * row_bytes <= limit for block in blocks)


@pytest.mark.slow
@given(st.data())
def test_rows_and_columns_are_moved_without_a_copy(data):
    n, d = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 5))
    x = np.arange(n * d, dtype=np.float64).reshape(n, d)
    rows, columns = (
        data.draw(
            st.none()
            | st.sets(st.integers(0, size - 1)).map(lambda s: np.array(sorted(s), dtype=np.intp))
        )
        for size in (n, d)
    )
    expected = x.copy()
    expected = expected if rows is None else expected[rows]
    expected = expected if columns is None else expected[:, columns]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "BLOCK_BYTES", 8 * d * data.draw(st.integers(1, 4)))
        found = moved_up(x, rows, columns)
    np.testing.assert_array_equal(found, expected)
    assert not found.size or (np.shares_memory(found, x) and found.flags.c_contiguous)


LINES = "+1 1:2 4:1\n-1 2:0.5 4:1 # note\n+1 4:1\n-1 1:3 4:1\n0 3:1\n"
X = np.array([[2.0, 0, 0, 1], [0, 0.5, 0, 1], [0, 0, 0, 1], [3, 0, 0, 1]])


def load(folder: Path, **entry: Any) -> Dataset:
    given = {"name": "t", "file": "t.svm", "sparse": True, "classes": [-1, 1], **entry}
    return load_dataset(DatasetSpec.model_validate(given), (), folder, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t.svm").write_text(LINES)
    parts = csr_array(X)
    np.savez(
        tmp_path / "t.npz", data=parts.data, indices=parts.indices, indptr=parts.indptr,
        shape=parts.shape, y=[1, -1, 1, -1],
    )  # fmt: skip
    return tmp_path


@pytest.mark.parametrize("file", ["t.svm", "t.npz"])
def test_features_stay_sparse(folder, file):
    found = load(folder, file=file, groups={"g": [0, "f1"]})
    assert found.x is None
    assert isinstance(found.sparse, csr_array)
    assert_array_equal(found.sparse.toarray(), X[:, :2])  # the third and fourth do not vary
    assert found.feature_names == ("f0", "f1")
    assert (found.n_points, found.n_features) == (4, 2)
    assert found.groups == {"g": (0, 1)}
    said = "\n".join(summary_lines(found, PreprocessingSpec(scale="none")))
    assert "features:  sparse, 38 % of the entries" in said
    assert "constant:  'f2', 'f3'" in said
    kept = load(folder, file=file, drop_constant=False)
    assert_array_equal(kept.sparse.toarray(), X)
    assert kept.fingerprint != found.fingerprint


def test_a_matrix_that_memory_could_not_hold_is_read_sparse(folder, monkeypatch):
    (folder / "wide.svm").write_text("+1 2000000000:1\n-1 1:1\n")
    monkeypatch.setattr(checks, "physical_memory", lambda: 2**30)
    with mistake("an array of", 'Set sparse = true and preprocessing = { scale = "none" } for'):
        load(folder, file="wide.svm", sparse=False)
    found = load(folder, file="wide.svm")
    assert found.sparse.shape == (2, 2)
    assert found.feature_names == ("f0", "f1999999999")


def test_dense_files_are_not_sparse(folder):
    (folder / "t.csv").write_text("a,label\n1,-1\n2,1\n")
    np.savez(folder / "dense.npz", x=X, y=[1, -1, 1, -1])
    with mistake("sparse = true", "a .npz file of the parts"):
        load(folder, file="t.csv")
    with mistake("sparse = true for dense features"):
        load(folder, file="dense.npz")


def test_values_that_are_not_finite_are_counted():
    said = "t: found 2 values missing or infinite, the first in row 2 (from 0)"
    with mistake(said, "absent entries of sparse features"):
        check_sparse(csr_array([[3, 1], [0, 0], [1, np.nan], [0, np.inf]]), "t")
