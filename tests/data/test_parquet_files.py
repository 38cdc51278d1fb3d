"""Parquet files, and `frames` with columns of all kinds."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mkldist.data.columns import ColumnChoice
from mkldist.data.parquet_files import read_parquet
from mkldist.data.raw import RawData
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
    return read_parquet(folder / "t.parquet", ColumnChoice(label), "data set 't'")


def test_columns_of_all_kinds(tmp_path: Path) -> None:
    nan = np.nan
    found = read(tmp_path, FRAME)
    np.testing.assert_array_equal(found.x, [[1, 0.5, 1, 1], [2, nan, 0, nan], [3, -1, 1, 3]])
    assert found.labels.tolist() == ["x", "y", ""]
    assert found.feature_names == ("a", "b", "c", "d")


def test_columns_have_the_roles_that_they_are_given(tmp_path: Path) -> None:
    frame = FRAME.assign(sex=["m", None, "m"], day=pd.date_range("2021-03-01", periods=3))
    frame["size"] = [2.0, None, 2.0]
    frame.to_parquet(tmp_path / "t.parquet")
    choice = ColumnChoice(ignore=("day",), categorical=("sex", "size"), id="a")
    found = read_parquet(tmp_path / "t.parquet", choice, "t")
    assert found.feature_names == ("b", "c", "d", "sex=m", "sex=?", "size=2", "size=?")
    np.testing.assert_array_equal(found.x[:, 3:], [[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    assert found.account.left_out == ("'a' (names the rows)", "'day' (ignored)")
    with mistake("'sex' (m), 'day' (2021-03-01", "categorical = [names]", "ignore = [names]"):
        read_parquet(tmp_path / "t.parquet", ColumnChoice(), "t")


def test_an_index_of_pandas_is_no_feature(tmp_path: Path) -> None:
    assert read(tmp_path, FRAME.iloc[[2, 0]]).feature_names == ("a", "b", "c", "d")


def test_label_columns_and_rows(tmp_path: Path) -> None:
    with mistake("no column 'lable'", "'label'"):
        read(tmp_path, FRAME, "lable")
    with mistake("no rows"):
        read(tmp_path, FRAME.iloc[:0])
    with mistake("1 column"):
        read(tmp_path, FRAME[["label"]])


def test_pandas_own_facts_of_a_table_are_not_read(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pandas(FRAME).replace_schema_metadata({b"pandas": b'{"a" 1}'})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = read_parquet(tmp_path / "t.parquet", ColumnChoice("label"), "t")
    assert found.feature_names == ("a", "b", "c", "d")


def test_damaged_files(tmp_path: Path) -> None:
    read(tmp_path, FRAME)
    path = tmp_path / "t.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with mistake("cannot be read"):
        read_parquet(path, ColumnChoice(), "t")
    path.write_text("a,b\n")
    with mistake("cannot be read"):
        read_parquet(path, ColumnChoice(), "t")
    with mistake("a directory"):
        read_parquet(tmp_path, ColumnChoice(), "t")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with mistake("no package pyarrow", "pip install 'mkldist[parquet]'"):
        read_parquet(tmp_path / "t.parquet", ColumnChoice(), "t")
