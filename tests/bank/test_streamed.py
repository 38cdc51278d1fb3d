"""Banks read from their store in every pass, by the requirements of every bank."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from mkldist.bank import store as bank_store
from mkldist.bank.bank import TileLayout
from mkldist.bank.passes import answer
from mkldist.bank.readers import DamagedBlocksError, StreamedBank
from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.bank.store import BankShape, GramStore
from mkldist.bank.view import make_views
from tests.bank.bank_suite import BankSuite, random_grams
from tests.bank.stores import damage, stored

SHAPES = {  # kernels, points, bytes of a block, kernels that are kept
    "kernels cut": (40, 13, 12_000, 10_000),
    "both cut": (41, 30, 2_000, 0),
    "one block": (9, 12, 2**20, 0),
}


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
class TestStreamedBank(BankSuite):
    @pytest.fixture(params=SHAPES.values(), ids=SHAPES)
    def shape(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple:
        monkeypatch.setattr(bank_store, "CHUNK_BYTES", request.param[2])
        return request.param

    @pytest.fixture
    def grams(self, shape: tuple[int, int, int, int]) -> np.ndarray:
        return random_grams(shape[0], shape[1])

    @pytest.fixture
    def bank(
        self, grams: np.ndarray, dtype: str, shape: tuple[int, int, int, int], tmp_path: Path
    ) -> StreamedBank:
        store = stored(tmp_path, grams, dtype)
        return StreamedBank(store, shape[3] * store.layout.n_entries * store.dtype.itemsize)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GramStore:
    monkeypatch.setattr(bank_store, "CHUNK_BYTES", 4_000)
    return stored(tmp_path, random_grams(60, 20), "float64")


def test_kernels_that_were_kept_are_not_read_again(store: GramStore) -> None:
    row_bytes = store.layout.n_entries * 8
    bank = StreamedBank(store, 3 * row_bytes)
    weights = np.zeros(60)
    weights[[1, 30, 59]] = 1.0
    [first] = answer(bank, [Combine(weights)])
    once = bank.counter.bytes_read
    assert once > 0
    [second] = answer(bank, [Combine(weights)])
    assert bank.counter.bytes_read == once
    np.testing.assert_array_equal(first, second)
    weights[[1, 2]] = 0.0, 1.0
    answer(bank, [Combine(weights)])
    assert bank.counter.bytes_read > once
    bank.close()
    before = bank.counter.bytes_read
    answer(bank, [Combine(weights)])
    assert bank.counter.bytes_read == before + once


def test_few_kernels_cost_the_blocks_they_are_in(store: GramStore) -> None:
    bank = StreamedBank(store, 3 * store.layout.n_entries * 8)
    kernels = store.blocks[0].kernels
    answer(bank, [Matvec(np.array([kernels.start, kernels.stop - 1]), np.ones(20))])
    assert bank.counter.bytes_read == kernels.stop * store.layout.n_entries * 8
    assert bank.counter.bytes_read < bank.n_bytes


def test_traces_read_the_blocks_that_hold_diagonals(store: GramStore) -> None:
    rows, cols = store.layout.coordinates
    held = [b for b in store.blocks if (rows[b.tiles] == cols[b.tiles]).any()]
    assert len(held) < len(store.blocks)
    bank = StreamedBank(store, 0)
    [view] = make_views(bank, [None], ("trace",))
    assert bank.counter.passes == 0
    assert bank.counter.bytes_read == sum(k * e * 8 for k, e in (b.shape for b in held))
    traces = np.einsum("mii->m", random_grams(60, 20))
    np.testing.assert_allclose(view.scale * traces, 1.0, rtol=1e-12)


def test_combining_more_kernels_than_are_kept_is_a_pass(store: GramStore) -> None:
    bank = StreamedBank(store, 3 * store.layout.n_entries * 8)
    weights = np.zeros(60)
    weights[:4] = 1.0
    answer(bank, [Combine(weights)])
    assert (bank.counter.passes, bank.counter.combines) == (1, 0)


def test_memory_is_bounded_by_a_few_blocks(tmp_path: Path) -> None:
    """A bank of 24 blocks never has more than the three buffers and the kept kernels."""
    import tracemalloc

    n_kernels, layout = 24 * 40, TileLayout.for_points(160)
    shape = BankShape(n_kernels, layout, "float64")
    block_bytes = shape.chunk[0] * shape.chunk[1] * layout.tile_entries * 8
    values = np.random.default_rng(0).random((shape.chunk[0], layout.n_entries))
    store = GramStore.create(tmp_path, "bank", n_kernels, layout, "float64")
    for block in store.blocks:
        store.write(block, values[: block.shape[0], block.entries])
    tracemalloc.start()
    try:
        bank = StreamedBank(store, 0)
        answer(bank, [Quadratic(np.ones(160))])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert bank.n_bytes > 12 * block_bytes
    assert peak < 5 * block_bytes


def test_damage_is_met_and_named_in_a_pass_and_in_rows(store: GramStore) -> None:
    damage(store, store.blocks[5])
    bank = StreamedBank(store, 0)
    kernel = store.blocks[5].kernels.start
    with pytest.raises(DamagedBlocksError, match="block 5, which fails its checksum") as caught:
        answer(bank, [Quadratic(np.ones(20))])
    assert caught.value.blocks == (5,)
    with pytest.raises(DamagedBlocksError, match="block 5"):
        list(bank.rows(np.array([kernel])))


def test_an_abandoned_pass_leaves_no_thread(store: GramStore) -> None:
    chunks = StreamedBank(store, 0).chunks()
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("mkldist-read")]
