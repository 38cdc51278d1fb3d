"""What a worker finds: its machine, its node cache and the kind of disk, limits, shared places."""

from __future__ import annotations

import shutil
import socket
from types import SimpleNamespace

import dask
import distributed  # noqa: F401  # its defaults, before one is set and taken back
import pytest

from mkldist.run.probe import NOT_SEEN, SharedStorage, file_system, probe_environment, reply_name


def worker(memory_limit: int | None = None) -> SimpleNamespace:
    manager = SimpleNamespace(memory_limit=memory_limit)
    return SimpleNamespace(address="tcp://127.0.0.1:4000", memory_manager=manager)


def test_a_worker_tells_its_machine_and_answers_in_shared_places(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    shared, other = SharedStorage.of(str(tmp_path)), SharedStorage(str(tmp_path / "other"))
    with shared.probing():
        found = probe_environment((shared, other), worker())
        assert shared.has_reply(reply_name(worker().address))
    assert found.wrong == {shared.root: "", other.root: NOT_SEEN}
    assert found.host == socket.gethostname()
    assert found.cache == str(tmp_path / "cache")
    assert found.cache_bytes == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)
    assert not found.cache_is_remote
    assert found.limits == ()


def test_a_cache_that_cannot_be_written_has_no_room(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    monkeypatch.setattr("os.access", lambda *_: False)
    assert probe_environment((), worker()).cache_bytes == -1


def test_limits_count_only_where_the_worker_has_a_limit():
    off = {f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}
    with dask.config.set(off | {"distributed.worker.memory.target": 0.6}):
        assert probe_environment((), worker(2**30)).limits == ("target",)
        assert probe_environment((), worker()).limits == ()


def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path, monkeypatch):
    mounts = [("/", "ext4"), (str(tmp_path), "nfs4")]
    parts = [SimpleNamespace(mountpoint=place, fstype=kind) for place, kind in mounts]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: parts)
    assert file_system(tmp_path) == "nfs4"
    assert file_system(tmp_path.parent) == "ext4"
    parts.clear()
    assert file_system(tmp_path) == ""
