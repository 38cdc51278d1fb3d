"""Banks of factors, and kernels beside them."""

import gc
import os
import time
import tracemalloc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank import factored_kernels
from mkldist.bank import factored_kernels as expansions
from mkldist.bank.bank import PassCounter, TileLayout
from mkldist.bank.factor_bank import (
    FEW_VALUES,
    FactorBank,
    FactorCache,
    FileRegions,
    factorised,
)
from mkldist.bank.factored_kernels import (
    GROUPS,
    FactorLimits,
    begin_factors,
    expansion,
    least_bytes,
    sampled_forms,
)
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic
from mkldist.bank.sources import (
    ArraySource,
    FeatureSource,
    JoinedSource,
    PlainSource,
    SelectedSource,
)
from mkldist.bank.store import BankShape, BankStore
from mkldist.bank.view import answer_views
from mkldist.errors import GramError, OutputError
from mkldist.kernels.evaluate import Presence, evaluate
from mkldist.kernels.families import kernel_list
from mkldist.optim.factored_matrix import FactoredMatrix, values_of
from mkldist.optim.pivoted_cholesky import PivotedFactor, factor_bytes
from mkldist.spec.banks import BankSpec
from tests.bank.bank_suite import BankSuite
from tests.kernels.made_up import gaussians
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
    """Return factors of small whole numbers, whose products are exact.

    Those of 200 points have more values than a bank puts next to each other.
    """
    rank = 5 if n_points < 200 else 1 + FEW_VALUES // n_points
    values = np.random.default_rng(0).integers(-3, 4, (n_kernels, n_points, rank)).astype(float)
    return [PivotedFactor(factor, np.arange(rank), 0.0) for factor in values]


@pytest.mark.parametrize(("n_kernels", "n_points"), [(19, 13), (18, 150), (18, 200)])
class TestFactorBank(BankSuite):
    reads = False

    @pytest.fixture
    def bank(self, n_kernels: int, n_points: int) -> FactorBank:
        return FactorBank(factors_of(n_kernels, n_points))

    @pytest.fixture
    def grams(self, n_kernels: int, n_points: int) -> np.ndarray:
        factors = factors_of(n_kernels, n_points)
        return np.array([factor.values @ factor.values.T for factor in factors])

    def test_describes_itself(self, bank, grams):
        assert (bank.n_kernels, bank.n_points) == grams.shape[:2]
        assert bank.n_bytes == 8 * grams.shape[1] * sum(factor.rank for factor in bank.factors)

    def test_one_pass_serves_all_and_changes_no_answer(self, bank, rng):
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
    def test_a_thin_combination_is_an_operator(self, bank, grams, rng, named):
        kernels = rng.permutation(bank.n_kernels)[:4] if named else np.arange(bank.n_kernels)
        weights = rng.random(len(kernels))
        weights[1] = 0.0
        [found] = answer(bank, [Combine(weights, kernels if named else None, thin=True)])
        assert isinstance(found, FactoredMatrix)
        assert len(found.factors) == len(kernels) - 1
        for G, m in zip(found.factors, np.delete(kernels, 1), strict=True):
            assert_array_equal(values_of(G), bank.factors[m].values)
        [again] = answer(bank, [Combine(weights, kernels if named else None, thin=True)])
        assert all(G is H for G, H in zip(found.factors, again.factors, strict=True))  # no copies
        expected = np.einsum("s,sij->ij", weights, grams[kernels])
        assert_allclose(
            found.block(np.arange(bank.n_points)), expected, atol=1e-12 * expected.max()
        )
        assert_allclose(found.diagonal, np.diagonal(expected))

    def test_a_part_shares_the_factors(self, bank, grams):
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

    def test_describes_itself(self, bank, grams):
        assert isinstance(bank, FactorBank)
        n_columns = sum(factor.rank for factor in bank.factors)
        assert bank.n_bytes == bank.kept_type.itemsize * grams.shape[1] * n_columns
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
    grams = GRAMS[:3].copy()
    grams[2, 5] = grams[2, :, 5] = np.inf
    with pytest.raises(GramError, match="kernel 2"):
        whole(ArraySource(grams), 2)
    with pytest.raises(GramError, match="kernel 2"):
        expansion(ArraySource(grams), WEIGHTS, np.ones((60, 1)), PassCounter(), 1)


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


WIDE_POINTS = np.random.default_rng(0).normal(size=(120, 3))
WIDE_GRAMS = np.array([rbf_kernel(WIDE_POINTS, gamma=gamma) for gamma in (0.05, 0.5, 5.0, 50.0)])
SCALE = np.array([1.0, 2.0, 0.5, 3.0])
VECTORS = np.random.default_rng(1).normal(size=(120, 2))


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 10)


def begun(threads=1, **limits):
    kernels = begin_factors(ArraySource(WIDE_GRAMS), FactorLimits(**limits), threads=threads)
    return replace(kernels, scale=SCALE)


def ranks(kernels):
    return [factor.rank for factor in kernels.factors.factors]


def test_factors_begin_with_few_columns_and_go_on_where_asked(few):
    kernels = begun(threads=2)
    first = kernels.factors.factors
    assert ranks(kernels) == [10] * 4
    assert kernels.lengthen({1: 40, 3: 60, 2: 5}) == [1, 3]
    assert ranks(kernels) == [10, 40, 10, 60]
    assert kernels.factors.factors[0] is first[0]
    longer = kernels.factors.factors[3]
    assert_array_equal(longer.pivots[:10], first[3].pivots)
    assert_allclose(longer.values[:, :10], first[3].values, rtol=1e-12, atol=1e-15)


def test_answers_are_those_of_the_longer_factors(few):
    kernels = begun()
    view = kernels.view
    kernels.lengthen(dict.fromkeys(range(4), 120))
    [forms] = answer(kernels.factors, [Quadratic(VECTORS)])
    exact = np.einsum("nr,mnk,kr->mr", VECTORS, WIDE_GRAMS, VECTORS)
    assert_allclose(forms, exact)
    [matrix] = answer(view.bank, [Combine(np.ones(4), thin=True)])
    assert_allclose(matrix.diagonal, 4.0)


def test_what_factors_lack_is_that_of_the_kernels(few):
    kernels = begun()
    index = np.array([3, 1])
    factors = [kernels.factors.factors[m].values for m in index]
    left = np.array([WIDE_GRAMS[m] - G @ G.T for m, G in zip(index, factors, strict=True)])
    expected = SCALE[index, None] * np.einsum("nr,snk,kr->sr", VECTORS, left, VECTORS)
    assert_allclose(kernels.lacking(index, VECTORS), expected, rtol=1e-9)
    exact = SCALE[:, None] * np.einsum("nr,mnk,kr->mr", VECTORS, WIDE_GRAMS, VECTORS)
    assert_allclose(kernels.exactly(Quadratic(VECTORS)), exact, rtol=1e-12)


def test_exact_forms_take_values_between_the_points_of_the_vectors_alone(few, monkeypatch):
    seen, at = [], ArraySource.at

    def spy(self, points):
        seen.append(points.tolist())
        return at(self, points)

    monkeypatch.setattr(ArraySource, "at", spy)
    kernels, vectors = begun(), np.zeros((120, 2))
    vectors[7], vectors[[3, 99], 1] = 1.0, -2.0
    exact = SCALE[:, None] * np.einsum("nr,mnk,kr->mr", vectors, WIDE_GRAMS, vectors)
    assert_allclose(kernels.exactly(Quadratic(vectors)), exact, rtol=1e-12)
    assert seen == [[3, 7, 99]]
    assert not kernels.exactly(Quadratic(np.zeros(120))).any()


def test_sources_have_the_same_kernels_on_some_of_their_points():
    points = WIDE_POINTS[:60].copy()
    points[:5, 1] = np.nan
    spec = BankSpec.model_validate(
        {"kernels": [{"function": "gaussian", "widths": [1, 2], "features": ["all", "each"]}]}
    )
    kernels = kernel_list(spec, 3, ["a", "b", "c"], {}, 0)
    whole = FeatureSource(points, kernels)
    some = np.array([50, 2, 7, 30])
    sources = [
        whole,
        PlainSource(csr_array(WIDE_POINTS[:60]), kernels),
        ArraySource(WIDE_GRAMS, rows=np.arange(60)[::-1], presence=whole.presence),
        JoinedSource((whole, ArraySource(WIDE_GRAMS[:, :60, :60]))),
        SelectedSource(whole, np.array([5, 1])),
    ]
    for source in sources:
        part, every = source.at(some), np.arange(4)
        assert (part.n_points, part.n_kernels) == (4, source.n_kernels)
        for m in range(source.n_kernels):
            assert_allclose(
                part.between(m, every, every), source.between(m, some, some), rtol=1e-12
            )
        diagonals = source.diagonals(slice(0, source.n_kernels))
        assert_allclose(part.diagonals(slice(0, source.n_kernels)), diagonals[:, some])


def test_variances_of_many_points_are_those_of_a_part_that_is_drawn(few, monkeypatch):
    some = np.arange(0, 120, 2)
    variances = [
        1.0 - WIDE_GRAMS[:, index[:, None], index].mean(axis=(1, 2))
        for index in (np.arange(120), some)
    ]
    for points, rtol in ((120, 1e-10), (90, 0.2)):
        monkeypatch.setattr(factored_kernels, "VARIANCE_POINTS", points)
        views = begun().views([None, some], ["variance"])
        for view, variance in zip(views, variances, strict=True):
            assert_allclose(view.scale, 1.0 / variance, rtol=rtol)
    assert_allclose(views[1].scale, 1.0 / variances[1], rtol=1e-10)
    assert not np.allclose(views[0].scale, 1.0 / variances[0], rtol=1e-6)


def test_views_have_operators_of_single_kernels_on_their_points(few):
    index = np.array([50, 2, 7])
    [view] = begun().views([index], ())
    wanted = Combine(np.eye(2), np.array([3, 1]), thin=True)
    [operators] = answer_views([(view, wanted)])
    for kernel, operator in zip((3, 1), operators, strict=True):
        rows = view.bank.factors[kernel].values[index]
        assert_allclose(operator @ np.eye(3), rows @ rows.T, rtol=1e-12, atol=1e-14)


def test_some_kernels_go_on_by_themselves(few):
    kernels = begun()
    part = kernels.select(np.array([2, 0]))
    assert part.lengthen({0: 30}) == [0]
    assert ranks(part) == [30, 10]
    assert ranks(kernels) == [10] * 4
    longer = part.factors.factors[0].values
    assert np.linalg.eigvalsh(WIDE_GRAMS[2] - longer @ longer.T)[0] >= -1e-12


@pytest.mark.parametrize("asked", [{3: 40}, {2: 40, 3: 40}])
def test_no_factor_grows_beyond_the_rank(few, asked):
    kernels = begun(rank=20)
    assert kernels.lengthen(asked) == list(asked)
    assert all(ranks(kernels)[m] == 20 for m in asked)
    assert kernels.lengthen(asked) == []
    assert kernels.limit_on(asked) == "rank"


def test_factors_keep_to_their_memory_while_they_are_made(few):
    column = factor_bytes(120, 1)
    kernels = begun(n_bytes=150 * column)
    assert kernels.lengthen({1: 20, 3: 60}) == [1, 3]
    assert ranks(kernels) == [10, 20, 10, 50]  # a third of the memory
    assert kernels.lengthen({3: 60}) == []
    assert kernels.limit_on([3]) == "memory"
    assert kernels.lengthen({0: 50, 2: 50}) == [0, 2]
    assert kernels.factors.n_bytes == 170 * column
    assert kernels.factors.cache.cached_bytes <= 50 * column  # two factors are at hand


@pytest.mark.parametrize("stored", [False, True])
def test_factors_larger_than_memory_are_those_that_fit(few, stored, tmp_path):
    def all_of(n_bytes):
        shape = BankShape(4, TileLayout.for_points(120), "float64", factored=True)
        store = BankStore.create(tmp_path, str(n_bytes), shape) if stored else None
        limits = FactorLimits(n_bytes=n_bytes)
        kernels = begin_factors(ArraySource(WIDE_GRAMS), limits, store=store, folder=tmp_path / "a")
        assert kernels.lengthen({1: 40, 2: 40, 3: 40}) == [1, 2, 3]
        return kernels

    # Both have their factors next to each other, or neither: then they round alike.
    roomy = all_of(None if stored else factor_bytes(120, 250))
    tight = all_of(factor_bytes(120, 320 if stored else 120))
    cache = tight.factors.cache
    assert cache.holds_all is stored  # of 130 columns, 40 stay while two factors are at hand
    for one, other in zip(roomy.factors.factors, tight.factors.factors, strict=True):
        assert_array_equal(one.values, other.values)
        assert_array_equal(one.pivots, other.pivots)
        assert_array_equal(one.diagonal, other.diagonal)
    requests = [Quadratic(VECTORS), Combine(np.arange(4.0), thin=True)]
    forms, operator = answer(tight.factors, requests)
    expected, matrix = answer(roomy.factors, requests)
    assert_array_equal(forms, expected)
    assert_array_equal(operator @ VECTORS, matrix @ VECTORS)


def test_a_factor_that_is_its_kernel_cannot_grow(few):
    source = ArraySource(np.array([np.outer(WIDE_POINTS[:, 0], WIDE_POINTS[:, 0])]))
    kernels = begin_factors(source, FactorLimits(tolerance=0.0))
    assert ranks(kernels) == [1]
    assert kernels.lengthen({0: 50}) == []
    assert kernels.limit_on([0]) == "rounding"


def test_the_least_memory_is_that_of_a_first_factor_in_the_making():
    assert least_bytes(1000, FactorLimits()) == (3 * 100 + 200) * 1000 * 8
    assert least_bytes(1000, FactorLimits(rank=7)) == (3 * 7 + 200) * 1000 * 8


def test_factors_that_grow_give_back_the_memory_of_the_shorter_ones(few, monkeypatch):
    kernels, factorised, number = begun(), factored_kernels.factorised, []
    shorter = [weakref.ref(factor.values) for factor in kernels.factors.factors]

    def gone(kernel):
        for _ in range(1000):  # the thread that takes longer factors may wait for its turn
            if shorter[kernel]() is None:
                return True
            time.sleep(0.01)
        return False

    def spy(source, kernel, **options):
        number.append(kernel)
        assert len(number) < 3 or gone(number[-3])
        return factorised(source, kernel, **options)

    monkeypatch.setattr(factored_kernels, "factorised", spy)
    assert kernels.lengthen(dict.fromkeys(range(4), 20)) == [0, 1, 2, 3]
    assert number == [0, 1, 2, 3]


MANY_POINTS = np.random.default_rng(0).normal(size=(400, 3))
MANY_GRAMS = np.array([rbf_kernel(MANY_POINTS, gamma=gamma) for gamma in (0.05, 5.0, 50.0)])
WIDE_KERNELS = replace(
    begin_factors(ArraySource(MANY_GRAMS), FactorLimits(rank=20, tolerance=0.0), threads=2),
    scale=np.array([1.0, 2.0, 0.5]),
)
MANY_VECTORS = np.random.default_rng(1).normal(size=(400, 2))
MANY_VECTORS[::3] = 0.0
EVERY = np.arange(3)


@pytest.mark.slow
def test_estimates_lie_around_what_is_lacking():
    exact = WIDE_KERNELS.lacking(EVERY, MANY_VECTORS)
    draws = [sampled_forms(WIDE_KERNELS, EVERY, MANY_VECTORS, 60, seed) for seed in range(40)]
    # of kernels that lack much: the estimate of a small semi-definite rest is cut off at zero
    means = np.array([one.lacking for one in draws])[:, 1:]
    errors = np.array([one.errors for one in draws])[:, 1:]
    deviations = (means - exact[1:]) / errors
    assert np.abs(deviations.mean(axis=0)).max() < 0.5
    assert 0.8 < deviations.std() < 1.6
    of_mean = means.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(means.mean(axis=0) - exact[1:]) < 4.0 * of_mean).all()


def test_no_point_is_drawn_for_vectors_of_zeros():
    found = sampled_forms(WIDE_KERNELS, EVERY[:2], np.zeros((400, 2)), 10, 0)
    assert found.lacking.shape == found.errors.shape == (2, 2)
    assert not found.lacking.any()


def test_values_are_those_between_the_points_of_a_group():
    before = WIDE_KERNELS.counter.bytes_computed
    sampled_forms(WIDE_KERNELS, EVERY[1:], MANY_VECTORS, 64, 0)
    values = (WIDE_KERNELS.counter.bytes_computed - before) / (8 * 2 * GROUPS)
    assert 50 * 51 / 2 <= values <= 64 * 66  # some of the 64 are drawn twice


def test_what_kernels_lack_on_the_diagonal_is_no_estimate():
    """A sample sees the diagonal of a narrow kernel only where it draws a point twice."""
    apart = begin_factors(ArraySource(np.eye(400)[None]), FactorLimits(rank=20, tolerance=0.0))
    found = sampled_forms(apart, EVERY[:1], MANY_VECTORS, 5, 0)
    np.testing.assert_allclose(found.lacking, apart.lacking(EVERY[:1], MANY_VECTORS), rtol=1e-12)
    assert not found.errors.any()


ROOTS = RNG.normal(size=(3, 40, 6))
FEW_GRAMS = ROOTS @ ROOTS.transpose(0, 2, 1)
WEIGHTS = np.array([0.5, 0.0, 2.0])


@pytest.mark.parametrize("values", [1, 100, 2**22])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_those_of_the_sum_and_only_what_counts_is_computed(values, threads, monkeypatch):
    monkeypatch.setattr(expansions, "VALUES", values)
    vectors = RNG.normal(size=(40, 2))
    vectors[::4] = 0.0
    rows = np.array([7, 3, 3, 39])
    full = np.tensordot(WEIGHTS, FEW_GRAMS, 1) @ vectors
    whole, some = PassCounter(), PassCounter()
    found = expansion(ArraySource(FEW_GRAMS), WEIGHTS, vectors, whole, threads)
    assert_allclose(found, full, atol=1e-12)
    assert whole.bytes_computed == 8 * 2 * 30 * 40
    part = expansion(ArraySource(FEW_GRAMS), WEIGHTS, vectors, some, threads, rows)
    assert_allclose(part, full[rows], atol=1e-12)
    assert some.bytes_computed == 8 * 2 * 30 * 4


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_on_features_go_through_loops(threads):
    points = RNG.normal(size=(40, 2))
    source = FeatureSource(points, gaussians([0.5, 1.0, 2.0], [[0, 1]]))
    vectors, counter, rows = RNG.normal(size=(40, 2)), PassCounter(), np.array([7, 3, 3, 39])
    vectors[::4] = 0.0
    grams = [rbf_kernel(points, gamma=0.5 / width**2) for width in (0.5, 1.0, 2.0)]
    found = expansion(source, WEIGHTS, vectors, counter, threads, rows)
    assert_allclose(found, (np.tensordot(WEIGHTS, grams, 1) @ vectors)[rows], atol=1e-12)
    assert counter.bytes_computed == 8 * 2 * 30 * 4


def test_nothing_is_expanded_in_nothing():
    counter = PassCounter()
    found = expansion(ArraySource(FEW_GRAMS), WEIGHTS, np.zeros((40, 1)), counter, 1)
    assert_array_equal(found, np.zeros((40, 1)))
    assert counter.bytes_computed == 0
