"""Check of a tree of results: one flipped bit in any of its files, and trees of before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from mkldist.errors import StoreError
from mkldist.results import tree_check
from mkldist.results.array_chunks import read_array, write_rows
from mkldist.results.records import RecordStore
from mkldist.results.tree import open_results, prepare
from mkldist.results.tree_check import NOTE, differing_runs, is_sound, tree_files
from mkldist.results.zarr_documents import read_root, unchecked_codecs
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
    n_files, damaged, checked = tree_files(tree)
    assert (n_files, damaged, checked) == (len(files_of(tree)), [], True)
    some = [*rng.choice(files_of(tree), size=25, replace=False), tree / "zarr.json"]
    for path in some:
        for _ in flipped(path, rng, 2):
            assert tree_files(tree)[1] == [path]
            if path.name == "zarr.json" and path.parent != tree:  # the root repeats it
                assert all(values_of(tree)[node].identical(data) for node, data in sound.items())
                continue
            assert not is_sound(tree, tmp_path / NOTE)
            with pytest.raises(StoreError, match=f"mkldist verify {tmp_path} --repair"):
                values_of(tree)
    for _ in flipped(tree / "heart/level/test_error/c/0/0", rng, 1):
        prepare(tree, PLAN, FACTS, store)
        break
    assert tree_files(tree)[1] == []
    for node, data in values_of(tree).items():
        xr.testing.assert_equal(data, sound[node])


def test_files_that_did_not_change_are_read_again_after_a_day(tmp_path, store, monkeypatch):
    tree, note, n_read = tmp_path / "results.zarr", tmp_path / NOTE, [0]
    chunk = tree / "heart/level/gap/c/0/0"

    def counted(path, document):
        n_read[0] += 1
        return is_intact(path, document)

    is_intact = tree_check._is_intact
    monkeypatch.setattr(tree_check, "_is_intact", counted)
    assert is_sound(tree, note)
    first = n_read[0]
    assert first > 20
    assert is_sound(tree, note)
    assert n_read[0] == first
    os.utime(chunk)
    assert is_sound(tree, note)
    assert n_read[0] == 2 * first
    monkeypatch.setattr(tree_check, "SECONDS", 0.0)
    assert is_sound(tree, note)
    assert n_read[0] == 3 * first
    note.write_bytes(b"{}")
    assert is_sound(tree, note)
    assert n_read[0] == 4 * first


def as_before(tree: Path) -> None:
    """Store a tree as versions without checksums of all bytes did."""
    root = read_root(tree)
    for path, document in root["consolidated_metadata"]["metadata"].items():
        if document["node_type"] == "array":
            values = read_array(tree / path, document)
            document["codecs"] = unchecked_codecs(document["codecs"])
            by_split = document["chunk_grid"]["configuration"]["chunk_shape"][:1] == [1]
            for place in np.ndindex(values.shape[:1] if by_split else ()):
                write_rows(tree / path, document, place, values[place], tree.parent)
            (tree / path / "zarr.json").write_text(json.dumps(document))
    (tree / "zarr.json").write_text(json.dumps(root))


def test_a_tree_of_before_checksums_opens_and_is_checked_as_far_as_it_can_be(tmp_path, store):
    tree = tmp_path / "results.zarr"
    whole = values_of(tree)
    as_before(tree)
    for node, data in values_of(tree).items():
        xr.testing.assert_identical(data, whole[node])
    assert tree_files(tree)[1:] == ([], False)
    assert is_sound(tree, tmp_path / NOTE)
    before = tree.stat().st_ino
    prepare(tree, PLAN, FACTS, store)
    assert tree.stat().st_ino == before
    chunk = tree / "heart/level/gap/c/0/0"
    chunk.write_bytes(chunk.read_bytes()[:-3])
    assert tree_files(tree)[1] == [chunk]
    assert not is_sound(tree, tmp_path / NOTE)


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
