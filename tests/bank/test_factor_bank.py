"""Banks of thin factors against the matrices multiplied out, and the factors of sources."""

from __future__ import annotations

import gc
import os
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from mkldist.bank.bank import Bank
from mkldist.bank.factor_bank import FactorBank, FactorCache, FileRegions, factorised
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic
from mkldist.bank.sources import ArraySource, FeatureSource, JoinedSource, PlainSource
from mkldist.errors import GramError, OutputError
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.gaps import Presence
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.optim.pivoted_cholesky import PivotedFactor
from mkldist.spec.banks import BankSpec
from tests.bank.bank_suite import BankSuite
from tests.variants import quick

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 3))
SPEC = BankSpec.model_validate(
    {"kernels": [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]},
                 {"function": "polynomial", "degrees": [2], "features": ["all"]}]}
)  # fmt: skip
KERNELS = kernel_list(SPEC, 3, ["a", "b", "c"], {}, 0)
GRAMS = evaluate(KERNELS, POINTS, POINTS)


def whole(source, kernel=0):
    return factorised(source, kernel, rank=100, tolerance=0.0, seed=0)


def factors_of(n_kernels: int, n_points: int) -> list[PivotedFactor]:
    """Return factors of small whole numbers, whose products are exact."""
    values = np.random.default_rng(0).integers(-3, 4, (n_kernels, n_points, 5)).astype(float)
    return [PivotedFactor(factor, np.arange(5), 0.0) for factor in values]


@pytest.mark.parametrize(("n_kernels", "n_points"), [(19, 13), (18, 150)])
class TestFactorBank(BankSuite):
    reads = False

    @pytest.fixture
    def bank(self, n_kernels: int, n_points: int) -> FactorBank:
        return FactorBank(factors_of(n_kernels, n_points))

    @pytest.fixture
    def grams(self, n_kernels: int, n_points: int) -> np.ndarray:
        factors = factors_of(n_kernels, n_points)
        return np.array([factor.values @ factor.values.T for factor in factors])

    def test_describes_itself(self, bank: Bank, grams: np.ndarray) -> None:
        assert (bank.n_kernels, bank.n_points) == grams.shape[:2]
        assert bank.n_bytes == 8 * 5 * grams.shape[0] * grams.shape[1]

    def test_one_pass_serves_all_and_changes_no_answer(
        self, bank: Bank, rng: np.random.Generator
    ) -> None:
        n = bank.n_points
        requests = [
            Quadratic(rng.standard_normal((n, 3))),
            Combine(rng.random(bank.n_kernels)),
            Inner(np.eye(n)[None]),
            Diagonal(rng.random((n, 2))),
        ]
        together = answer(bank, requests)
        assert (bank.counter.passes, bank.counter.diagonals) == (2, 0)  # one over the factors
        for request, found in zip(requests, together, strict=True):
            [alone] = answer(bank, [request])
            assert_allclose(found, alone, rtol=1e-14, atol=1e-14 * np.abs(alone).max())

    @pytest.mark.parametrize("named", [True, False])
    def test_a_thin_combination_is_an_operator(
        self, bank: FactorBank, grams: np.ndarray, rng: np.random.Generator, named: bool
    ) -> None:
        kernels = rng.permutation(bank.n_kernels)[:4] if named else np.arange(bank.n_kernels)
        weights = rng.random(len(kernels))
        weights[1] = 0.0
        [found] = answer(bank, [Combine(weights, kernels if named else None, thin=True)])
        assert isinstance(found, FactoredMatrix)
        assert len(found.factors) == len(kernels) - 1
        assert all(G is bank.factors[m].thin
                   for G, m in zip(found.factors, np.delete(kernels, 1), strict=True))  # fmt: skip
        expected = np.einsum("s,sij->ij", weights, grams[kernels])
        assert_allclose(
            found.block(np.arange(bank.n_points)), expected, atol=1e-12 * expected.max()
        )
        assert_allclose(found.diagonal, np.diagonal(expected))

    def test_a_part_shares_the_factors(self, bank: FactorBank, grams: np.ndarray) -> None:
        part = bank.select(np.array([3, 0]))
        vector = np.ones(bank.n_points)
        [found] = answer(part, [Quadratic(vector)])
        assert_allclose(found, grams[[3, 0]].sum(axis=(1, 2)))
        assert part.factors[0] is bank.factors[3]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
class TestFactorsInAFile(TestFactorBank):
    @pytest.fixture
    def bank(self, n_kernels: int, n_points: int, dtype: str) -> FactorBank:
        cache = FactorCache(2**12, dtype=dtype)
        made = [cache.put(factor) for factor in factors_of(n_kernels, n_points)]
        return FactorBank(made, cache=cache)

    def test_describes_itself(self, bank: Bank, grams: np.ndarray) -> None:
        assert isinstance(bank, FactorBank)
        assert bank.n_bytes == bank.kept_type.itemsize * 5 * grams.shape[0] * grams.shape[1]
        assert bank.cache is not None
        assert not bank.cache.holds_all
        assert bank.cache.n_written > 0


@pytest.mark.slow
@pytest.mark.parametrize("cosine", quick([True, False]))
def test_factors_of_every_source_are_those_of_its_kernels(cosine):
    few = POINTS.copy()
    few[:7, 0] = np.nan
    rows = np.random.default_rng(1).permutation(60)[:50]
    sparse = KERNELS.select([0, 1, len(KERNELS) - 1])
    lacking = Presence.of(KERNELS, few)
    sources = [
        (FeatureSource(POINTS, KERNELS, cosine), evaluate(KERNELS, POINTS, POINTS, cosine=cosine)),
        (FeatureSource(few, KERNELS, cosine), evaluate(KERNELS, few, few, cosine=cosine)),
        (PlainSource(csr_array(POINTS), sparse, cosine),
         evaluate(sparse, POINTS, POINTS, cosine=cosine)),
        (ArraySource(evaluate(KERNELS, POINTS, POINTS), cosine, rows=rows),
         evaluate(KERNELS, POINTS, POINTS, cosine=cosine)[:, rows][:, :, rows]),
        (ArraySource(GRAMS, presence=lacking),
         GRAMS * (lacking[slice(0, 9)][:, :, None] & lacking[slice(0, 9)][:, None])),
    ]  # fmt: skip
    joined = JoinedSource((sources[0][0], sources[1][0]))
    sources.append((joined, np.concatenate([sources[0][1], sources[1][1]])))
    for source, expected in sources:
        assert source.n_kernels == len(expected)
        for m, K in enumerate(expected):
            factor = whole(source, m)
            assert_allclose(factor.values @ factor.values.T, K, atol=1e-9 * np.abs(K).max())


def test_seeds_differ_from_kernel_to_kernel_and_are_kept():
    source = ArraySource(np.array([GRAMS[0], GRAMS[0]]))
    settings = {"rank": 8, "tolerance": 0.0, "seed": 1}
    one, same = (factorised(source, 0, **settings).pivots for _ in range(2))
    assert_array_equal(one, same)
    assert one.tolist() != factorised(source, 1, **settings).pivots.tolist()


def test_values_that_are_not_finite_are_refused():
    K = GRAMS[0].copy()
    K[5] = K[:, 5] = np.inf
    with pytest.raises(GramError, match="kernel 0"):
        whole(ArraySource(K[None]))


def test_diagonals_are_added_to_all_answers():
    factors = factors_of(3, 70)
    products = np.array([one.values @ one.values.T for one in factors])
    rests, times = RNG.uniform(size=(3, 70)), np.array([1.0, 0.5, 3.0])
    exact = np.einsum("mii->mi", products) + rests
    grams = products + times[:, None, None] * np.array([np.diag(rest) for rest in rests])
    whole = FactorBank(factors, exact, times)
    points, kernels = RNG.permutation(70)[:20], np.array([2, 0])
    v, weights = RNG.normal(size=(70, 2)), np.array([0.5, 0.0, 2.0])
    assert_allclose(whole.forms_of_rests(v), times[:, None] * (rests @ v**2))
    for bank, own, at in (
        (whole, grams, np.arange(70)),
        (whole.select(kernels), grams[kernels], np.arange(70)),
        (whole.on(points), grams[:, points][:, :, points], points),
    ):
        w, d = weights[: len(own)], v[at]
        thin, dense, forms, diagonals, inner = answer(
            bank,
            [Combine(w, thin=True), Combine(w), Quadratic(d), Diagonal(d), Inner(own[:1].copy())],
        )
        combined = np.tensordot(w, own, 1)
        assert isinstance(thin, FactoredMatrix)
        assert_allclose(thin @ d, combined @ d, atol=1e-9)
        assert_allclose(thin.diagonal, np.diagonal(combined), atol=1e-9)
        assert_allclose(dense, combined, atol=1e-9)
        assert_allclose(forms, np.einsum("mij,ir,jr->mr", own, d, d), rtol=1e-9)
        assert_allclose(diagonals, np.einsum("mii,ir->mr", own, d), atol=1e-9)
        assert_allclose(inner[:, 0], (own * own[0]).sum(axis=(1, 2)), rtol=1e-9)
    nothing = whole.own_answer(Combine(np.zeros(3), thin=True))
    assert isinstance(nothing, FactoredMatrix)
    assert not nothing.on(points).diagonal.any()


N, RANK = 500, 20
EACH = 8 * N * RANK


def factor(seed: int, rank: int = RANK) -> PivotedFactor:
    values = np.random.default_rng(seed).normal(size=(N, rank))
    return PivotedFactor(values, np.arange(rank), 0.1)


def cached(folder, fit: int, n_factors: int = 10, rank: int = RANK):
    """Return a cache in which some factors stay, while two are at hand, and a bank of them all."""
    cache = FactorCache((fit + 2) * 8 * N * rank, folder)
    return cache, FactorBank([cache.put(factor(m, rank)) for m in range(n_factors)], cache=cache)


@pytest.mark.parametrize("fit", [0, 3, 9])
def test_every_factor_comes_back_as_it_was(tmp_path, fit):
    cache, bank = cached(tmp_path, fit, 12)
    for m in [*range(12), *range(12)]:
        expected = factor(m)
        assert_array_equal(bank.factors[m].values, expected.values)
        assert_array_equal(bank.factors[m].diagonal, expected.diagonal)
        assert (bank.factors[m].rank, bank.factors[m].left) == (RANK, 0.1)
        assert cache.cached_bytes <= fit * EACH
    assert cache.cached_bytes == fit * EACH


def test_factors_that_fit_are_neither_written_nor_read(tmp_path):
    cache, bank = cached(tmp_path / "none", fit=8)  # ten with the two at hand, which need not be
    answer(bank, [Quadratic(np.ones(N))])
    assert cache.holds_all
    assert (cache.n_read, cache.n_written) == (0, 0)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("fit", [0, 1, 6])
def test_a_pass_reads_the_factors_that_do_not_fit_and_no_more(tmp_path, fit):
    cache, bank = cached(tmp_path, fit)
    vectors = np.random.default_rng(1).normal(size=(N, 2))
    expected = [((factor(m).values.T @ vectors) ** 2).sum(axis=0) for m in range(10)]
    answer(bank, [Quadratic(vectors)])
    for _ in range(3):
        before = cache.n_read
        [found] = answer(bank, [Quadratic(vectors)])
        assert cache.n_read - before == 10 - fit
        assert np.allclose(found, expected, rtol=1e-12)
    assert cache.n_written == 10 - fit  # each once


def test_factors_in_use_stay_through_passes(tmp_path):
    cache, bank = cached(tmp_path, fit=3)
    vectors, active = np.ones(N), np.array([8, 2, 5])
    answer(bank, [Matvec(active, vectors)])
    before = cache.n_read
    for _ in range(4):
        answer(bank, [Matvec(active, vectors)])
    assert cache.n_read == before
    answer(bank, [Quadratic(vectors)])
    assert cache.n_read - before == 7
    [operator] = answer(bank, [Combine(np.ones(3), active, thin=True)])
    for _ in range(4):
        operator @ vectors
    assert cache.n_read - before == 7


@pytest.mark.parametrize("n_active", [5, 10])
def test_an_operator_of_more_factors_than_fit_reads_those_that_do_not(tmp_path, n_active):
    cache, bank = cached(tmp_path, fit=3)
    active, weights = np.arange(10)[::-1][:n_active], np.linspace(0.5, 1.0, n_active)
    [operator] = answer(bank, [Combine(weights, active, thin=True)])
    matrix = sum(
        w * factor(m).values @ factor(m).values.T for w, m in zip(weights, active, strict=True)
    )
    vectors = np.random.default_rng(1).normal(size=(N, 2))
    operator @ vectors
    before = cache.n_read
    assert np.allclose(operator @ vectors, matrix @ vectors, rtol=1e-10)
    assert cache.n_read - before == n_active - 3
    points = np.array([3, 400, 17])
    assert np.allclose(operator.block(points), matrix[np.ix_(points, points)], rtol=1e-10)
    part = operator.on(points)
    assert np.allclose(part @ vectors[:3], matrix[np.ix_(points, points)] @ vectors[:3], rtol=1e-10)
    twice = operator.plus(1.0, operator)
    assert len(twice.factors) == n_active
    assert np.allclose(twice @ vectors, 2 * matrix @ vectors, rtol=1e-10)


@pytest.mark.parametrize("fit", [0, 2])
def test_memory_is_that_of_the_factors_that_stay_and_two_at_hand(tmp_path, fit):
    rank, each = 10 * RANK, 10 * EACH
    tracemalloc.start()
    try:
        cache, bank = cached(tmp_path, fit, 20, rank)
        vectors = np.random.default_rng(1).normal(size=(N, 1))
        [operator] = answer(bank, [Combine(np.ones(20), thin=True)])
        tracemalloc.reset_peak()
        answer(bank, [Quadratic(vectors), Matvec(np.arange(20), vectors)])
        operator @ vectors
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    of_points = 3 * 20 * 8 * N  # diagonals, of the factors and of the operator, and products
    assert (fit + 2) * each <= peak <= (fit + 2) * each + of_points + each / 4
    assert cache.cached_bytes == fit * each


@pytest.mark.parametrize("fit", [0, 2, 20])
def test_factors_in_single_precision_take_half_and_are_at_hand_in_double(tmp_path, fit):
    rank, each = 10 * RANK, 5 * EACH
    values = [factor(m, rank).values.astype(np.float32).astype(np.float64) for m in range(20)]
    tracemalloc.start()
    try:
        cache = FactorCache((fit + 5) * each, tmp_path, "float32")
        made = (PivotedFactor(one, np.arange(rank), 0.1) for one in values)
        bank = FactorBank([cache.put(one) for one in made], cache=cache)
        assert bank.n_bytes == 20 * each
        before = cache.n_read
        tracemalloc.reset_peak()
        [found] = answer(bank, [Quadratic(np.ones(N))])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert cache.n_read - before == 20 - fit
    assert cache.cached_bytes == fit * each
    assert cache.n_written == 20 - fit
    assert fit * each < peak <= (fit + 5) * each + 20 * 8 * N + each / 4
    for one, expected, form in zip(bank.factors, values, found, strict=True):
        assert_array_equal(one.values, expected)
        assert form == pytest.approx(((expected.T @ np.ones(N)) ** 2).sum(), rel=1e-12)


def test_memory_that_is_left_to_others_comes_back(tmp_path):
    cache, bank = cached(tmp_path, fit=8)
    assert cache.holds_all
    with cache.leaving(3 * EACH):
        assert cache.cached_bytes <= 5 * EACH
        assert_array_equal(bank.factors[9].values, factor(9).values)
    answer(bank, [Quadratic(np.ones(N))])
    assert cache.cached_bytes == 10 * EACH


def test_factors_that_nobody_has_leave_memory_and_file(tmp_path):
    cache, bank = cached(tmp_path, fit=2)
    size = os.fstat(cache._file.fileno()).st_size
    assert size == 8 * EACH
    part = bank.select(np.array([1, 9]))
    del bank
    gc.collect()
    assert_array_equal(part.factors[1].values, factor(9).values)
    assert cache.cached_bytes <= 2 * EACH
    grown = cache.put(factor(30, rank=2 * RANK))
    assert_array_equal(grown.values, factor(30, rank=2 * RANK).values)
    assert os.fstat(cache._file.fileno()).st_size <= size
    del part, grown
    gc.collect()
    assert cache.cached_bytes == 0
    assert os.fstat(cache._file.fileno()).st_size == 0


def test_the_file_has_no_name(tmp_path):
    cache, _ = cached(tmp_path / "deep" / "folder", fit=0)
    assert cache.n_written == 10
    assert list((tmp_path / "deep" / "folder").iterdir()) == []


@pytest.mark.parametrize("call", ["pwrite", "preadv"])
def test_a_file_that_fails_is_said(tmp_path, monkeypatch, call):
    cache, bank = cached(tmp_path, fit=1)

    def failing(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, failing)
    work = {"pwrite": lambda: cache.put(factor(40)), "preadv": lambda: bank.factors[9].values}
    with pytest.raises(OutputError, match=str(tmp_path)):
        work[call]()
    monkeypatch.undo()
    assert_array_equal(bank.factors[9].values, factor(9).values)


@pytest.mark.parametrize("place", [0, EACH // 2, EACH - 1])
def test_a_flipped_bit_in_the_file_is_said(tmp_path, monkeypatch, place):
    _, bank = cached(tmp_path, fit=0)
    preadv = os.preadv

    def flipping(file, buffers, offset):
        n = preadv(file, buffers, offset)
        buffers[0][place] ^= 4
        return n

    monkeypatch.setattr(os, "preadv", flipping)
    with pytest.raises(OutputError, match="it reads back damaged"):
        answer(bank, [Quadratic(np.ones(N))])
    monkeypatch.undo()
    assert_array_equal(bank.factors[9].values, factor(9).values)


def test_no_two_regions_share_a_byte_and_those_given_back_are_taken_again():
    rng, regions = np.random.default_rng(0), FileRegions()
    taken: dict[int, int] = {}
    most = 0
    for _ in range(3000):
        if taken and (rng.random() < 0.5 or len(taken) > 20):
            offset = int(rng.choice(list(taken)))
            regions.free(offset, taken.pop(offset))
        else:
            n_bytes = int(rng.integers(0, 9))
            offset = regions.take(n_bytes)
            if n_bytes:
                taken[offset] = n_bytes
        used = np.zeros(max(regions.end, 1), dtype=int)
        for offset, n_bytes in taken.items():
            used[offset : offset + n_bytes] += 1
        assert used.max() <= 1
        assert regions.end == max((o + n for o, n in taken.items()), default=0)
        most = max(most, regions.end)
    assert most <= 300  # 21 regions of at most 8 bytes, and holes between them


def test_a_region_is_taken_where_it_fits_first():
    regions = FileRegions()
    first, second, third = (regions.take(n) for n in (10, 20, 30))
    assert (first, second, third, regions.end) == (0, 10, 30, 60)
    regions.free(second, 20)
    assert regions.take(5) == 10
    assert regions.take(20) == 60
    assert regions.take(15) == 15
