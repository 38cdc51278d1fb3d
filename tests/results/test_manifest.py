"""The manifest of an output folder: every flipped bit is found, and a damaged one made anew."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mkldist.errors import OutputError
from mkldist.results.folder import (
    Manifest,
    manifest_name,
    owner,
    read_manifest,
    restored_manifest,
    write_manifest,
)
from mkldist.results.layout import TreeLayout, write_layout

SPEC = json.dumps({"name": "one", "description": "größe"})


def with_layout(path, name="one"):
    write_layout(path, TreeLayout((), {}, {"sweep": name, "spec": SPEC}))


def test_what_is_written_comes_back_and_is_kept(tmp_path):
    write_manifest(tmp_path, "one", None)
    assert read_manifest(tmp_path) == Manifest("one")
    file = tmp_path / "one.toml"
    write_manifest(tmp_path, "one", file, SPEC)
    inode = (tmp_path / "sweep.json").stat().st_ino
    write_manifest(tmp_path, "one", None)
    assert read_manifest(tmp_path) == Manifest("one", file, SPEC)
    assert (tmp_path / "sweep.json").stat().st_ino == inode


def test_a_flipped_bit_anywhere_is_found_and_mended(tmp_path):
    file = tmp_path / "one.toml"
    file.touch()
    write_manifest(tmp_path, "one", file, SPEC)
    with_layout(tmp_path)
    path = tmp_path / "sweep.json"
    whole = path.read_bytes()
    for place in np.random.default_rng(2).choice(8 * len(whole), size=100, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(OutputError, match="cannot be read"):
            manifest_name(tmp_path)
        found = restored_manifest(tmp_path)
        assert (found.sweep, found.spec) == ("one", SPEC)
        assert found.file in (None, file)
        assert owner(tmp_path) == "one"
        write_manifest(tmp_path, "one", file)
        assert path.read_bytes() == whole


def test_without_a_layout_the_name_is_that_of_the_text_or_the_folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "sweep.toml").touch()
    deep = "[" * 100_000  # as a file made by hand may hold
    for text, name in (
        ('{"sweep": "one", "fo', "one"),
        ("", "mine"),
        ('"sweep": "\\', "mine"),
        (deep, "mine"),
        ('{"sweep": "one", "format": ' + deep, "one"),
    ):
        (folder / "sweep.json").write_text(text)
        assert owner(folder) is None
        assert restored_manifest(folder) == Manifest(name, folder / "sweep.toml")


def test_a_manifest_without_a_checksum_is_refused(tmp_path):
    (tmp_path / "sweep.json").write_text('{"format": 2, "sweep": "one"}')
    with pytest.raises(OutputError):
        read_manifest(tmp_path)
