"""Gram stores and local blobs when processes are killed at any step, or race each other."""

import time
from pathlib import Path

import numpy as np
import pytest
from fsspec.implementations.local import LocalFileSystem

from mkldist.bank import byte_store
from mkldist.bank.store import GramStore
from mkldist.errors import StoreError
from tests.bank import store_scripts as scripts
from tests.bank.store_checks import assert_sound, start

pytestmark = pytest.mark.usefixtures("small_blocks")


MORE_STEPS = (("half", 3), ("half", 8), ("half", 12), ("rename", 3), ("rename", 10))


@pytest.mark.parametrize(
    ("step", "count"),
    [("half", 1), ("half", 4), ("half", 9), ("half", 14), ("half", 15), ("rename", 2),
     ("rename", 11), *(pytest.param(*step, marks=pytest.mark.slow) for step in MORE_STEPS)],
)  # fmt: skip
def test_killed_at_any_step_of_a_write(tmp_path, step, count):
    process = start("build_until", tmp_path, step, count)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == -9, output
    store = scripts.create(tmp_path)
    assert list((tmp_path / byte_store.TEMPORARY).iterdir()) == []
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
        if (tmp_path / scripts.BANK / "zarr.json").exists():
            assert_sound(GramStore.open(tmp_path, scripts.BANK))
    scripts.build(tmp_path)
    store = GramStore.open(tmp_path, scripts.BANK)
    assert not store.missing()
    assert_sound(store)


def test_an_interrupted_deletion_leaves_no_store(built, monkeypatch):
    monkeypatch.setattr(LocalFileSystem, "rm", lambda *a, **k: None)
    built.delete()
    root = Path(built.location).parent
    with pytest.raises(StoreError, match="no such file"):
        GramStore.open(root, scripts.BANK)
    assert_sound(scripts.create(root))


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
    assert list((tmp_path / byte_store.TEMPORARY).iterdir()) == []
