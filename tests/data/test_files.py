"""Data files of every extension, gzipped, and those that cannot be opened."""

import gzip
import io
import os
from pathlib import Path

import numpy as np
import pytest

from mkldist.data import opening
from mkldist.data.files import EXTENSIONS, read_file
from mkldist.data.opening import opened
from mkldist.data.tables import ColumnChoice
from mkldist.run.saved_inputs import source_files
from mkldist.spec.datasets import DatasetSpec
from tests.data.mistakes import mistake


def test_the_extension_decides_and_the_origin_is_kept(tmp_path):
    path = tmp_path / "T.CSV"
    path.write_text("a,label\n1,x\n")
    assert read_file(path, ColumnChoice(), "t").origin == "file T.CSV"


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_no_reader_takes_an_empty_file_or_a_directory(tmp_path, extension):
    (tmp_path / f"empty{extension}").touch()
    with mistake("an empty file"):
        read_file(tmp_path / f"empty{extension}", ColumnChoice(), "t")
    (tmp_path / f"folder{extension}").mkdir()
    with mistake("found a directory"):
        read_file(tmp_path / f"folder{extension}", ColumnChoice(), "t")


@pytest.mark.parametrize("name", ["t.npz", "t.svm"])
def test_only_tables_have_columns(tmp_path, name):
    np.savez(tmp_path / "t.npz", x=np.eye(2), y=[1, 2])
    (tmp_path / "t.svm").write_text("1 1:1\n")
    with mistake("ignore, but no table of columns", ".csv or .parquet"):
        read_file(tmp_path / name, ColumnChoice(ignore=("a",)), "t")


def test_unknown_extensions(tmp_path):
    for name in ("t.xls", "t.npy"):
        (tmp_path / name).write_text("1")
    with mistake("'.xls'", ".csv.gz"):
        read_file(tmp_path / "t.xls", ColumnChoice(), "t")
    with mistake("by 'grams'"):
        read_file(tmp_path / "t.npy", ColumnChoice(), "t")
    with mistake("a directory"):
        read_file(tmp_path, ColumnChoice(), "t")
    with mistake("no such file"):
        read_file(tmp_path / ("x" * 3000 + ".q"), ColumnChoice(), "t")


def test_all_files_of_an_entry_are_found(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pathways.gmt").write_text("")
    (tmp_path / "data" / "mine.csv").write_text("")
    entry = DatasetSpec.model_validate({
        "name": "t", "file": "t.csv", "group_file": "pathways.gmt",
        "views": [{"name": "a", "file": "a.csv"}, {"name": "k", "grams": "k.npz"}],
    })  # fmt: skip
    found = source_files(entry, (tmp_path / "data",), tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in found]
    assert names == ["t.csv", "data/pathways.gmt", "a.csv", "k.npz"]
    assert source_files(DatasetSpec(name="wdbc"), (), tmp_path) == []
    named = source_files(DatasetSpec(name="mine"), (tmp_path / "data",), tmp_path)
    assert named == [tmp_path / "data" / "mine.csv"]


def read(path: Path) -> bytes:
    with opened(path, f"data set 't' ({path})") as stream:
        return stream.read()


def test_an_absent_file_gets_the_nearest_name(tmp_path):
    (tmp_path / "sonar.csv").write_text("a")
    with mistake("sonr.csv", "no such file", "'sonar.csv'"):
        read(tmp_path / "sonr.csv")
    with mistake("no such file", "paths in a sweep file start at its folder"):
        read(tmp_path / "absent" / "x.csv")


def test_a_name_that_no_file_system_takes(tmp_path):
    with mistake("no such file", "an existing file"):
        read(tmp_path / ("x" * 5000))


def test_a_directory_in_place_of_a_file(tmp_path):
    with mistake(str(tmp_path), "found a directory; expected a file"):
        read(tmp_path)


def test_something_that_is_no_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with mistake("neither a file nor a directory"):
        read(tmp_path / "pipe")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "secret.csv"
    path.write_text("a")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with mistake("Permission denied", "a readable file"):
        read(path)


def test_a_gzip_file_that_unpacks_to_far_more_than_itself(tmp_path, monkeypatch):
    path = tmp_path / "t.csv.gz"
    content = b"1,2,0\n" * 200_000
    path.write_bytes(gzip.compress(content))
    assert len(content) > opening.MOST_PACKED * path.stat().st_size
    assert read(path) == content  # a table of this size is read
    monkeypatch.setattr(opening, "SMALL", 2**10)
    with mistake("unpacks to more than", "at most 100 times its size", "by gunzip"):
        read(path)


def test_the_end_of_a_large_gzip_file_that_is_cut_tells_nothing(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"1,2,0\n")[:-8] + b"\xff" * 4)
    with mistake("a gzip file that is cut short or damaged", "a complete file"):
        read(path)


def test_a_gzip_file_can_be_read_at_any_place(tmp_path):
    path, content = tmp_path / "t.gz", bytes(range(256)) * 1000
    path.write_bytes(gzip.compress(content))
    with opened(path, "t") as stream, io.BytesIO(content) as plain:
        for offset, whence in ((-9, 2), (77, 0), (5, 1), (-3, 1), (100_000, 0), (0, 2), (0, 0)):
            assert stream.seek(offset, whence) == plain.seek(offset, whence)
            assert stream.tell() == plain.tell()
            assert stream.read(7) == plain.read(7)
