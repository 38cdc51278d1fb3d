"""Build times of a bank: those of all its blocks, whoever built them."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from mkldist.gram.build_time import NO_TIME, BuildTime, Stopwatch
from mkldist.gram.layout import TileLayout
from mkldist.gram.metadata import SECONDS, seconds_document
from mkldist.gram.store import GramStore


def made(tmp_path) -> GramStore:
    store = GramStore.create(tmp_path, "bank", 40, TileLayout(600, 64), "float64")
    assert len(store.blocks) > 3
    return store


def test_times_are_summed_once_all_blocks_have_one(tmp_path):
    store = made(tmp_path)
    written = NO_TIME
    for block in store.blocks:
        assert store.build_time() is None
        watch = Stopwatch()
        store.write(block, np.ones(block.shape), BuildTime(10.0, 5.0))
        written += watch.spent()
    found, n = GramStore.open(tmp_path, "bank").build_time(), len(store.blocks)
    assert found is not None
    assert 10.0 * n < found.seconds < 10.0 * n + written.seconds
    assert 5.0 * n < found.cpu_seconds <= 5.0 * n + written.cpu_seconds
    store.write(store.blocks[0], np.ones(store.blocks[0].shape))  # built again
    again = store.build_time()
    assert again is not None
    assert again.seconds == pytest.approx(found.seconds - 10.0, abs=1.0)


def test_times_are_an_array_that_zarr_reads(tmp_path):
    store = made(tmp_path)
    for block in store.blocks:
        store.write(block, np.ones(block.shape), BuildTime(10.0, 5.0))
    seconds = zarr.open_array(store.location, path="seconds", mode="r")
    found = store.build_time()
    assert found is not None
    np.testing.assert_allclose(
        np.asarray(seconds).sum(axis=(0, 1)), [found.seconds, found.cpu_seconds]
    )


def test_times_that_were_not_kept_are_unknown(tmp_path):
    store = made(tmp_path)
    for block in store.blocks:
        store.write(block, np.ones(block.shape))
    assert BuildTime.decoded(BuildTime(1.5, 0.25).encoded) == BuildTime(1.5, 0.25)
    [some, *_] = (tmp_path / "bank" / "seconds" / "c").rglob("0")
    some = next(path for path in [some, *some.rglob("*")] if path.is_file())
    some.write_bytes(b"cut")
    assert store.build_time() is None


def test_every_flipped_bit_of_a_time_makes_it_unknown(tmp_path):
    store = made(tmp_path)
    for block in store.blocks:
        store.write(block, np.ones(block.shape), BuildTime(10.0, 5.0))
    assert store.damaged_times() == []
    path = tmp_path / "bank" / "seconds" / "c" / "0" / "0" / "0"
    whole = path.read_bytes()
    for place in range(8 * len(whole)):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        assert store.build_time() is None
    assert store.damaged_times() == ["seconds/c/0/0/0"]
    assert store.verify() == []
    assert store.remove_damaged_times() == 1
    assert (store.damaged_times(), store.build_time()) == ([], None)
    document = tmp_path / "bank" / SECONDS
    document.write_bytes(document.read_bytes()[:-5])
    assert store.damaged_times() == [SECONDS]
    store.remove_damaged_times()
    assert document.read_bytes() == seconds_document(store.shape)


def test_times_of_a_bank_of_before_checksums_are_read_and_stay_so(tmp_path):
    store = made(tmp_path)
    for block in store.blocks:
        store.write(block, np.ones(block.shape), BuildTime(10.0, 5.0))
    (tmp_path / "bank" / SECONDS).write_bytes(seconds_document(store.shape, checked=False))
    for path in (tmp_path / "bank" / "seconds" / "c").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:16])
    assert store.build_time() is not None
    assert store.damaged_times() == []
    for block in store.blocks[:2]:  # built again
        store.write(block, np.ones(block.shape), BuildTime(10.0, 5.0))
    found = store.build_time()
    assert found is not None
    seconds = np.asarray(zarr.open_array(store.location, path="seconds", mode="r"))
    np.testing.assert_allclose(seconds.sum(axis=(0, 1)), [found.seconds, found.cpu_seconds])
