"""Banks of shards, by the requirements of every bank and to the bit; cuts and entries of shards."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mkldist.bank.bank import MemoryBank, TileLayout, block_kernels
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii, Request
from mkldist.bank.sources import ArraySource, computed
from mkldist.bank.store import BankShape
from mkldist.bank.view import make_views
from mkldist.errors import GramError
from mkldist.run.shards import ShardedBank
from tests.bank.bank_suite import BankSuite, answers, random_grams
from tests.variants import quick

BLOCK = 8  # kernels, in place of 480


class CallsHere:
    """Shards in this process, whose results are read-only as those of other processes may be."""

    def __init__(self, values: np.ndarray, layout: TileLayout, shards: Sequence[slice]) -> None:
        self.values, self.layout, self.shards = values, layout, shards
        self.calls: list[tuple[int, str]] = []

    def put(self, value: Any) -> Any:
        return value

    def call(self, shard: int, work: Callable[..., Any], *arguments: Any) -> Any:
        self.calls.append((shard, work.__name__))
        bank = MemoryBank(self.values[self.shards[shard]], self.layout)
        return frozen(work(bank, *map(frozen, arguments)))

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return list(handles)


def frozen(value: Any) -> Any:
    """Return a value whose arrays, but for masks and indices of requests, cannot be written."""
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        arrays = part if isinstance(part, list) else getattr(part, "__dict__", {}).values()
        for array in (part, *arrays):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
    return value


def sharded(
    grams: np.ndarray, dtype: str = "float64", n_shards: int = 3, kept: int = 10**6
) -> ShardedBank:
    """Return a bank of shards, with memory for so many kernels beside them."""
    whole = MemoryBank.from_grams(grams, dtype)
    shape = BankShape(len(grams), whole.layout, dtype)
    shards = shape.shards(2**40, n_shards)
    calls = CallsHere(
        np.concatenate([c.values for c in whole.chunks()], axis=1), whole.layout, shards
    )
    return ShardedBank(calls, shards, shape, kept * shape.kernel_bytes)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mkldist.bank.bank.BLOCK_KERNELS", BLOCK)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestShardedBank(BankSuite):
    traversals = 2  # combinations go from shard to shard, apart from what else a pass answers

    @pytest.fixture(params=[1, 2, 5])
    def n_shards(self, request: pytest.FixtureRequest) -> int:
        return request.param

    @pytest.fixture
    def grams(self) -> np.ndarray:
        return random_grams(37, 30)

    @pytest.fixture
    def bank(self, grams: np.ndarray, dtype: str, n_shards: int) -> ShardedBank:
        return sharded(grams, dtype, n_shards)


def all_requests(n: int, m: int) -> list[Request]:
    rng = np.random.default_rng(2)
    symmetric = rng.standard_normal((2, n, n))
    few = np.zeros(m)
    few[[2, m - 1]] = 0.3, 0.7
    return [
        Quadratic(rng.standard_normal(n)),
        Quadratic(rng.standard_normal((n, 11))),
        Quadratic(rng.standard_normal((n, 2)), np.array([m - 1, 0, 9, 9])),
        Combine(rng.random(m)),
        Combine(np.stack([rng.random(m), few])),
        Combine(few),
        Combine(rng.random(3), np.array([m - 2, 4, 8])),
        Inner(symmetric + symmetric.transpose(0, 2, 1)),
        Matvec(np.array([4, m - 1, 4]), rng.standard_normal((n, 3))),
        Matvec(np.array([], dtype=np.intp), rng.standard_normal(n)),
        Diagonal(rng.random((n, 2))),
        Radii(),
        Radii(rng.permutation(n)[: n // 2]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("n_shards", quick([1, 3, 2, 7], 2))
@pytest.mark.parametrize(("dtype", "m", "n"), [("float64", 61, 40), ("float32", 57, 150)])
def test_all_answers_are_those_of_one_memory_to_the_bit(dtype, m, n, n_shards):
    grams = random_grams(m, n)
    bank, memory = sharded(grams, dtype, n_shards), MemoryBank.from_grams(grams, dtype)
    asked = all_requests(n, m)
    together = answer(bank, asked)
    for request, found, expected in zip(asked, together, answer(memory, asked), strict=True):
        assert_array_equal(found, expected, err_msg=type(request).__name__)
    for request in asked:
        assert_array_equal(answer(bank, [request])[0], answer(memory, [request])[0])


@pytest.mark.parametrize("normalisations", [("trace",), ("centre", "variance")])
def test_views_are_those_of_one_memory_to_the_bit(normalisations):
    grams = random_grams(61, 40)
    rows = np.random.default_rng(3).permutation(40)[:25]
    found = [
        answers(view, all_requests(25, 61))
        for bank in (sharded(grams), MemoryBank.from_grams(grams))
        for view in make_views(bank, [rows], normalisations)
    ]
    for ours, theirs in zip(*found, strict=True):
        assert_array_equal(ours, theirs)


def test_a_pass_moves_vectors_and_forms_but_no_kernels():
    bank = sharded(random_grams(40, 30), n_shards=5)
    vectors = np.ones((30, 4))
    answer(bank, [Quadratic(vectors)])
    assert bank.counter.bytes_moved == 5 * vectors.nbytes + 40 * 4 * 8
    assert bank._calls.calls == [(shard, "answer_part") for shard in range(5)]


def test_a_combination_moves_one_sum_from_shard_to_shard():
    bank = sharded(random_grams(40, 30), n_shards=5)
    weights = np.ones(40)
    weights[:BLOCK] = 0.0  # nothing is asked of the first shard
    answer(bank, [Combine(weights)])
    one_sum = bank.layout.n_entries * 8
    assert bank.counter.bytes_moved == 4 * one_sum + (40 - BLOCK) * 8
    assert bank.counter.bytes_read == (40 - BLOCK) * one_sum
    assert {shard for shard, _ in bank._calls.calls} == {1, 2, 3, 4}


def test_a_long_sum_goes_in_parts_so_that_all_shards_work():
    bank = sharded(random_grams(20, 300), n_shards=2)
    answer(bank, [Combine(np.ones(20))])
    assert bank._calls.calls == [(0, "add_part"), (1, "add_part")] * 4


def test_single_kernels_are_fetched_once():
    bank = sharded(random_grams(40, 30), n_shards=5)
    weights = np.zeros(40)
    weights[[1, 2, 39]] = 1.0
    for _ in range(2):
        answer(bank, [Combine(weights)])
        assert bank.counter.bytes_moved == 3 * bank.layout.n_entries * 8
    assert bank._calls.calls == [(0, "take_rows"), (4, "take_rows")]
    bank.close()
    answer(bank, [Combine(weights)])
    assert bank.counter.bytes_moved == 6 * bank.layout.n_entries * 8


def test_products_of_single_kernels_are_made_where_they_are():
    bank = sharded(random_grams(40, 30), n_shards=5)
    answer(bank, [Matvec(np.array([39, 38]), np.ones(30))])
    assert bank._calls.calls == [(4, "answer_part")]
    assert bank.counter.bytes_moved < bank.layout.n_entries * 8


def test_radii_are_computed_once_by_the_shards():
    bank = sharded(random_grams(40, 30), n_shards=5)
    first, second = answer(bank, [Radii()]), answer(bank, [Radii(np.arange(30)[::-1])])
    assert_array_equal(first, second)
    assert (bank.counter.radii, bank.counter.passes) == (1, 1)
    assert bank._calls.calls == [(shard, "answer_part") for shard in range(5)]


def test_shards_can_be_made_before_the_first_request():
    bank = sharded(random_grams(40, 30), n_shards=5)
    bank.load()
    assert {shard for shard, _ in bank._calls.calls} == set(range(5))
    assert bank.counter.bytes_moved == 0


@pytest.mark.parametrize("kept", [1, 3])
def test_combinations_of_more_kernels_than_are_kept_differ_in_last_digits_alone(kept):
    grams = random_grams(61, 40)
    bank, memory = sharded(grams, kept=kept), MemoryBank.from_grams(grams, "float64")
    weights = np.zeros(61)
    weights[[2, 9, 17, 33, 60]] = 0.1, 0.2, 0.3, 0.15, 0.25
    [found], [expected] = answer(bank, [Combine(weights)]), answer(memory, [Combine(weights)])
    eps = np.finfo(np.float64).eps
    assert np.abs(found - expected).max() <= 5 * eps * (weights @ np.abs(grams).max(axis=(1, 2)))
    assert "take_rows" not in {work for _, work in bank._calls.calls}


@pytest.mark.slow
@given(
    n_kernels=st.integers(1, 20_000),
    n_points=st.integers(2, 20_000),
    most=st.integers(1, 2**34),
    at_least=st.integers(1, 40),
)
def test_shards_hold_every_kernel_once_in_whole_blocks_and_fit(n_kernels, n_points, most, at_least):
    shape = BankShape(n_kernels, TileLayout.for_points(n_points), "float64")
    shards = shape.shards(most, at_least)
    assert [shard.start for shard in shards] == [0, *(shard.stop for shard in shards[:-1])]
    assert shards[-1].stop == n_kernels
    assert all(shard.start % block_kernels(shape.layout) == 0 for shard in shards)
    largest = max(shard.stop - shard.start for shard in shards) * shape.kernel_bytes
    assert largest <= max(most, shape.least_shard_bytes)
    n_blocks = -(-n_kernels // block_kernels(shape.layout))
    assert len(shards) >= min(at_least, n_blocks)


def test_a_block_is_at_most_half_a_gibibyte_or_one_kernel():
    for n_points in (100, 1000, 5000, 30_000):
        shape = BankShape(10**6, TileLayout.for_points(n_points), "float64")
        assert shape.least_shard_bytes <= max(2**29, shape.kernel_bytes)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_entries_of_a_shard_are_those_of_the_bank(dtype, monkeypatch):
    monkeypatch.setattr("mkldist.bank.store.CHUNK_BYTES", 4_000)
    grams = random_grams(40, 21)
    shape = BankShape(40, TileLayout.for_points(21), dtype)
    found = computed(ArraySource(grams), slice(7, 33), shape.layout, dtype)
    assert found.dtype == dtype
    assert_array_equal(found, shape.layout.pack(grams[7:33]))


def test_a_kernel_that_is_not_finite_is_named():
    grams = random_grams(9, 12)
    grams[7, 3, 3] = np.inf
    shape = BankShape(9, TileLayout.for_points(12), "float64")
    with pytest.raises(GramError, match="kernel 7"):
        computed(ArraySource(grams), slice(5, 9), shape.layout, "float64")
