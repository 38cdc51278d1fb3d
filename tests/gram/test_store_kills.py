"""Gram stores and local blobs when processes are killed at any step, or race each other."""

import os
import shutil
import stat
import time
from pathlib import Path

import numpy as np
import pytest

from mkldist.gram import local_blobs
from mkldist.gram.array_documents import GROUP
from mkldist.gram.store import GramStore, list_banks
from tests.gram import store_scripts as scripts
from tests.gram.store_checks import assert_sound, start

pytestmark = pytest.mark.usefixtures("small_blocks")


MORE_STEPS = (("half", 3), ("half", 8), ("flush", 9), ("rename", 3), ("rename", 10))


@pytest.mark.parametrize(
    ("step", "count"),
    [("half", 1), ("half", 4), ("half", 9), ("flush", 2), ("flush", 14), ("rename", 2),
     ("rename", 11), *(pytest.param(*step, marks=pytest.mark.slow) for step in MORE_STEPS)],
)  # fmt: skip
def test_killed_at_any_step_of_a_write(tmp_path, step, count):
    process = start("build_until", tmp_path, step, count)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == -9, output
    store = scripts.create(tmp_path)
    assert list((tmp_path / local_blobs.TEMPORARY).iterdir()) == []
    assert_sound(store)
    done = len(store.blocks) - len(store.missing())
    assert done < 12
    assert scripts.build(tmp_path).blocks == len(store.blocks) - done
    assert_sound(store)
    assert not store.missing()


@pytest.mark.slow
def test_killed_again_and_again_at_random(tmp_path):
    rng = np.random.default_rng(0)
    for _ in range(6):
        process = start("build", tmp_path)
        marks = tmp_path / scripts.BANK / "complete"
        before = len(list(marks.rglob("*")))
        while process.poll() is None and len(list(marks.rglob("*"))) <= before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.02))
        process.kill()
        process.communicate()
        if (tmp_path / scripts.BANK / GROUP).exists():
            assert_sound(GramStore.open(tmp_path, scripts.BANK))
    scripts.build(tmp_path)
    store = GramStore.open(tmp_path, scripts.BANK)
    assert not store.missing()
    assert_sound(store)


def test_an_interrupted_deletion_leaves_no_store(built, monkeypatch):
    monkeypatch.setattr(shutil, "rmtree", lambda *a, **k: None)
    built.delete()
    root = Path(built.location).parent
    assert list_banks(root) == []
    store = scripts.create(root)
    assert len(store.missing()) == len(store.blocks)


@pytest.mark.slow
def test_racing_creators_and_writers_and_a_reader(tmp_path):
    at = time.time() + 1.5
    processes = [start(role, tmp_path, at) for role in ("race", "race", "race", "watch")]
    for process in processes:
        output = process.communicate(timeout=60)[0]
        assert process.returncode == 0, output
    store = GramStore.open(tmp_path, scripts.BANK)
    assert not store.missing()
    assert_sound(store)
    assert list((tmp_path / local_blobs.TEMPORARY).iterdir()) == []


def test_a_block_is_on_the_device_before_it_has_its_name_and_its_mark(built, monkeypatch):
    events = []
    flush, rename = os.fsync, Path.replace

    def record_flush(descriptor):
        mode = os.fstat(descriptor).st_mode
        events.append("flush folder" if stat.S_ISDIR(mode) else "flush file")
        flush(descriptor)

    def record_rename(source, target):
        events.append(f"name {Path(target).relative_to(built.location).parts[0]}")
        return rename(source, target)

    monkeypatch.setattr(os, "fsync", record_flush)
    monkeypatch.setattr(Path, "replace", record_rename)
    built.write(built.blocks[0], np.zeros(built.blocks[0].shape))
    assert events[:3] == ["flush file", "name gram", "flush folder"]
    assert "flush file" not in events[3:]  # times and mark may be lost
    assert events[-1] == "name complete"
