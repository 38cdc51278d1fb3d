"""The node cache: files made once, shared, checked and evicted."""

import errno
import multiprocessing
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import ReadWriteLock
from numpy.testing import assert_array_equal

from mkldist.bank.cache import (
    FOOTER,
    NodeCache,
    NodeFolders,
    default_directory,
    removing_banks,
    using_banks,
)
from mkldist.bank.passes import answer
from mkldist.bank.readers import DamagedBlocksError, MappedBank
from mkldist.bank.requests import Combine
from mkldist.bank.store import BankStore
from mkldist.core.durable import machine_id, temporary_path
from mkldist.errors import OutputError
from tests.bank.bank_suite import random_grams
from tests.bank.stores import damage, stored


@pytest.fixture
def grams() -> np.ndarray:
    return random_grams(12, 20)


@pytest.fixture
def store(tmp_path: Path, grams: np.ndarray) -> BankStore:
    return stored(tmp_path / "banks", grams, "float64")


@pytest.fixture
def cache(tmp_path: Path) -> NodeCache:
    return NodeCache(tmp_path / "cache")


def total(bank: MappedBank | None) -> np.ndarray:
    assert bank is not None
    return answer(bank, [Combine(np.ones(bank.n_kernels))])[0]


def test_second_opening_does_not_read_the_store(cache, store):
    first = total(cache.open(store))
    for block in store.shape.blocks:
        damage(store, block)
    assert_array_equal(total(cache.open(store)), first)
    assert_array_equal(total(NodeCache(cache.directory).open(store)), first)


def test_file_may_be_deleted_at_any_time(cache, store):
    bank = cache.open(store)
    first = total(bank)
    cache.path_of(store).unlink()
    assert not cache.path_of(store).exists()
    assert_array_equal(total(bank), first)
    assert_array_equal(total(cache.open(store)), first)


@pytest.mark.parametrize("place", [5, -1, -10])
@pytest.mark.parametrize("cut", [False, True])
def test_a_changed_byte_and_a_cut_are_found_and_the_file_made_again(cache, store, place, cut):
    first = total(cache.open(store))
    path = cache.path_of(store)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.unlink()
    path.write_bytes(content[:place] if cut else content)
    assert_array_equal(total(cache.open(store)), first)


def test_banks_of_the_same_name_and_other_facts_are_told_apart(cache, tmp_path, grams):
    here = stored(tmp_path / "a", grams, "float64")
    there = stored(tmp_path / "b", grams[:5], "float64")
    narrow = stored(tmp_path / "c", grams, "float32")
    assert len({cache.path_of(store) for store in (here, there, narrow)}) == 3
    moved = stored(tmp_path / "d", grams, "float64")
    assert cache.path_of(moved) == cache.path_of(here)


def test_least_recently_used_files_make_room(tmp_path, grams):
    stores = [stored(tmp_path / "banks", grams, "float64", name) for name in "abc"]
    n_bytes = 12 * stores[0].shape.layout.n_entries * 8 + FOOTER.n_bytes
    cache = NodeCache(tmp_path / "cache", budget_bytes=2 * n_bytes)
    paths = [cache.path_of(store) for store in stores]
    banks = [cache.open(stores[0]), cache.open(stores[1])]
    os.utime(paths[0], ns=(0, paths[0].stat().st_mtime_ns))
    os.utime(paths[1], ns=(1, paths[1].stat().st_mtime_ns))
    banks.append(cache.open(stores[0]))
    banks.append(cache.open(stores[2]))
    assert [path.exists() for path in paths] == [True, False, True]
    for bank in banks:
        total(bank)


def test_bank_larger_than_the_budget_is_not_kept(cache, store):
    cache.budget_bytes = 100
    assert cache.open(store) is None
    assert not cache.path_of(store).exists()


def test_full_disk_is_no_bank_and_leaves_nothing(cache, store, monkeypatch):
    def full(path: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert cache.open(store) is None
    assert {path.suffix for path in cache.directory.iterdir()} <= {".lock"}


def test_no_file_of_the_cache_waits_for_the_device(cache, store, monkeypatch):
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    assert cache.open(store) is not None
    assert not flushed


def test_files_of_living_builders_stay_and_those_elsewhere_until_they_are_old(cache, store, grams):
    cache.directory.mkdir()
    mine = temporary_path(cache.directory)
    elsewhere = mine.with_name(mine.name.replace(machine_id(), "another"))
    for path in (mine, elsewhere):
        path.write_bytes(b"half")
        os.utime(path, (0, 0))
    np.testing.assert_allclose(total(cache.open(store)), grams.sum(axis=0))
    assert mine.read_bytes() == b"half"
    assert not elsewhere.exists()


def test_damage_in_the_store_names_all_blocks(cache, tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.bank.store.CHUNK_BYTES", 4_000)
    store = stored(tmp_path / "banks", random_grams(60, 20), "float64")
    damage(store, store.shape.blocks[1])
    damage(store, store.shape.blocks[4])
    with pytest.raises(DamagedBlocksError, match=r"2 damaged blocks of \d+: block 1") as caught:
        cache.open(store)
    assert caught.value.blocks == (1, 4)
    assert {path.suffix for path in cache.directory.iterdir()} == {".lock"}


def test_folder_that_cannot_be_made(tmp_path, store):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        NodeCache(tmp_path / "file" / "cache").open(store)


def _open_and_sum(directory: Path, root: Path, results: multiprocessing.Queue) -> None:
    store = BankStore.open(root, "bank")
    results.put(float(total(NodeCache(directory).open(store)).sum()))


@pytest.mark.slow
def test_processes_that_race_build_one_file(cache, tmp_path, store, grams):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    args = (cache.directory, tmp_path / "banks", results)
    racers = [context.Process(target=_open_and_sum, args=args) for _ in range(3)]
    for racer in racers:
        racer.start()
    sums = [results.get(timeout=60) for _ in racers]
    for racer in racers:
        racer.join()
    np.testing.assert_allclose(sums, grams.sum())
    assert len(list(cache.directory.glob("*.bank"))) == 1


def test_default_directory_is_the_users_or_the_given_one(monkeypatch, tmp_path):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    assert default_directory() == tmp_path
    monkeypatch.delenv("MKLDIST_CACHE")
    assert "mkldist" in str(default_directory())


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOLCK, "No locks available"), sqlite3.OperationalError()]
)
def test_a_file_system_without_locks_is_no_place_for_the_cache(cache, store, monkeypatch, error):
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("filelock.ReadWriteLock.acquire_write", refuse)
    with pytest.raises(OutputError, match="lock"):
        cache.open(store)


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


def test_users_share_a_folder_and_keep_those_out_who_remove(tmp_path):
    root = tmp_path / "banks"
    with using_banks(str(root)):
        with using_banks(str(root)):
            pass
        with pytest.raises(OutputError, match="banks that a sweep at work uses"):
            removing_banks(root).__enter__()
    with removing_banks(root):
        pass


def test_one_user_is_alone_and_of_several_none(tmp_path):
    with using_banks(str(tmp_path)) as use:
        with using_banks(str(tmp_path)) as other:
            with use.alone() as alone, other.alone() as also:
                assert (alone, also) == (False, False)
            with pytest.raises(OutputError):
                removing_banks(tmp_path).__enter__()
        with use.alone() as alone:
            assert alone
        with pytest.raises(OutputError):
            removing_banks(tmp_path).__enter__()


def test_a_damaged_lock_file_is_refused_by_its_name(tmp_path):
    (tmp_path / ".in-use").write_bytes(b"no database" * 100)
    with pytest.raises(OutputError) as caught:
        removing_banks(tmp_path).__enter__()
    assert caught.value.found == "a damaged lock file"
    assert ".in-use" in caught.value.hint
    with using_banks(str(tmp_path)):  # without a lock, as on a disk that is read only
        pass


def test_nobody_removes_the_banks_of_a_user_who_tries_to_be_alone(tmp_path):
    with using_banks(str(tmp_path)) as use:
        with using_banks(str(tmp_path)):
            attempt = use.alone()
            assert not attempt.__enter__()
        with pytest.raises(OutputError):
            removing_banks(tmp_path).__enter__()
        attempt.__exit__(None, None, None)
    with removing_banks(tmp_path):
        pass


@pytest.mark.slow
def test_the_lock_of_a_killed_process_is_free(tmp_path):
    script = f"""
import os, signal
from mkldist.bank.cache import using_banks
with using_banks({str(tmp_path)!r}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode < 0
    with removing_banks(tmp_path):
        pass


@pytest.mark.parametrize("root", [None, "memory://banks", "/proc/no-folder-can-be-made-here"])
def test_places_without_locks_can_be_used(root):
    with using_banks(root):
        pass


def test_a_folder_that_cannot_be_made_cannot_be_cleaned(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        removing_banks(tmp_path / "file" / "banks").__enter__()
