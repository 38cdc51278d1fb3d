"""The format of SVMlight, against scikit-learn; `raw` data refuse tables beyond memory."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mkldist.data import raw
from mkldist.data.svmlight_files import read_svmlight
from tests.data.mistakes import mistake


def read(folder: Path, text: str | bytes) -> raw.RawData:
    path = folder / "t.svm"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_svmlight(path, None, "data set 't'")


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("comment", [None, "made: by\nsomeone"])
def test_what_scikit_learn_writes_and_reads(
    tmp_path: Path, zero_based: bool, comment: str | None
) -> None:
    x = random_array((20, 9), density=0.4, format="csr", random_state=1)
    y = np.where(np.arange(20) % 3, 1, -1)
    path = tmp_path / "t.svm"
    dump_svmlight_file(x, y, str(path), zero_based=zero_based, comment=comment)
    matrix, labels = load_svmlight_file(str(path))
    found = read_svmlight(path, None, "t")
    np.testing.assert_array_equal(found.x, matrix.toarray())
    np.testing.assert_array_equal(found.labels.astype(float), labels)


def test_details_of_the_format(tmp_path: Path) -> None:
    text = "# head\n+1 qid:3 2:0.5 1:2 # 9:9\n\n-1 3:1e-3\n+1\n"
    for content in (text, gzip.compress(text.encode())):
        found = read(tmp_path, content)
        np.testing.assert_array_equal(found.x, [[2, 0.5, 0], [0, 0, 0.001], [0, 0, 0]])
        assert found.labels.tolist() == ["+1", "-1", "+1"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1 1:a", "'1:a'"),
        ("1 x:1", "'x:1'"),
        ("1 5", "'5'"),
        ("1 -2:1", "'-2:1'"),
        ("1 99999999999:1", "'99999999999:1'"),
        ("1 2:1 2:3", "index 2 twice"),
        ("1:2 2:3", "where the label should stand"),
        ("1,2 2:3", "several labels"),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, line: str, found: str) -> None:
    with mistake("line 2", found):
        read(tmp_path, f"1 1:1\n{line}\n")


def test_files_without_features_or_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mistake("no features"):
        read(tmp_path, "1\n-1\n")
    with mistake("no label option"):
        read_svmlight(tmp_path / "t.svm", "y", "t")
    monkeypatch.setattr(raw, "physical_memory", lambda: 2**30)
    with mistake("GiB", "half of this machine's memory"):
        read(tmp_path, "1 1:1\n-1 2000000000:1\n")
