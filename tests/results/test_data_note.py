"""The note of the data that a sweep read: what it tells of files that changed since."""

import os
from pathlib import Path

import pytest

from mkldist.results.folder import (
    DATA_NOTE,
    ReadData,
    changed_data,
    note_data,
    read_data_note,
    rewritten_files,
    stamps_of,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file that the sweep of its folder has read."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    note_data(tmp_path, {"t": ReadData("old", stamps_of([path, tmp_path / "gone.csv"]))})
    return path


def test_it_reads_back_and_is_written_once(file: Path) -> None:
    noted = read_data_note(file.parent)
    assert noted == {"t": ReadData("old", stamps_of([file]))}
    before = (file.parent / DATA_NOTE).stat().st_mtime_ns
    note_data(file.parent, noted)
    assert (file.parent / DATA_NOTE).stat().st_mtime_ns == before
    note_data(file.parent, {"u": ReadData("u", {})})
    assert set(read_data_note(file.parent)) == {"t", "u"}


def test_a_file_of_another_state_and_data_of_another_content_have_changed(file: Path) -> None:
    folder, same = file.parent, stamps_of([file])
    assert list(changed_data(folder, {"t": ReadData("new", same)})) == []  # another label, say
    assert list(rewritten_files(folder)) == []
    os.utime(file, ns=(0, 7))
    now = stamps_of([file])
    assert list(changed_data(folder, {"t": ReadData("old", now)})) == []
    [words] = changed_data(folder, {"t": ReadData("new", now), "u": ReadData("u", {})})
    assert words.startswith(f"{file} changed since this sweep read it on 2")
    [words] = rewritten_files(folder)
    assert words.startswith(f"{file} was written after this sweep read it on 2")


def test_files_that_are_not_here_and_damaged_notes_say_nothing(file: Path) -> None:
    file.unlink()
    assert list(rewritten_files(file.parent)) == []
    for text in ("", "[]", '{"t": 1}'):
        (file.parent / DATA_NOTE).write_text(text)
        assert read_data_note(file.parent) == {}
