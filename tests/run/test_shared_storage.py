"""Folders and stores tried from both sides: one that is shared, another one, locks, no traces."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from mkldist.errors import OutputError
from mkldist.run.probe import NO_LOCK, NOT_SEEN, SharedStorage


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_shared_folder_shows_both_sides_what_the_other_wrote(tmp_path, scheme):
    place = SharedStorage.of(f"{scheme}{tmp_path}/results/that/will/be")
    assert place.root == str(tmp_path)
    with place.probing():
        assert not place.has_reply("worker")
        assert place.reply("worker") == ""
        assert place.has_reply("worker")
        assert not place.has_reply("another")
    assert not list(tmp_path.iterdir())


def test_a_store_is_tried_alike():
    place = SharedStorage.of(f"memory://{uuid.uuid4().hex}/banks")
    with place.probing():
        assert place.reply("worker") == ""
        assert place.has_reply("worker")
    assert place.reply("worker") == NOT_SEEN


def test_another_folder_holds_no_probe(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    probed = SharedStorage.of(str(here))
    with probed.probing():
        assert SharedStorage(str(there), probed.token).reply("worker") == NOT_SEEN
    assert not list(there.iterdir())


def test_a_lock_that_a_worker_gets_too_is_told(tmp_path, monkeypatch):
    class Unlocked:
        def __init__(self, path):
            self.path = path

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def acquire(self, timeout):
            return self

    monkeypatch.setattr("mkldist.run.probe.FileLock", Unlocked)
    place = SharedStorage.of(str(tmp_path))
    with place.probing():
        assert place.reply("worker") == NO_LOCK


def test_a_place_that_cannot_be_written_is_refused(monkeypatch, tmp_path):
    def refuse(self, *_, **__):
        raise OSError(30, "Read-only file system", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match="read-only"), SharedStorage.of(str(tmp_path)).probing():
        pass
