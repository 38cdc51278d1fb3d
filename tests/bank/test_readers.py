"""Banks read from their store in every pass, by the requirements of every bank."""

import os
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank import store as bank_store
from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.build import open_bank
from mkldist.bank.cache import NodeCache
from mkldist.bank.passes import answer
from mkldist.bank.readers import BankBuffer, DamagedBlocksError, MappedBank, StreamedBank
from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.bank.store import BankShape, BankStore
from mkldist.bank.view import make_views
from tests.bank.bank_suite import BankSuite, close, random_grams
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
        return StreamedBank(store, shape[3] * store.shape.layout.n_entries * store.dtype.itemsize)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BankStore:
    monkeypatch.setattr(bank_store, "CHUNK_BYTES", 4_000)
    return stored(tmp_path / "banks", random_grams(60, 20), "float64")


def test_kernels_that_were_kept_are_not_read_again(store):
    row_bytes = store.shape.layout.n_entries * 8
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


def test_few_kernels_cost_the_blocks_they_are_in(store):
    bank = StreamedBank(store, 3 * store.shape.layout.n_entries * 8)
    kernels = store.shape.blocks[0].kernels
    answer(bank, [Matvec(np.array([kernels.start, kernels.stop - 1]), np.ones(20))])
    assert bank.counter.bytes_read == kernels.stop * store.shape.layout.n_entries * 8
    assert bank.counter.bytes_read < bank.n_bytes


def test_traces_read_the_blocks_that_hold_diagonals(store):
    rows, cols = store.shape.layout.coordinates
    held = [b for b in store.shape.blocks if (rows[b.tiles] == cols[b.tiles]).any()]
    assert len(held) < len(store.shape.blocks)
    bank = StreamedBank(store, 0)
    [view] = make_views(bank, [None], ("trace",))
    assert bank.counter.passes == 0
    assert bank.counter.bytes_read == sum(k * e * 8 for k, e in (b.shape for b in held))
    traces = np.einsum("mii->m", random_grams(60, 20))
    np.testing.assert_allclose(view.scale * traces, 1.0, rtol=1e-12)


def test_combining_more_kernels_than_are_kept_is_a_pass(store):
    bank = StreamedBank(store, 3 * store.shape.layout.n_entries * 8)
    weights = np.zeros(60)
    weights[:4] = 1.0
    answer(bank, [Combine(weights)])
    assert (bank.counter.passes, bank.counter.combines) == (1, 0)


def test_memory_is_bounded_by_a_few_blocks(tmp_path):
    """A bank of 24 blocks never has more than the three buffers and the kept kernels."""
    import tracemalloc

    n_kernels, layout = 24 * 40, TileLayout.for_points(160)
    shape = BankShape(n_kernels, layout, "float64")
    block_bytes = shape.chunk[0] * shape.chunk[1] * layout.tile_entries * 8
    values = np.random.default_rng(0).random((shape.chunk[0], layout.n_entries))
    store = BankStore.create(tmp_path, "bank", BankShape(n_kernels, layout, "float64"))
    for block in store.shape.blocks:
        store.write(block.index, values[: block.shape[0], block.entries])
    tracemalloc.start()
    try:
        bank = StreamedBank(store, 0)
        answer(bank, [Quadratic(np.ones(160))])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert bank.n_bytes > 12 * block_bytes
    assert peak < 5 * block_bytes


def test_damage_is_met_and_named_in_a_pass_and_in_rows(store):
    damage(store, store.shape.blocks[5])
    bank = StreamedBank(store, 0)
    kernel = store.shape.blocks[5].kernels.start
    with pytest.raises(DamagedBlocksError, match="block 5, which fails its checksum") as caught:
        answer(bank, [Quadratic(np.ones(20))])
    assert caught.value.blocks == (5,)
    with pytest.raises(DamagedBlocksError, match="block 5"):
        list(bank.rows(np.array([kernel])))


def test_an_abandoned_pass_leaves_no_thread(store):
    chunks = StreamedBank(store, 0).chunks()
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("mkldist-read")]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestMappedBank(BankSuite):
    @pytest.fixture(params=[(40, 13, None), (25, 150, 0)], ids=["kept", "given back"])
    def shape(self, request: pytest.FixtureRequest) -> tuple[int, int, int | None]:
        return request.param

    @pytest.fixture
    def grams(self, shape: tuple[int, int, int | None]) -> np.ndarray:
        return random_grams(shape[0], shape[1])

    @pytest.fixture
    def bank(
        self, grams: np.ndarray, dtype: str, shape: tuple[int, int, int | None], tmp_path: Path
    ) -> MappedBank:
        store = stored(tmp_path / "banks", grams, dtype)
        bank = NodeCache(tmp_path / "cache").open(store, shape[2])
        assert bank is not None
        return bank


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc/self/smaps")
@pytest.mark.parametrize("visit", ["rows", "diagonals", "chunks"])
def test_pages_of_a_bank_over_its_limit_are_given_back_in_time(visit, tmp_path):
    limit, layout, n_kernels = 2**27, TileLayout.for_points(512), 300
    n_bytes = n_kernels * layout.n_entries * 8
    assert n_bytes > 2 * limit
    (tmp_path / "bank").touch()
    os.truncate(tmp_path / "bank", n_bytes)
    bank = MappedBank(tmp_path / "bank", BankShape(n_kernels, layout, "float64"), limit)
    kernels = (np.arange(n_kernels),) if visit == "rows" else ()
    peak = 0
    for part in getattr(bank, visit)(*kernels):
        if visit == "rows":
            part.values[part.lines].sum()
        else:
            part.values.sum()
        peak = max(peak, mapped_bytes(tmp_path / "bank"))
    assert 0 < peak <= limit


def mapped_bytes(path: Path) -> int:
    """Return how much of a file is mapped into this process and resident."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    for line in lines:
        if line.endswith(str(path)):
            [resident] = [words.split()[1] for words in lines if words.startswith("Rss:")][:1]
            return 1024 * int(resident)
    return 0


def test_a_bank_over_its_limit_is_traversed_in_parts_and_answers_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.bank.bank.BLOCK_KERNELS", 4)
    store = stored(tmp_path / "banks", random_grams(23, 20), "float64")
    cache = NodeCache(tmp_path / "cache")
    limit = (
        4 * 4 * store.shape.layout.n_entries * 8
    )  # a chunk may take a quarter: a block of kernels
    whole, parts = cache.open(store), cache.open(store, limit)
    assert whole is not None
    assert parts is not None
    assert [chunk.kernels for chunk in whole.chunks()] == [slice(0, 23)]
    starts = [chunk.kernels.start for chunk in parts.chunks()]
    assert starts == [0, 4, 8, 12, 16, 20]
    rng = np.random.default_rng(0)
    asked = [Quadratic(rng.standard_normal((20, 3))), Combine(rng.random(23))]
    for ours, theirs in zip(answer(parts, asked), answer(whole, asked), strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize("memory_limit", [None, 10_000])
def test_backends_agree(store, tmp_path, memory_limit):
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


def test_default_cache_is_the_users(store, tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "given"))
    assert isinstance(open_bank(store, "mmap"), MappedBank)
    assert list((tmp_path / "given").glob("*.bank"))


def test_bank_without_room_in_the_cache_is_streamed(store, tmp_path):
    bank = open_bank(store, "mmap", cache=NodeCache(tmp_path / "cache", budget_bytes=10))
    assert isinstance(bank, StreamedBank)


def test_damage_is_repaired_by_the_blocks_it_names(store):
    grams = random_grams(60, 20)
    damage(store, store.shape.blocks[2])
    with pytest.raises(DamagedBlocksError) as caught:
        open_bank(store, "memory")
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert travelled.blocks == (2,)
    assert str(travelled) == str(caught.value)
    store.remove(travelled.blocks)
    packed = store.shape.layout.pack(grams)
    for block in (store.shape.blocks[index] for index in store.missing()):
        store.write(block.index, packed[block.kernels, block.entries])
    [found] = answer(open_bank(store, "memory"), [Quadratic(np.ones(20))])
    close(found, grams.sum(axis=(1, 2)))


def test_a_bank_takes_the_memory_of_the_last_one_if_it_is_about_as_large():
    buffer = BankBuffer()
    first = buffer.take((3, 100), np.dtype("float64"))
    assert np.shares_memory(first, buffer.take((4, 60), np.dtype("float64")))
    assert np.shares_memory(first, buffer.take((5, 100), np.dtype("float32")))
    for shape in [(4, 100), (1, 100)]:
        other = buffer.take(shape, np.dtype("float64"))
        assert other.shape == shape
        assert not np.shares_memory(first, other)
    buffer.clear()
    assert not np.shares_memory(other, buffer.take((1, 100), np.dtype("float64")))
