"""Banks in memory-mapped files, and the pages that they give back."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank import TileLayout
from mkldist.bank.cache import NodeCache
from mkldist.bank.passes import answer
from mkldist.bank.readers import MappedBank
from mkldist.bank.requests import Combine, Quadratic
from tests.bank.bank_suite import BankSuite, random_grams
from tests.bank.stores import stored


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
def test_pages_of_a_bank_over_its_limit_are_given_back_in_time(visit: str, tmp_path: Path) -> None:
    limit, layout, n_kernels = 2**27, TileLayout.for_points(512), 300
    n_bytes = n_kernels * layout.n_entries * 8
    assert n_bytes > 2 * limit
    (tmp_path / "bank").touch()
    os.truncate(tmp_path / "bank", n_bytes)
    bank = MappedBank(tmp_path / "bank", n_kernels, layout, np.dtype(np.float64), limit)
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


def test_a_bank_over_its_limit_is_traversed_in_parts_and_answers_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mkldist.bank.bank.BLOCK_KERNELS", 4)
    store = stored(tmp_path / "banks", random_grams(23, 20), "float64")
    cache = NodeCache(tmp_path / "cache")
    limit = 4 * 4 * store.layout.n_entries * 8  # a chunk may take a quarter: a block of kernels
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
