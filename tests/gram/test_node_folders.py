"""Folders in the cache of a machine: those used longest ago make room, the one in use stays."""

from __future__ import annotations

import os

from mkldist.gram.node_folders import NodeFolders


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
