"""The reader of a data file, which its extension decides."""

from pathlib import Path

import numpy as np
import pytest

from mkldist.data.files import EXTENSIONS, read_file
from mkldist.data.tables import ColumnChoice
from tests.data.mistakes import mistake


def test_the_extension_decides_and_the_origin_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "T.CSV"
    path.write_text("a,label\n1,x\n")
    assert read_file(path, ColumnChoice(), "t").origin == "file T.CSV"


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_no_reader_takes_an_empty_file_or_a_directory(tmp_path: Path, extension: str) -> None:
    (tmp_path / f"empty{extension}").touch()
    with mistake("an empty file"):
        read_file(tmp_path / f"empty{extension}", ColumnChoice(), "t")
    (tmp_path / f"folder{extension}").mkdir()
    with mistake("a directory"):
        read_file(tmp_path / f"folder{extension}", ColumnChoice(), "t")


@pytest.mark.parametrize("name", ["t.npz", "t.svm"])
def test_only_tables_have_columns(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "t.npz", x=np.eye(2), y=[1, 2])
    (tmp_path / "t.svm").write_text("1 1:1\n")
    with mistake("ignore, but no table of columns", ".csv or .parquet"):
        read_file(tmp_path / name, ColumnChoice(ignore=("a",)), "t")


def test_unknown_extensions(tmp_path: Path) -> None:
    for name in ("t.xlsx", "t.npy"):
        (tmp_path / name).write_text("1")
    with mistake("'.xlsx'", ".csv.gz"):
        read_file(tmp_path / "t.xlsx", ColumnChoice(), "t")
    with mistake("by 'grams'"):
        read_file(tmp_path / "t.npy", ColumnChoice(), "t")
    with mistake("a directory"):
        read_file(tmp_path, ColumnChoice(), "t")
    with mistake("no such file"):
        read_file(tmp_path / ("x" * 3000 + ".q"), ColumnChoice(), "t")
