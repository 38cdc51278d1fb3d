"""Check of a tree of results: one flipped bit in any of its files, and trees of before."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from mkldist.errors import StoreError
from mkldist.results import tree_check
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results, prepare
from mkldist.results.tree_check import differing_runs, is_sound, tree_files
from tests.results.sweeps import made_up_facts, made_up_plan, made_up_record

PLAN = made_up_plan(n_splits=2)
FACTS = made_up_facts(PLAN)


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    store = RecordStore(tmp_path / "records")
    for run in PLAN.runs:
        store.write(made_up_record(run))
    prepare(tmp_path / "results.zarr", PLAN, FACTS, store)
    return store


def files_of(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*") if path.is_file())


def flipped(path: Path, rng: np.random.Generator, n: int) -> Iterator[None]:
    """Flip single bits of a file, one at a time."""
    whole = path.read_bytes()
    for place in rng.choice(8 * len(whole), size=n, replace=False):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        yield
        path.write_bytes(whole)


def values_of(tree: Path) -> dict[str, xr.Dataset]:
    with open_results(tree) as found:
        return {node.path: node.to_dataset().load() for node in found.subtree}


@pytest.mark.slow
def test_a_flipped_bit_in_any_file_is_refused_and_mended(tmp_path, store):
    tree, rng = tmp_path / "results.zarr", np.random.default_rng(3)
    sound = values_of(tree)
    n_files, damaged = tree_files(tree)
    assert (n_files, damaged) == (len(files_of(tree)), [])
    some = [*rng.choice(files_of(tree), size=25, replace=False), tree / "zarr.json"]
    for path in some:
        for _ in flipped(path, rng, 2):
            assert tree_files(tree)[1] == [path]
            if path.name == "zarr.json" and path.parent != tree:  # the root repeats it
                assert all(values_of(tree)[node].identical(data) for node, data in sound.items())
                continue
            assert not is_sound(tree)
            with pytest.raises(StoreError, match=f"mkldist verify {tmp_path} --repair"):
                values_of(tree)
    for _ in flipped(tree / "heart/level/test_error/c/0/0", rng, 1):
        prepare(tree, PLAN, FACTS, store)
        break
    assert tree_files(tree)[1] == []
    for node, data in values_of(tree).items():
        xr.testing.assert_equal(data, sound[node])


@pytest.mark.parametrize("waits_from", [0.0, math.inf])  # after the first part, and never
def test_one_thread_and_several_find_the_same_chunks(tmp_path, store, monkeypatch, waits_from):
    monkeypatch.setattr(tree_check, "CHUNKS_AT_ONCE", 3)
    monkeypatch.setattr(tree_check, "WAITS_FROM", waits_from)
    tree = tmp_path / "results.zarr"
    assert is_sound(tree)
    first, last = tree / "heart/level/bias/c/0/0", tree / "heart/level/test_error/c/1/0"
    first.write_bytes(first.read_bytes()[:-1])
    last.unlink()
    assert sorted(tree_files(tree)[1]) == sorted([first, last])
    assert not is_sound(tree)


def test_a_bit_that_flips_after_a_check_is_found_by_the_next(tmp_path, store):
    """The file keeps its inode, its size and its time."""
    tree = tmp_path / "results.zarr"
    assert is_sound(tree)
    chunk = tree / "heart/level/gap/c/0/0"
    before, whole = chunk.stat(), chunk.read_bytes()
    with chunk.open("r+b") as file:
        file.write(bytes([whole[0] ^ 1]))
    os.utime(chunk, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = chunk.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not is_sound(tree)
    prepare(tree, PLAN, FACTS, store)
    assert chunk.read_bytes() == whole
    assert is_sound(tree)


def test_a_lost_chunk_of_a_trace_differs_from_the_record(tmp_path):
    """Traces grow with the longest run, so that an absent chunk alone is no damage."""
    grids = {"level": {"trace": [True]}}
    plan = made_up_plan(grids, n_splits=2)
    store, tree = RecordStore(tmp_path / "records"), tmp_path / "results.zarr"
    for run, length in zip(plan.runs, (5, 70), strict=True):
        kernels = np.arange(3.0 * length).reshape(length, 3) % 7
        trace = {"objective": np.arange(1.0 * length), "largest_kernels": kernels}
        store.write(replace(made_up_record(run), trace=trace))
    prepare(tree, plan, made_up_facts(plan, grids), store)
    assert differing_runs(tree, store) == []
    for name in ("objective", "largest_kernels"):
        chunks = sorted((tree / f"heart/level/convergence/{name}/c/1").rglob("*"))
        for chunk in filter(Path.is_file, chunks):
            whole = chunk.read_bytes()
            chunk.unlink()
            assert differing_runs(tree, store) == [plan.runs[1].id]
            chunk.write_bytes(whole)
