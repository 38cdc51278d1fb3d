"""A bank whose kernels are computed inside every pass, against the same bank in memory."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.passes import answer
from mkldist.bank.recomputed import CHUNK_KERNELS, RecomputedBank
from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.bank.sources import ArraySource, FeatureSource
from mkldist.bank.view import make_views
from mkldist.errors import GramError
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.spec.banks import BankSpec
from tests.bank.bank_suite import BankSuite, random_grams


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("n_kernels", "n_points"), [(2 * CHUNK_KERNELS + 5, 13), (9, 150)])
class TestRecomputedBank(BankSuite):
    reads = False

    @pytest.fixture
    def grams(self, n_kernels: int, n_points: int) -> np.ndarray:
        return random_grams(n_kernels, n_points)

    @pytest.fixture
    def bank(self, grams: np.ndarray, threads: int) -> RecomputedBank:
        return RecomputedBank(ArraySource(grams), 3 * 8 * grams[0].size, threads)


class CountingSource(ArraySource):
    """Notes the kernels whose tiles are computed."""

    def fill(self, kernels: slice, *args: object) -> None:
        self.filled.extend(range(kernels.start, kernels.stop))
        super().fill(kernels, *args)


def counting(n_kernels: int, n_points: int) -> CountingSource:
    source = CountingSource(random_grams(n_kernels, n_points))
    object.__setattr__(source, "filled", [])
    return source


def test_kernels_that_were_kept_are_not_computed_again():
    source = counting(20, 10)
    bank = RecomputedBank(source, 20 * 8 * TileLayout.for_points(10).n_entries)
    answer(bank, [Matvec(np.array([3, 17]), np.ones(10))])
    assert sorted(source.filled) == [3, 17]
    weights = np.zeros(20)
    weights[[3, 17]] = 1.0
    answer(bank, [Combine(weights)])
    assert sorted(source.filled) == [3, 17]
    bank.close()
    answer(bank, [Matvec(np.array([3]), np.ones(10))])
    assert sorted(source.filled) == [3, 3, 17]


def test_requests_that_come_together_compute_every_kernel_once():
    source = counting(CHUNK_KERNELS + 1, 10)
    bank = RecomputedBank(source, 0)
    answer(bank, [Quadratic(np.ones(10)), Quadratic(np.ones((10, 3))), Combine(np.ones(49))])
    assert sorted(source.filled) == list(range(CHUNK_KERNELS + 1))
    assert bank.counter.passes == 1
    assert bank.counter.bytes_read == 0
    assert bank.counter.bytes_computed == bank.counter.value_bytes == bank.n_bytes
    assert bank.counter.threads_cpu_seconds > 0
    answer(bank, [Matvec(np.array([3]), np.ones(10))])
    assert bank.counter.bytes_computed == bank.n_bytes + bank.n_bytes // bank.n_kernels


def feature_source(cosine: bool) -> FeatureSource:
    """Return some hundred kernels of all functions on 30 points, one of them zero."""
    points = np.random.default_rng(2).normal(size=(30, 6))
    points[4] = 0.0
    seen = {"features": ["each", {"count": 70}]}
    words = [
        {"function": "gaussian", "widths": [0.5, 3.0], **seen},
        {"function": "polynomial", "degrees": [2, 3], "offset": 0.5, **seen},
        {"function": "linear", **seen},
        {"function": "laplacian-rbf", "widths": 2.0, **seen},
    ]
    kernels = kernel_list(BankSpec(kernels=words), 6, [f"f{j}" for j in range(6)], {}, 0)
    return FeatureSource(points, kernels, cosine)


@pytest.mark.parametrize("cosine", [False, True])
def test_diagonals_of_kernels_are_those_of_their_matrices(cosine):
    source = feature_source(cosine)
    grams = evaluate(source.kernels, source.points, source.points, cosine=cosine)
    some = slice(3, source.n_kernels - 2)
    found = source.diagonals(some)
    assert_allclose(found, np.einsum("mii->mi", grams)[some], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("chain", [("trace",), ("trace", "centre")])
def test_normalising_to_unit_trace_computes_no_tile(monkeypatch, chain):
    source = feature_source(cosine=False)
    grams = evaluate(source.kernels, source.points, source.points)
    indices = [None, np.array([7, 0, 12, 29]), np.arange(11)]
    stored = make_views(MemoryBank.from_grams(grams), indices, chain)
    bank = RecomputedBank(source, 0)

    def fill(*args: object) -> None:
        raise AssertionError("computes tiles")

    with monkeypatch.context() as patch:
        patch.setattr(FeatureSource, "fill", fill)
        views = make_views(bank, indices, chain)
    assert (bank.counter.passes, bank.counter.diagonals) == (0, 1)
    for view, plain in zip(views, stored, strict=True):
        assert_allclose(view.scale, plain.scale, rtol=1e-12)
        points = np.arange(30) if view.index is None else view.index
        traces = np.einsum("mii->mi", grams)[:, points].sum(axis=1)
        assert_allclose(view.scale * traces, 1.0, rtol=1e-12)


def test_normalising_by_centred_kernels_is_one_pass():
    source = counting(CHUNK_KERNELS + 1, 10)
    bank = RecomputedBank(source, 0)
    make_views(bank, [None, np.arange(4)], ("variance",))
    assert (bank.counter.passes, bank.counter.diagonals) == (1, 0)
    assert sorted(source.filled) == list(range(CHUNK_KERNELS + 1))


def test_an_overflow_on_the_diagonal_names_the_kernel():
    spec = BankSpec(kernels=[{"function": "polynomial", "degrees": [1, 150]}])
    kernels = kernel_list(spec, 1, ["f0"], {}, 0)
    bank = RecomputedBank(FeatureSource(np.full((4, 1), 1e2), kernels), 0)
    with pytest.raises(GramError, match=r"kernel 1, polynomial\(150\).*range of float64"):
        make_views(bank, [None], ("trace",))


def peak_of_a_pass(n_kernels):
    """Return the bytes that a pass takes at its peak, and the bytes of the bank."""
    points = np.random.default_rng(0).normal(size=(60, 5))
    words = {"function": "gaussian", "widths": 1.0, "features": {"count": n_kernels}}
    kernels = kernel_list(BankSpec(kernels=[words]), 5, [f"f{j}" for j in range(5)], {}, 0)
    bank = RecomputedBank(FeatureSource(points, kernels), 0, threads=2)
    answer(bank, [Quadratic(np.ones(60))])  # compiles
    tracemalloc.start()
    try:
        answer(bank, [Quadratic(np.ones(60))])
        return tracemalloc.get_traced_memory()[1], bank.n_bytes
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_kernels():
    few, small = peak_of_a_pass(4 * CHUNK_KERNELS)
    many, large = peak_of_a_pass(40 * CHUNK_KERNELS)
    assert many - few < (large - small) / 50


def test_chunks_of_large_tiles_are_of_fewer_kernels():
    def largest(n_points):
        source = ArraySource(np.broadcast_to(np.eye(n_points), (50, n_points, n_points)))
        return max(chunk.values.nbytes for chunk in RecomputedBank(source, 0).chunks())

    assert largest(1200) <= 1.1 * largest(400)


def test_an_abandoned_pass_leaves_no_thread():
    bank = RecomputedBank(ArraySource(random_grams(4 * CHUNK_KERNELS, 10)), 0, threads=2)
    before = threading.active_count()
    passing = bank.chunks()
    next(passing)
    assert threading.active_count() > before
    passing.close()
    assert threading.active_count() == before


def test_overflow_names_the_kernel():
    spec = BankSpec(kernels=[{"function": "polynomial", "degrees": [1, 150]}])
    kernels = kernel_list(spec, 1, ["f0"], {}, 0)
    bank = RecomputedBank(FeatureSource(np.full((4, 1), 1e2), kernels), 0)
    with pytest.raises(GramError, match=r"kernel 1, polynomial\(150\).*range of float64"):
        answer(bank, [Quadratic(np.ones(4))])


def test_it_is_the_bank_that_would_be_stored():
    points = np.random.default_rng(0).normal(size=(40, 4))
    kernels = kernel_list(BankSpec(family="xu2008"), 4, [f"f{j}" for j in range(4)], {}, 0)
    source = FeatureSource(points, kernels, cosine=True)
    bank = RecomputedBank(source, 2**20)
    stored = MemoryBank(np.concatenate([c.values.copy() for c in bank.chunks()]), bank.layout)
    vectors = np.random.default_rng(1).normal(size=(40, 3))
    np.testing.assert_array_equal(
        answer(bank, [Quadratic(vectors)])[0], answer(stored, [Quadratic(vectors)])[0]
    )
