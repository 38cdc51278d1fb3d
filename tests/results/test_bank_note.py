"""The note of the banks that a sweep stored."""

from __future__ import annotations

import pytest

from mkldist.results.bank_note import NOTE, note_banks, noted_banks


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
    before = (tmp_path / NOTE).stat()
    note_banks(tmp_path, "/one", ["a"])
    after = (tmp_path / NOTE).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("text", ["", "[]", '{"/one": 1}', '{"/one": ['])
def test_a_damaged_note_names_no_bank(tmp_path, text):
    (tmp_path / NOTE).write_text(text)
    assert noted_banks(tmp_path) == {}


def test_without_a_note_there_are_none(tmp_path):
    assert noted_banks(tmp_path) == {}
