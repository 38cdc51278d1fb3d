"""Folders of blobs, opened and listed by path, ``file://`` or another URL."""

from __future__ import annotations

import uuid

import pytest

from mkldist.bank.byte_store import list_folders, open_bytes
from mkldist.errors import StoreError


@pytest.fixture(params=["path", "file", "memory"])
def root(request, tmp_path):
    """Return an empty place of each kind."""
    places = {
        "path": str(tmp_path),
        "file": f"file://{tmp_path}",
        "memory": f"memory://{uuid.uuid4().hex}",
    }
    return places[request.param]


def test_what_is_put_is_there_and_its_folder_is_listed(root):
    assert list_folders(root) == []
    for folder in ("b", "a", ".hidden"):
        blobs = open_bytes(root, folder)
        blobs.put("gram/c/0", [b"abc", memoryview(b"de")])
        assert blobs.get("gram/c/0") == b"abcde"
        assert blobs.get("gram/c/1") is None
        assert blobs.names("gram") == ["gram/c/0"]
        assert (blobs.has("gram/c/0"), blobs.has("gram/c"), blobs.has("x")) == (True, False, False)
        blobs.put("gram/c/0", [b"abcde"])
        blobs.remove("nothing")
    assert list_folders(root) == ["a", "b"]
    open_bytes(root, "a").clear()
    assert open_bytes(root, "a").get("gram/c/0") is None
    assert open_bytes(root, "b").get("gram/c/0") == b"abcde"


def test_urls_of_files_are_paths(tmp_path):
    assert open_bytes(f"file://{tmp_path}", "a") == open_bytes(tmp_path, "a")
    assert open_bytes(tmp_path, "a").is_local
    assert not open_bytes("memory://x", "a").is_local


def test_a_place_that_is_not_there_has_no_folders(tmp_path):
    assert list_folders(tmp_path / "nowhere") == []
    (tmp_path / "file").write_text("")
    assert list_folders(tmp_path / "file") == []


def test_urls_that_nothing_can_open_are_named():
    with pytest.raises(StoreError, match="nonsense://banks"):
        list_folders("nonsense://banks")
