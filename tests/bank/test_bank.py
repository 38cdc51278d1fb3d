"""Banks in memory: `requests`, `passes`, `few_kernels` and `diagonals`, by plain numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mkldist.bank.bank import (
    Bank,
    MemoryBank,
    MemoryBudget,
    PartBank,
    PassCounter,
    RowCache,
    TileLayout,
    default_tile,
    slabs,
)
from mkldist.bank.build import build_blocks
from mkldist.bank.passes import answer
from mkldist.bank.readers import StreamedBank
from mkldist.bank.requests import Matvec, Quadratic
from mkldist.bank.sources import ArraySource
from mkldist.bank.store import BankShape, BankStore
from tests.bank.bank_suite import BankSuite, random_grams


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestMemoryBank(BankSuite):
    @pytest.fixture(params=[(40, 13, None), (25, 12, 4), (18, 5, 8), (70, 150, 40)])
    def shape(self, request: pytest.FixtureRequest) -> tuple[int, int, int | None]:
        return request.param

    @pytest.fixture
    def grams(self, shape: tuple[int, int, int | None]) -> np.ndarray:
        return random_grams(shape[0], shape[1])

    @pytest.fixture
    def bank(self, grams: np.ndarray, dtype: str, shape: tuple[int, int, int | None]) -> Bank:
        return MemoryBank.from_grams(grams, dtype, tile=shape[2])


def test_refuses_arrays_of_other_shapes_and_types():
    with pytest.raises(ValueError, match=r"found shape \(2, 3, 4\); expected \(M, n, n\)"):
        MemoryBank.from_grams(np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="int64; expected float32 or float64"):
        MemoryBank(np.zeros((2, 4), dtype=int), TileLayout(2, 2))
    with pytest.raises(ValueError, match=r"found shape \(2, 5\); expected \(M, 4\)"):
        MemoryBank(np.zeros((2, 5)), TileLayout(2, 2))


def test_few_kernels_cost_their_own_bytes():
    bank = MemoryBank.from_grams(random_grams(12, 10))
    answer(bank, [Matvec(np.array([1, 7]), np.ones(10))])
    assert bank.counter.bytes_read == bank.n_bytes // 6


def test_slabs_are_whole_tiles():
    layout = TileLayout(1000, 100)
    parts = list(slabs(layout))
    assert len(parts) == layout.n_tiles
    assert parts[0] == slice(0, 10_000)
    assert parts[-1].stop == layout.n_entries


def test_counters_subtract():
    counter = PassCounter(passes=2, bytes_read=10, radii=1)
    before = counter.copy()
    counter.passes += 3
    assert counter - before == PassCounter(passes=3)


layouts = st.builds(TileLayout, st.integers(1, 25), st.integers(1, 12))


def symmetric(layout: TileLayout, seed: int = 0) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(layout.n_points, layout.n_points))
    return matrix + matrix.T


def test_entries_of_a_small_matrix_by_hand():
    layout = TileLayout(3, tile=2)
    matrix = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 5.0], [3.0, 5.0, 6.0]])
    assert layout.pack(matrix).tolist() == [1, 2, 2, 4, 3, 0, 5, 0, 6, 0, 0, 0]
    assert [rows.tolist() for rows in layout.coordinates] == [[0, 0, 1], [0, 1, 1]]
    assert layout.tile_weights.tolist() == [1, 2, 1]
    assert layout.diagonal.tolist() == [0, 3, 8]
    assert (layout.side, layout.n_tiles, layout.tile_entries, layout.n_entries) == (2, 3, 4, 12)


@settings(deadline=None)
@given(layouts)
def test_matrices_come_back_and_their_parts_and_sums_are_those_of_numpy(layout):
    matrix = symmetric(layout)
    packed = layout.pack(matrix)
    assert packed.shape == (layout.n_entries,)
    np.testing.assert_array_equal(layout.unpack(packed), matrix)
    np.testing.assert_array_equal(packed[layout.diagonal], np.diag(matrix))
    weights = np.repeat(layout.tile_weights, layout.tile_entries)
    assert weights @ packed == pytest.approx(matrix.sum(), abs=1e-10)
    points = np.random.default_rng(1).permutation(layout.n_points)[: 1 + layout.n_points // 2]
    np.testing.assert_array_equal(layout.submatrix(packed, points), matrix[points[:, None], points])


def test_stacks_keep_their_shape_and_dtype():
    layout = TileLayout(5, tile=2)
    stack = np.array([[symmetric(layout, seed) for seed in (r, r + 9)] for r in range(3)])
    packed = layout.pack(stack.astype(np.float32))
    assert (packed.shape, packed.dtype) == ((3, 2, layout.n_entries), np.float32)
    np.testing.assert_array_equal(packed[2, 1], layout.pack(stack[2, 1].astype(np.float32)))


def test_a_matrix_is_written_where_the_caller_wants_it():
    layout = TileLayout(5, tile=2)
    out = np.full((5, 5), np.nan)
    assert layout.unpack(layout.pack(symmetric(layout)), out=out) is out
    np.testing.assert_array_equal(out, symmetric(layout))


@given(st.integers(1, 10**6))
def test_the_default_tile_keeps_about_half_of_a_large_matrix(n_points):
    layout = TileLayout.for_points(n_points)
    assert layout.tile == default_tile(n_points) <= 256
    if n_points >= 64:
        assert n_points**2 / 2 <= layout.n_entries <= 0.75 * n_points**2


KERNELS = np.random.default_rng(0).permutation(30)[:18]


@pytest.fixture
def grams():
    return random_grams(30, 21)[KERNELS]


class TestOfABankInMemory(BankSuite):
    @pytest.fixture
    def bank(self):
        return PartBank(MemoryBank.from_grams(random_grams(30, 21)), KERNELS)

    def test_it_shares_the_memory_of_the_whole(self, bank):
        [rows] = bank.rows(np.arange(2))
        assert np.shares_memory(rows.values, bank._whole._values)
        assert_array_equal(rows.lines, KERNELS[:2])


def test_of_a_streamed_bank_only_its_kernels_are_read(tmp_path):
    grams = random_grams(200, 40)
    store = BankStore.create(tmp_path, "bank", BankShape(200, TileLayout.for_points(40), "float64"))
    build_blocks(ArraySource(grams), store, store.numbers)
    whole = StreamedBank(store, 8 * 4 * store.shape.layout.n_entries)
    kernels = np.array([150, 3, 77, 4, 5, 151])
    part = PartBank(whole, kernels)
    assert (part.shares_rows, part.sparse_limit) == (True, 4)
    v = np.random.default_rng(0).normal(size=40)
    [found] = answer(part, [Quadratic(v)])
    np.testing.assert_allclose(found, np.einsum("i,mij,j->m", v, grams[kernels], v), rtol=1e-12)
    assert part.counter.passes == 1
    assert part.counter.bytes_read == whole.counter.bytes_read > 0


def test_caches_reserve_little_more_memory_than_they_need():
    budget, fetched = MemoryBudget(2 * 42 * 8), 0
    caches = [RowCache(1, np.float64, budget) for _ in range(2)]

    def fetch(kernels: list[int], rows: list[np.ndarray]) -> None:
        nonlocal fetched
        fetched += len(kernels)
        for kernel, row in zip(kernels, rows, strict=True):
            row[:] = kernel

    for asked in (np.arange(30), np.arange(33), np.arange(33)):
        for cache in caches:
            [found] = cache.rows(asked, fetch)
            assert_array_equal(found.values[found.lines, 0], asked)
    assert fetched == 2 * 33


def test_caches_that_do_not_all_fit_are_not_all_evicted_in_every_round():
    n_rows, fetched = 32, 0
    budget = MemoryBudget(4 * n_rows * 8)
    caches = [RowCache(1, np.float64, budget) for _ in range(6)]

    def fetch(kernels: list[int], rows: list[np.ndarray]) -> None:
        nonlocal fetched
        fetched += len(kernels)

    def rounds(caches: list[RowCache], n_rounds: int) -> float:
        before = fetched
        for _ in range(n_rounds):
            for cache in caches:
                list(cache.rows(np.arange(n_rows), fetch))
        return (fetched - before) / (n_rounds * n_rows)

    assert rounds(caches, 1) == 6
    assert rounds(caches, 10) <= 3  # two do not fit, and one more is evicted for them
    rounds(caches[2:], 4)  # the first two are not used again
    assert rounds(caches[2:], 5) == 0
