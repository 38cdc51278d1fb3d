"""Files that cannot be opened, each with one message."""

import os
from pathlib import Path

import pytest

from mkldist.data.opening import opened
from tests.data.mistakes import mistake


def read(path: Path) -> bytes:
    with opened(path, f"data set 't' ({path})") as stream:
        return stream.read()


def test_an_absent_file_gets_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "sonar.csv").write_text("a")
    with mistake("sonr.csv", "no such file", "'sonar.csv'"):
        read(tmp_path / "sonr.csv")
    with mistake("no such file", "relative to the sweep file"):
        read(tmp_path / "absent" / "x.csv")


def test_a_name_that_no_file_system_takes(tmp_path: Path) -> None:
    with mistake("no such file", "an existing file"):
        read(tmp_path / ("x" * 5000))


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    with mistake(str(tmp_path), "a directory", "a file"):
        read(tmp_path)


def test_something_that_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with mistake("neither a file nor a directory"):
        read(tmp_path / "pipe")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret.csv"
    path.write_text("a")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with mistake("Permission denied", "a readable file"):
        read(path)
