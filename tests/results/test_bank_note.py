"""The note of the banks that a sweep stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from mkldist.errors import StoreError
from mkldist.results.folder import (
    BANK_NOTE,
    checked_note,
    drop_damaged_note,
    is_note_damaged,
    note_banks,
    noted_banks,
)


def test_banks_are_added_by_their_folder_and_none_twice(tmp_path):
    note_banks(tmp_path, "/one", ["b", "a"])
    note_banks(tmp_path, "/one", ["b", "c"])
    note_banks(tmp_path, "s3://two", ["a"])
    assert noted_banks(tmp_path) == {"/one": ["a", "b", "c"], "s3://two": ["a"]}


def test_a_folder_without_banks_is_noted_too(tmp_path):
    note_banks(tmp_path, "/one", [])
    assert noted_banks(tmp_path) == {"/one": []}


def test_a_note_that_says_nothing_new_is_not_written_again(tmp_path):
    note_banks(tmp_path, "/one", ["a", "b"])
    before = (tmp_path / BANK_NOTE).stat()
    note_banks(tmp_path, "/one", ["a"])
    after = (tmp_path / BANK_NOTE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("text", ["", "[]", '{"/one": 1}', '{"/one": ['])
def test_a_damaged_note_names_no_bank(tmp_path, text):
    (tmp_path / BANK_NOTE).write_text(text)
    assert noted_banks(tmp_path) == {}


def broken(note: Path, kind: str) -> None:
    if kind == "text":
        note.write_text("{")
    elif kind == "folder":
        note.mkdir()
        (note / "thesis.tex").write_text("years of work")
    else:
        note.symlink_to(note)


@pytest.mark.parametrize("kind", ["text", "folder", "loop"])
def test_a_damaged_note_is_told_from_none_and_written_anew(tmp_path, kind):
    assert checked_note(tmp_path) == {}
    broken(tmp_path / BANK_NOTE, kind)
    assert is_note_damaged(tmp_path)
    found = rf"{BANK_NOTE}: found a damaged note .* 'mkldist verify {tmp_path} --repair'"
    with pytest.raises(StoreError, match=found):
        checked_note(tmp_path)
    note_banks(tmp_path, "/one", ["a"])
    assert checked_note(tmp_path) == {"/one": ["a"]}
    assert (tmp_path / f"{BANK_NOTE}.moved" / "thesis.tex").exists() == (kind == "folder")
    drop_damaged_note(tmp_path)
    assert checked_note(tmp_path) == {"/one": ["a"]}


@pytest.mark.parametrize("kind", ["text", "folder", "loop"])
def test_a_damaged_note_is_dropped_where_nothing_is_stored(tmp_path, kind):
    broken(tmp_path / BANK_NOTE, kind)
    drop_damaged_note(tmp_path)
    assert checked_note(tmp_path) == {}


def test_without_a_note_there_are_none(tmp_path):
    assert noted_banks(tmp_path) == {}
