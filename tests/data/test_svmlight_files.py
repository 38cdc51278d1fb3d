"""The format of SVMlight: what scikit-learn writes, lines of mistakes, sizes beyond memory."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mkldist.data import checks
from mkldist.data.catalogue import load_dataset
from mkldist.data.dataset import RawData
from mkldist.data.files import read_file
from mkldist.data.gram_files import read_grams
from mkldist.data.splits import make_splits
from mkldist.data.tables import ColumnChoice
from mkldist.errors import GramError
from mkldist.spec.datasets import DatasetSpec, SplitsSpec
from tests.data.mistakes import mistake


def read(folder: Path, text: str | bytes, **columns: object) -> RawData:
    path = folder / "t.svm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_file(path, ColumnChoice(**columns), "data set 't'")


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("comment", [None, "made: by\nsomeone"])
def test_what_scikit_learn_writes_and_reads(tmp_path, zero_based, comment):
    x = random_array((20, 9), density=0.4, format="csr", random_state=1)
    y = np.where(np.arange(20) % 3, 1, -1)
    path = tmp_path / "t.svm"
    dump_svmlight_file(x, y, str(path), zero_based=zero_based, comment=comment)
    matrix, labels = load_svmlight_file(str(path))
    found = read_file(path, ColumnChoice(), "t")
    np.testing.assert_array_equal(found.x, matrix.toarray())
    np.testing.assert_array_equal(found.labels, labels)


def test_details_of_the_format(tmp_path):
    text = "# head\n+1 1:2 2:0.5 # 9:9\n\n-1 3:1e-3\n+1\n"
    for content in (text, gzip.compress(text.encode())):
        found = read(tmp_path, content)
        np.testing.assert_array_equal(found.x, [[2, 0.5, 0], [0, 0, 0.001], [0, 0, 0]])
        assert found.labels.tolist() == [1, -1, 1]
        assert [found.row_labels.of(row) for row in range(3)] == ["line 2", "line 4", "line 5"]


@pytest.mark.parametrize(
    "line",
    ["1 1:a", "1 x:1", "1 5", "1 -2:1", "1 99999999999:1", "1 2:1 2:3", "1 2:1 1:3", "1:2 2:3",
     "1,2 2:3", "spam 1:2"],
)  # fmt: skip
def test_wrong_lines_are_named(tmp_path, line):
    with mistake("line 2", repr(line)):
        read(tmp_path, f"1 1:1\n{line}\n")


def test_files_without_features_or_too_many(tmp_path, monkeypatch):
    with mistake("no features"):
        read(tmp_path, "1\n-1\n")
    with mistake("no label option"):
        read(tmp_path, "1 1:1\n", label="y")
    monkeypatch.setattr(checks, "physical_memory", lambda: 2**30)
    with mistake("GiB", "half of this machine's memory"):
        read(tmp_path, "1 1:1\n-1 2000000000:1\n")


def test_precomputed_kernels_of_libsvm_are_a_gram_matrix(tmp_path):
    points = np.random.default_rng(0).normal(size=(7, 3))
    gram = np.exp(-((points[:, None] - points) ** 2).sum(-1))
    order = [3, 0, 1, 6, 2, 5, 4]  # of the rows in the file
    values = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row)) for row in gram.tolist()]
    text = "\n".join(f"{(-1) ** row} 0:{row + 1} {values[row]}" for row in order)
    found = read(tmp_path, text)
    assert (found.x, found.labels.tolist()) == (None, [(-1) ** row for row in order])
    assert found.grams is not None
    np.testing.assert_allclose(found.grams, gram[np.ix_(order, order)][None], atol=1e-14)
    assert len(found.summary.notes) == 1
    asked = read_grams(tmp_path / "t.svm", None, None, "t")
    np.testing.assert_array_equal(asked.grams, found.grams)
    of_rank_3 = points @ points.T
    few = [" ".join(f"{j}:{v:.6g}" for j, v in enumerate(row, 1)) for row in of_rank_3]
    rounded = read(tmp_path, "\n".join(f"{n % 2} 0:{n} {row}" for n, row in enumerate(few, 1)))
    for grams in (rounded.grams, read_grams(tmp_path / "t.svm", None, None, "t").grams):
        np.testing.assert_allclose(grams, [of_rank_3], atol=1e-4)
    with pytest.raises(GramError, match="a symmetric matrix"):
        read(tmp_path, text.replace("0:4 1:", "0:4 1:9"))
    assert read(tmp_path, "\n".join(f"1 {line}" for line in values)).grams is None
    part = order[:4]  # points of a larger kernel
    found = read(tmp_path, "\n".join(f"{row} 0:{row + 1} {values[row]}" for row in part))
    assert found.grams is not None
    np.testing.assert_allclose(found.grams, gram[np.ix_(part, part)][None], atol=1e-14)
    assert any("3 points" in note for note in found.summary.notes)
    of_test = [f"1 0:{n} 1:{k[4]!r} 2:{k[5]!r} 3:{k[6]!r}" for n, k in enumerate(gram.tolist(), 1)]
    with mistake("numbers of the rows, 1 to 7, at index 0, and indices to 3"):
        read(tmp_path, "\n".join(of_test))
    with pytest.raises(GramError, match="index 0 numbers the rows"):
        read(tmp_path, "\n".join(of_test[:3]))
    counts = "\n".join(f"1 0:{1 + row % 3} 1:1.5 2:0.5 3:{row}" for row in range(9))
    assert read(tmp_path, counts).grams is None  # features from index 0


def test_queries_are_groups_that_splits_keep_whole(tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 4)
    text = "\n".join(
        f"{n % 2} qid:{q} 1:{rng.normal()} 2:{rng.normal()}" for n, q in enumerate(groups)
    )
    (tmp_path / "t.svm").write_text(text)
    spec = DatasetSpec(name="t", file="t.svm")
    for named in (None, "qid"):
        splits = SplitsSpec(kind="kfold", folds=5, groups=named)
        found = load_dataset(spec, (), tmp_path, 0, splits)
        assert found.row_groups is not None
        np.testing.assert_array_equal(found.row_groups, np.unique(groups, return_inverse=True)[1])
        for split in make_splits(splits, found, 0):
            assert not set(groups[split.train]) & set(groups[split.test])
    assert any("10 groups" in note for note in found.summary.notes)
    with mistake("qid: in 39 of 40 lines"):
        read(tmp_path, text.replace(" qid:0", "", 1))
