"""Folders and stores tried from both sides: one that is shared, another one, locks, no traces."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from mkldist.errors import OutputError
from mkldist.worker.shared_place import NO_LOCK, NOTHING_THERE, SharedPlace


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_shared_folder_shows_both_sides_what_the_other_wrote(tmp_path, scheme):
    place = SharedPlace.of(f"{scheme}{tmp_path}/results/that/will/be")
    assert place.root == str(tmp_path)
    with place.asked():
        assert not place.is_answered("worker")
        assert place.answer("worker") == ""
        assert place.is_answered("worker")
        assert not place.is_answered("another")
    assert not list(tmp_path.iterdir())


def test_a_store_is_tried_alike():
    place = SharedPlace.of(f"memory://{uuid.uuid4().hex}/banks")
    with place.asked():
        assert place.answer("worker") == ""
        assert place.is_answered("worker")
    assert place.answer("worker") == NOTHING_THERE


def test_another_folder_holds_no_question(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    asked = SharedPlace.of(str(here))
    with asked.asked():
        assert SharedPlace(str(there), asked.token).answer("worker") == NOTHING_THERE
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

    monkeypatch.setattr("mkldist.worker.shared_place.FileLock", Unlocked)
    place = SharedPlace.of(str(tmp_path))
    with place.asked():
        assert place.answer("worker") == NO_LOCK


def test_a_place_that_cannot_be_written_is_refused(monkeypatch, tmp_path):
    def refuse(self, *_, **__):
        raise OSError(30, "Read-only file system", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match="read-only"), SharedPlace.of(str(tmp_path)).asked():
        pass
