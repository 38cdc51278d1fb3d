"""The reader of a data file, which its extension decides."""

from pathlib import Path

import pytest

from mkldist.data.files import READERS, read_file
from tests.data.mistakes import mistake


def test_the_extension_decides_and_the_origin_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "T.CSV"
    path.write_text("a,label\n1,x\n")
    assert read_file(path, None, "t").origin == "file T.CSV"


@pytest.mark.parametrize("extension", READERS)
def test_no_reader_takes_an_empty_file_or_a_directory(tmp_path: Path, extension: str) -> None:
    (tmp_path / f"empty{extension}").touch()
    with mistake("an empty file"):
        read_file(tmp_path / f"empty{extension}", None, "t")
    (tmp_path / f"folder{extension}").mkdir()
    with mistake("a directory"):
        read_file(tmp_path / f"folder{extension}", None, "t")


def test_unknown_extensions(tmp_path: Path) -> None:
    with mistake("'.xlsx'", ".csv.gz"):
        read_file(tmp_path / "t.xlsx", None, "t")
    with mistake("by 'grams'"):
        read_file(tmp_path / "t.npy", None, "t")
    with mistake("a directory"):
        read_file(tmp_path, None, "t")
