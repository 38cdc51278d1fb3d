"""Opening a store as a bank: backends agree, and damage found by `loading` is repaired."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank import MemoryBank
from mkldist.bank.build import open_bank
from mkldist.bank.cache import NodeCache
from mkldist.bank.passes import answer
from mkldist.bank.readers import DamagedBlocksError, MappedBank, StreamedBank
from mkldist.bank.requests import Quadratic
from mkldist.bank.store import GramStore
from tests.bank.bank_suite import close, random_grams
from tests.bank.stores import damage, stored


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GramStore:
    monkeypatch.setattr("mkldist.bank.store.CHUNK_BYTES", 4_000)
    return stored(tmp_path / "banks", random_grams(60, 20), "float64")


@pytest.mark.parametrize("memory_limit", [None, 10_000])
def test_backends_agree(store: GramStore, tmp_path: Path, memory_limit: int | None) -> None:
    cache = NodeCache(tmp_path / "cache")
    kinds = {"memory": MemoryBank, "mmap": MappedBank, "stream": StreamedBank}
    vector = np.random.default_rng(0).standard_normal(20)
    answers = []
    for backend, kind in kinds.items():
        bank = open_bank(store, backend, memory_limit, cache)  # type: ignore[arg-type]
        assert type(bank) is kind
        answers += answer(bank, [Quadratic(vector)])
    assert_array_equal(answers[0], answers[1])
    close(answers[2], answers[0])


def test_default_cache_is_the_users(
    store: GramStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "given"))
    assert isinstance(open_bank(store, "mmap"), MappedBank)
    assert list((tmp_path / "given").glob("*.bank"))


def test_bank_without_room_in_the_cache_is_streamed(store: GramStore, tmp_path: Path) -> None:
    bank = open_bank(store, "mmap", cache=NodeCache(tmp_path / "cache", budget_bytes=10))
    assert isinstance(bank, StreamedBank)


def test_damage_is_repaired_by_the_blocks_it_names(store: GramStore) -> None:
    grams = random_grams(60, 20)
    damage(store, store.blocks[2])
    with pytest.raises(DamagedBlocksError) as caught:
        open_bank(store, "memory")
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert travelled.blocks == (2,)
    assert str(travelled) == str(caught.value)
    store.invalidate([store.blocks[index] for index in travelled.blocks])
    packed = store.layout.pack(grams)
    for block in store.missing():
        store.write(block, packed[block.kernels, block.entries])
    [found] = answer(open_bank(store, "memory"), [Quadratic(np.ones(20))])
    close(found, grams.sum(axis=(1, 2)))
