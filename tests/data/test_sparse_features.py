"""Features that stay sparse from the file to the worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from mkldist.data import checks
from mkldist.data.catalogue import load_dataset
from mkldist.data.checks import check_sparse
from mkldist.data.dataset import Dataset, Split
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.data.validate import summary_lines
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec
from tests.data.mistakes import mistake

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
def test_features_stay_sparse(folder: Path, file: str) -> None:
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


def test_a_matrix_that_memory_could_not_hold_is_read_sparse(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "wide.svm").write_text("+1 2000000000:1\n-1 1:1\n")
    monkeypatch.setattr(checks, "physical_memory", lambda: 2**30)
    with mistake("an array of", 'Set sparse = true and preprocessing = { scale = "none" } for'):
        load(folder, file="wide.svm", sparse=False)
    found = load(folder, file="wide.svm")
    assert found.sparse.shape == (2, 2)
    assert found.feature_names == ("f0", "f1999999999")


@pytest.mark.parametrize("mmap", [False, True])
def test_a_snapshot_keeps_it(folder: Path, mmap: bool) -> None:
    dataset, split = load(folder), Split(np.array([0, 1]), np.array([2, 3]))
    save_snapshot(folder / "s", dataset, [split])
    found, _ = load_snapshot(folder / "s", mmap=mmap)
    assert found.fingerprint == dataset.fingerprint
    assert_array_equal(found.sparse.toarray(), dataset.sparse.toarray())


def test_dense_files_are_not_sparse(folder: Path) -> None:
    (folder / "t.csv").write_text("a,label\n1,-1\n2,1\n")
    np.savez(folder / "dense.npz", x=X, y=[1, -1, 1, -1])
    with mistake("sparse = true", "a .npz file of the parts"):
        load(folder, file="t.csv")
    with mistake("sparse = true for dense features"):
        load(folder, file="dense.npz")


def test_values_that_are_not_finite_are_counted() -> None:
    said = "t: found 2 values missing or infinite, the first in row 2 (from 0)"
    with mistake(said, "absent entries of sparse features"):
        check_sparse(csr_array([[3, 1], [0, 0], [1, np.nan], [0, np.inf]]), "t")


def test_constant_features_alone_are_refused(folder: Path) -> None:
    (folder / "t.svm").write_text("+1 1:1\n-1 1:1\n")
    with mistake("1 feature, constant"):
        load(folder)
