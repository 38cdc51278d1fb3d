"""Banks in memory: `requests`, `passes`, `few_kernels` and `diagonals`, by plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.bank.bank import Bank, MemoryBank, PassCounter, TileLayout, slabs
from mkldist.bank.passes import answer
from mkldist.bank.requests import Matvec
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


def test_refuses_arrays_of_other_shapes_and_types() -> None:
    with pytest.raises(ValueError, match=r"found shape \(2, 3, 4\); expected \(M, n, n\)"):
        MemoryBank.from_grams(np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="int64; expected float32 or float64"):
        MemoryBank(np.zeros((2, 4), dtype=int), TileLayout(2, 2))
    with pytest.raises(ValueError, match=r"found shape \(2, 5\); expected \(M, 4\)"):
        MemoryBank(np.zeros((2, 5)), TileLayout(2, 2))


def test_few_kernels_cost_their_own_bytes() -> None:
    bank = MemoryBank.from_grams(random_grams(12, 10))
    answer(bank, [Matvec(np.array([1, 7]), np.ones(10))])
    assert bank.counter.bytes_read == bank.n_bytes // 6


def test_slabs_are_whole_tiles() -> None:
    layout = TileLayout(1000, 100)
    parts = list(slabs(layout))
    assert len(parts) == layout.n_tiles
    assert parts[0] == slice(0, 10_000)
    assert parts[-1].stop == layout.n_entries


def test_counters_subtract() -> None:
    counter = PassCounter(passes=2, bytes_read=10, radii=1)
    before = counter.copy()
    counter.passes += 3
    assert counter - before == PassCounter(passes=3)
