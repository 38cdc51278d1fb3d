"""Factors that go on where asked, within limits of rank and memory, beside their kernels."""

from __future__ import annotations

import time
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank import factored_kernels
from mkldist.bank import factored_kernels as expansions
from mkldist.bank.bank import PassCounter
from mkldist.bank.factored_kernels import (
    GROUPS,
    FactorLimits,
    begin_factors,
    expansion,
    least_bytes,
    sampled_forms,
)
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine, Quadratic
from mkldist.bank.sources import (
    ArraySource,
    FeatureSource,
    JoinedSource,
    PlainSource,
    SelectedSource,
)
from mkldist.bank.store import FactorShape, FactorStore
from mkldist.bank.view import answer_views
from mkldist.errors import GramError
from mkldist.kernels.families import kernel_list
from mkldist.optim.pivoted_cholesky import factor_bytes
from mkldist.spec.banks import BankSpec
from tests.kernels.made_up import gaussians

POINTS = np.random.default_rng(0).normal(size=(120, 3))
GRAMS = np.array([rbf_kernel(POINTS, gamma=gamma) for gamma in (0.05, 0.5, 5.0, 50.0)])
SCALE = np.array([1.0, 2.0, 0.5, 3.0])
VECTORS = np.random.default_rng(1).normal(size=(120, 2))


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 10)


def begun(threads=1, **limits):
    kernels = begin_factors(ArraySource(GRAMS), FactorLimits(**limits), threads=threads)
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
    exact = np.einsum("nr,mnk,kr->mr", VECTORS, GRAMS, VECTORS)
    assert_allclose(forms, exact)
    [matrix] = answer(view.bank, [Combine(np.ones(4), thin=True)])
    assert_allclose(matrix.diagonal, 4.0)


def test_what_factors_lack_is_that_of_the_kernels(few):
    kernels = begun()
    index = np.array([3, 1])
    factors = [kernels.factors.factors[m].values for m in index]
    left = np.array([GRAMS[m] - G @ G.T for m, G in zip(index, factors, strict=True)])
    expected = SCALE[index, None] * np.einsum("nr,snk,kr->sr", VECTORS, left, VECTORS)
    assert_allclose(kernels.lacking(index, VECTORS), expected, rtol=1e-9)
    exact = SCALE[:, None] * np.einsum("nr,mnk,kr->mr", VECTORS, GRAMS, VECTORS)
    assert_allclose(kernels.exactly(Quadratic(VECTORS)), exact, rtol=1e-12)


def test_exact_forms_take_values_between_the_points_of_the_vectors_alone(few, monkeypatch):
    seen, at = [], ArraySource.at

    def spy(self, points):
        seen.append(points.tolist())
        return at(self, points)

    monkeypatch.setattr(ArraySource, "at", spy)
    kernels, vectors = begun(), np.zeros((120, 2))
    vectors[7], vectors[[3, 99], 1] = 1.0, -2.0
    exact = SCALE[:, None] * np.einsum("nr,mnk,kr->mr", vectors, GRAMS, vectors)
    assert_allclose(kernels.exactly(Quadratic(vectors)), exact, rtol=1e-12)
    assert seen == [[3, 7, 99]]
    assert not kernels.exactly(Quadratic(np.zeros(120))).any()


def test_sources_have_the_same_kernels_on_some_of_their_points():
    points = POINTS[:60].copy()
    points[:5, 1] = np.nan
    spec = BankSpec.model_validate(
        {"kernels": [{"function": "gaussian", "widths": [1, 2], "features": ["all", "each"]}]}
    )
    kernels = kernel_list(spec, 3, ["a", "b", "c"], {}, 0)
    whole = FeatureSource(points, kernels)
    some = np.array([50, 2, 7, 30])
    sources = [
        whole,
        PlainSource(csr_array(POINTS[:60]), kernels),
        ArraySource(GRAMS, rows=np.arange(60)[::-1], presence=whole.presence),
        JoinedSource((whole, ArraySource(GRAMS[:, :60, :60]))),
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
        1.0 - GRAMS[:, index[:, None], index].mean(axis=(1, 2)) for index in (np.arange(120), some)
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
    assert np.linalg.eigvalsh(GRAMS[2] - longer @ longer.T)[0] >= -1e-12


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
        shape = FactorShape(4, 120, "float64")
        store = FactorStore.create(tmp_path, str(n_bytes), shape) if stored else None
        limits = FactorLimits(n_bytes=n_bytes)
        kernels = begin_factors(ArraySource(GRAMS), limits, store=store, folder=tmp_path / "a")
        assert kernels.lengthen({1: 40, 2: 40, 3: 40}) == [1, 2, 3]
        return kernels

    roomy, tight = all_of(None), all_of(factor_bytes(120, 320 if stored else 120))
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
    source = ArraySource(np.array([np.outer(POINTS[:, 0], POINTS[:, 0])]))
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
KERNELS = replace(
    begin_factors(ArraySource(MANY_GRAMS), FactorLimits(rank=20, tolerance=0.0), threads=2),
    scale=np.array([1.0, 2.0, 0.5]),
)
MANY_VECTORS = np.random.default_rng(1).normal(size=(400, 2))
MANY_VECTORS[::3] = 0.0
EVERY = np.arange(3)


@pytest.mark.slow
def test_estimates_lie_around_what_is_lacking():
    exact = KERNELS.lacking(EVERY, MANY_VECTORS)
    draws = [sampled_forms(KERNELS, EVERY, MANY_VECTORS, 60, seed) for seed in range(40)]
    # of kernels that lack much: the estimate of a small semi-definite rest is cut off at zero
    means = np.array([one.lacking for one in draws])[:, 1:]
    errors = np.array([one.errors for one in draws])[:, 1:]
    deviations = (means - exact[1:]) / errors
    assert np.abs(deviations.mean(axis=0)).max() < 0.5
    assert 0.8 < deviations.std() < 1.6
    of_mean = means.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(means.mean(axis=0) - exact[1:]) < 4.0 * of_mean).all()


def test_no_point_is_drawn_for_vectors_of_zeros():
    found = sampled_forms(KERNELS, EVERY[:2], np.zeros((400, 2)), 10, 0)
    assert found.lacking.shape == found.errors.shape == (2, 2)
    assert not found.lacking.any()


def test_values_are_those_between_the_points_of_a_group():
    before = KERNELS.counter.bytes_computed
    sampled_forms(KERNELS, EVERY[1:], MANY_VECTORS, 64, 0)
    values = (KERNELS.counter.bytes_computed - before) / (8 * 2 * GROUPS)
    assert 50 * 51 / 2 <= values <= 64 * 66  # some of the 64 are drawn twice


def test_what_kernels_lack_on_the_diagonal_is_no_estimate():
    """A sample sees the diagonal of a narrow kernel only where it draws a point twice."""
    apart = begin_factors(ArraySource(np.eye(400)[None]), FactorLimits(rank=20, tolerance=0.0))
    found = sampled_forms(apart, EVERY[:1], MANY_VECTORS, 5, 0)
    np.testing.assert_allclose(found.lacking, apart.lacking(EVERY[:1], MANY_VECTORS), rtol=1e-12)
    assert not found.errors.any()


RNG = np.random.default_rng(0)
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


def test_values_that_are_not_finite_are_told():
    grams = FEW_GRAMS.copy()
    grams[2, 5, 5] = np.nan
    with pytest.raises(GramError):
        expansion(ArraySource(grams), WEIGHTS, np.ones((40, 1)), PassCounter(), 1)
