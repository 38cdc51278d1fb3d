"""Parquet files, `table_blocks` of them, and `frames` with columns of all kinds."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mkldist.data import checks
from mkldist.data.checks import rows_at_once
from mkldist.data.dataset import RawData
from mkldist.data.files import read_file
from mkldist.data.parquet_files import open_parquet
from mkldist.data.tables import ColumnChoice
from mkldist.data.validate import validate
from mkldist.spec.datasets import DatasetSpec
from tests.data.mistakes import mistake

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

FRAME = pd.DataFrame(
    {
        "a": [1, 2, 3],
        "b": [0.5, None, -1],
        "c": [True, False, True],
        "d": pd.array([1, None, 3], "Int64"),
        "label": ["x", "y", None],
    }
)


def read(folder: Path, frame: pd.DataFrame, label: str | int | None = None) -> RawData:
    frame.to_parquet(folder / "t.parquet")
    return read_file(folder / "t.parquet", ColumnChoice(label), "data set 't'")


def test_columns_have_the_roles_that_they_are_given(tmp_path):
    frame = FRAME.assign(sex=["m", None, "m"], day=pd.date_range("2021-03-01", periods=3))
    frame["size"] = [2.0, None, 2.0]
    frame.to_parquet(tmp_path / "t.parquet")
    choice = ColumnChoice(ignore=("day",), categorical=("sex", "size"), id="a")
    found = read_file(tmp_path / "t.parquet", choice, "t")
    assert found.feature_names == ("b", "c", "d", "sex=m", "sex=?", "size=2", "size=?")
    np.testing.assert_array_equal(found.x[:, 3:], [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    assert found.summary.left_out == ("'a' (names the rows)", "'day' (ignored)")
    with mistake("text in column 'sex' (2 of 3", "dates in column 'day' (3 of 3"):
        read_file(tmp_path / "t.parquet", ColumnChoice(), "t")


def test_an_index_of_pandas_is_no_feature(tmp_path):
    assert read(tmp_path, FRAME.iloc[[2, 0]]).feature_names == ("a", "b", "c", "d")


def test_pandas_own_facts_of_a_table_are_not_read(tmp_path):
    table = pyarrow.Table.from_pandas(FRAME).replace_schema_metadata({b"pandas": b'{"a" 1}'})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = read_file(tmp_path / "t.parquet", ColumnChoice("label"), "t")
    assert found.feature_names == ("a", "b", "c", "d")


def test_damaged_files(tmp_path):
    read(tmp_path, FRAME)
    path = tmp_path / "t.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with mistake("cannot be read"):
        read_file(path, ColumnChoice(), "t")
    path.write_text("a,b\n")
    with mistake("cannot be read"):
        read_file(path, ColumnChoice(), "t")


def test_a_column_of_lists_is_named_with_what_it_holds(tmp_path):
    lists = FRAME.assign(e=[[1, 2], [3], [1, 2]])
    with mistake("column 'e' (3 of 3 rows, such as '[1 2]'"):
        read(tmp_path, lists, "label")


def test_without_pyarrow(tmp_path, monkeypatch):
    FRAME.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with mistake("no package pyarrow", "pip install 'mkldist[parquet]'"):
        read_file(tmp_path / "t.parquet", ColumnChoice(), "t")


def test_a_table_read_a_few_rows_at_a_time_is_the_same(tmp_path, monkeypatch):
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": pd.array(np.where(np.arange(n) < 90, None, np.arange(n)), "Int64"),
            "size": np.where(np.arange(n) < 90, None, rng.integers(0, 3, n)),
            "out": ["x"] * n,
            "label": np.where(rng.random(n) < 0.1, None, rng.integers(0, 2, n)),
        }
    )
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=150)
    choice = ColumnChoice(categorical=("size",), ignore=("out",))
    whole = read_file(tmp_path / "t.parquet", choice, "t")
    monkeypatch.setattr(checks, "BLOCK_BYTES", 8 * 4 * 64)
    with open_parquet(tmp_path / "t.parquet", "t") as table:
        rows = [len(frame) for frame, _ in table.read(["a"], rows_at_once(8 * 4))]
    assert len(rows) > 5
    assert max(rows) <= 64
    found = read_file(tmp_path / "t.parquet", choice, "t")
    np.testing.assert_array_equal(found.x, whole.x)
    np.testing.assert_array_equal(found.x[:, 0], frame["a"])
    np.testing.assert_array_equal(found.labels, whole.labels)
    assert found.feature_names == whole.feature_names
    assert found.summary == whole.summary


def test_a_row_is_named_by_its_place_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 1)
    frame = FRAME.assign(label=[b"x", b"y", b"\xff"])
    with mistake("row 3 (from 1)", "UTF-8"):
        read(tmp_path, frame)


def test_a_table_that_does_not_fit_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "physical_memory", lambda: 2 * 8 * 4 * 3 - 1)
    with mistake("an array of", "half of this machine's memory"):
        read(tmp_path, FRAME)


def test_constant_columns_leave_in_the_memory_of_the_others(tmp_path):
    frame = pd.DataFrame(
        {"a": [1.0, 2, 3, 4], "k": 7.0, "b": [0.0, 1, 1, 0], "label": list("xyxz")}
    )
    raw_data = read(tmp_path, frame)
    spec = DatasetSpec(name="t", classes=["x", "y"])
    dataset = validate(spec, raw_data, "t")
    np.testing.assert_array_equal(dataset.x, [[1, 0], [2, 1], [3, 1]])
    assert np.shares_memory(dataset.x, raw_data.x)


def test_texts_that_repeat_are_in_memory_once(tmp_path):
    """Half a kilobyte of which each row would take 10 MB."""
    long = pyarrow.array(["x" * 10**7, "y"])
    rows = pyarrow.array([0, 1] * 5_000, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(rows, long)
    table = pyarrow.table({"a": texts, "b": np.arange(1e4), "label": np.arange(10_000) % 2})
    parquet.write_table(table, tmp_path / "t.parquet", compression="zstd")
    found = read_file(tmp_path / "t.parquet", ColumnChoice("label", texts=("a",)), "t")
    assert list(map(len, found.texts.values[:4, 0])) == [10**7, 1] * 2
    with mistake("column 'a'", "a text of 10,000,000 letters", "names of categories"):
        read_file(tmp_path / "t.parquet", ColumnChoice("label", categorical=("a",)), "t")
    with mistake("texts of 372.5 GiB", "half of this machine's memory"):
        read_file(tmp_path / "t.parquet", ColumnChoice("a"), "t")
