"""Banks of some kernels of another bank, against the matrices themselves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mkldist.bank.bank import MemoryBank, PartBank, TileLayout
from mkldist.bank.build import build_blocks
from mkldist.bank.passes import answer
from mkldist.bank.readers import StreamedBank
from mkldist.bank.requests import Quadratic
from mkldist.bank.sources import ArraySource
from mkldist.bank.store import GramStore
from tests.bank.bank_suite import BankSuite, random_grams

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
    store = GramStore.create(tmp_path, "bank", 200, TileLayout.for_points(40), "float64")
    build_blocks(ArraySource(grams), store, store.blocks)
    whole = StreamedBank(store, 8 * 4 * store.layout.n_entries)
    kernels = np.array([150, 3, 77, 4, 5, 151])
    part = PartBank(whole, kernels)
    assert (part.shares_rows, part.sparse_limit) == (True, 4)
    v = np.random.default_rng(0).normal(size=40)
    [found] = answer(part, [Quadratic(v)])
    np.testing.assert_allclose(found, np.einsum("i,mij,j->m", v, grams[kernels], v), rtol=1e-12)
    assert part.counter.passes == 1
    assert part.counter.bytes_read == whole.counter.bytes_read > 0
