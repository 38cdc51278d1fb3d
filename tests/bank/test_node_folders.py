"""Folders in the cache of a machine: those used longest ago make room, the one in use stays."""

from __future__ import annotations

import errno
import os

import pytest
from filelock import ReadWriteLock

from mkldist.bank.cache import NodeFolders
from mkldist.errors import OutputError


def test_those_used_longest_ago_make_room(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    folders = NodeFolders("built", budget_bytes=100)
    for age, name in enumerate("cba"):
        with folders.alone(name) as folder:
            (folder / "values").write_bytes(b"0" * 30)
        os.utime(folder, (age, age))
    with folders.alone("c"):  # used again
        folders.make_room(10, keep="new")
        assert {path.name for path in folders.root.glob("?")} == {"a", "b", "c"}
        folders.make_room(11, keep="new")
    assert {path.name for path in folders.root.glob("?")} == {"a", "c"}
    folders.make_room(1000, keep="a")
    assert {path.name for path in folders.root.glob("?")} == {"a"}


def test_a_folder_in_use_stays_though_the_budget_is_exceeded(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    folders = NodeFolders("built", budget_bytes=10)
    with folders.used("a") as folder, folders.used("a"):
        (folder / "values").write_bytes(b"0" * 30)
        folders.make_room(100, keep="new")
        assert (folder / "values").exists()
        with folders.used("b"):
            pass
        folders.make_room(100, keep="new")
        assert [path.name for path in folders.root.glob("?")] == ["a"]
    folders.make_room(100, keep="new")
    assert [*folders.root.glob("?")] == []


def test_a_cache_without_locks_is_told(tmp_path, monkeypatch):
    def no_locks(*_, **__):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    monkeypatch.setattr(ReadWriteLock, "acquire_read", no_locks)
    with (
        pytest.raises(OutputError, match="a file system without locks"),
        NodeFolders("built").used("a"),
    ):
        pass
