"""A bank whose kernels are computed inside every pass, against the same bank in memory."""

import threading
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mkldist.bank.recomputed as looped
from mkldist.bank import device as bank_device
from mkldist.bank.bank import MemoryBank, PassCounter, TileLayout
from mkldist.bank.device import on_device
from mkldist.bank.passes import answer
from mkldist.bank.recomputed import CHUNK_KERNELS, PointBank, RecomputedBank, point_products
from mkldist.bank.requests import Combine, Diagonal, Matvec, Quadratic
from mkldist.bank.sources import ArraySource, FeatureSource, SelectedSource
from mkldist.bank.view import make_views
from mkldist.core.devices import Device
from mkldist.errors import GramError
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.solvers.svm import solve_svm
from mkldist.spec.banks import BankSpec
from tests.bank.bank_suite import BankSuite, random_grams
from tests.kernels.made_up import DEVICES, device_there, gaussians, kernels_of, listed


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
    with pytest.raises(GramError, match=r"kernel 1, polynomial\(150\).*range of float64"):
        make_views(bank, [None], ("trace",))  # which reads diagonals alone


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


N = 150
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 3))
KERNELS = gaussians([0.5, 1.0, 2.0], [[0, 1, 2], [1]])
GRAMS = evaluate(KERNELS, POINTS, POINTS)
WEIGHTS = np.array([0.0, 0.5, 0.0, 1.0, 2.0, 0.0])
Y = np.where(POINTS[:, 0] * POINTS[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)


def bank():
    return PointBank(FeatureSource(POINTS, KERNELS), threads=2)


def operator(of, weights=WEIGHTS):
    [found] = answer(of, [Combine(weights, thin=True)])
    return found


def values(of):
    return of.counter.bytes_computed // 8


@pytest.mark.slow
def test_operators_are_the_sums_of_matrices():
    K, total = operator(bank()), np.tensordot(WEIGHTS, GRAMS, axes=1)
    assert_allclose(K.diagonal, np.diagonal(total))
    assert_allclose(K @ Y, total @ Y, atol=1e-12)
    points = RNG.permutation(N)[:40]
    assert_allclose(K.block(points), total[np.ix_(points, points)], atol=1e-12)
    [named] = answer(bank(), [Combine(np.array([2.0, 0.5]), np.array([4, 1]), thin=True)])
    assert_allclose(named @ Y, (2.0 * GRAMS[4] + 0.5 * GRAMS[1]) @ Y, atol=1e-12)


@pytest.mark.slow
def test_the_next_product_costs_what_has_changed():
    of = bank()
    vector = RNG.normal(size=N)
    operator(of) @ vector
    assert values(of) == 3 * N * N
    vector[[3, 8]] += 1.0
    others = np.where(np.arange(6) == 0, 1.0, WEIGHTS)
    found = operator(of, others) @ vector
    assert_allclose(found, np.tensordot(others, GRAMS, axes=1) @ vector, atol=1e-12)
    assert values(of) == 3 * N * N + 3 * N * 2 + N * N  # a kernel more


def test_steps_are_not_computed_again_in_their_sum():
    of, beta = bank(), RNG.normal(size=N)
    K = operator(of)
    K @ beta
    before = values(of)
    for points in ([1, 2], [2, 5, 6], [1]):
        step = np.zeros(N)
        moved = beta.copy()
        moved[points] += RNG.normal(size=len(points))
        step[points] = moved[points] - beta[points]
        assert_allclose(K @ step, np.tensordot(WEIGHTS, GRAMS, axes=1) @ step, atol=1e-12)
        beta = moved
    assert values(of) == before + 3 * N * 6
    assert_allclose(K @ beta, np.tensordot(WEIGHTS, GRAMS, axes=1) @ beta, atol=1e-12)
    assert values(of) == before + 3 * N * 6
    beta[:20] = 0.0  # without steps
    assert_allclose(K @ beta, np.tensordot(WEIGHTS, GRAMS, axes=1) @ beta, atol=1e-12)
    assert values(of) == before + 3 * N * 26


def test_vectors_may_change_after_their_products():
    K, total = operator(bank()), np.tensordot(WEIGHTS, GRAMS, axes=1)
    first, step = Y + 2.0, np.zeros(N)
    K @ first
    step[:5] = 1.0
    K @ step
    step[5:9] = 2.0
    assert_allclose(K @ (first + step), total @ (first + step), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_products_are_those_of_matrices_though_vectors_change_in_place(seed):
    rng, of = np.random.default_rng(seed), bank()
    vectors = [np.zeros(N) for _ in range(3)]
    for _ in range(40):
        vector = vectors[rng.integers(3)]
        changed = rng.permutation(N)[: rng.choice([1, 4, 20, N])]
        vector[changed] = rng.normal(size=len(changed)) * rng.integers(2)
        if rng.integers(2):
            vector[:] = vectors[rng.integers(3)] + vector
        weights = rng.random(6) * rng.integers(2, size=6)
        total = np.tensordot(weights, GRAMS, axes=1)
        tolerance = 1e-12 * (1.0 + np.abs(vector).max())
        assert_allclose(operator(of, weights) @ vector, total @ vector, atol=tolerance)


@pytest.mark.slow
def test_forms_of_a_known_product_cost_nothing():
    of, vector = bank(), RNG.normal(size=N)
    operator(of) @ vector
    before = values(of)
    expected = np.einsum("i,mij,j->m", vector, GRAMS, vector)
    some = np.array([4, 1])
    [found] = answer(of, [Quadratic(vector[:, None], some)])
    assert_allclose(found, expected[some, None], rtol=1e-12)
    assert values(of) == before
    [found] = answer(of, [Quadratic(vector)])
    assert_allclose(found, expected, rtol=1e-12)
    assert values(of) == before + 3 * N * (N + 1) // 2
    two = RNG.normal(size=(N, 2))
    [found] = answer(of, [Quadratic(two, some)])
    assert_allclose(found, np.einsum("ir,mij,jr->mr", two, GRAMS[some], two), rtol=1e-12)


def test_other_requests_are_answered_as_of_any_bank():
    of = bank()
    [product] = answer(of, [Matvec(np.array([5, 0]), Y)])
    assert_allclose(product, GRAMS[[5, 0]] @ Y, atol=1e-12)
    [diagonals] = answer(of, [Diagonal(np.ones((N, 1)))])
    assert_array_equal(diagonals, np.full((6, 1), float(N)))
    [matrix] = answer(of, [Combine(WEIGHTS)])
    assert_allclose(matrix, np.tensordot(WEIGHTS, GRAMS, axes=1), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_machines_on_operators_are_those_on_matrices(C):
    of = bank()
    expected = solve_svm(np.tensordot(WEIGHTS, GRAMS, axes=1), Y, C, tol=1e-8)
    found = solve_svm(operator(of), Y, C, tol=1e-8)
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    before = values(of)
    again = solve_svm(operator(of), Y, C, tol=1e-7, start=found.alpha)
    assert again.objective == pytest.approx(expected.objective, rel=1e-6)
    assert values(of) == before  # points stay at their bounds


def test_kernels_without_loops_are_refused():
    with pytest.raises(ValueError, match="neither a loop nor a device knows"):
        PointBank(ArraySource(GRAMS))


N_MANY = 130
MANY = RNG.normal(size=(N_MANY, 3))
MANY_GRAMS = evaluate(KERNELS, MANY, MANY)
VECTORS = RNG.normal(size=(N_MANY, 2))
VECTORS[::3] = 0.0
USED = int(VECTORS.any(axis=1).sum())
SOME = np.array([1, 2, 5])


def known(threads=1, source=None):
    found = point_products(source or FeatureSource(MANY, KERNELS), PassCounter(), threads)
    assert found is not None
    return found


@pytest.fixture(params=[1, 7, 500])
def rows(request, monkeypatch):
    monkeypatch.setattr(looped, "ROWS", request.param)


def test_products_are_those_with_matrices_and_zeros_cost_nothing(rows):
    found = known()
    assert_allclose(found.products(SOME, VECTORS), MANY_GRAMS[SOME] @ VECTORS, atol=1e-12)
    assert found.counter.bytes_computed == 8 * 3 * N_MANY * USED
    assert found.counter.threads_cpu_seconds > 0.0


def test_forms_take_half_of_the_values_between_points_that_count():
    found = known()
    expected = np.einsum("ir,mij,jr->mr", VECTORS, MANY_GRAMS[SOME], VECTORS)
    assert_allclose(found.forms(SOME, VECTORS), expected, rtol=1e-11)
    assert found.counter.bytes_computed == 8 * 3 * USED * (USED + 1) // 2
    assert_array_equal(found.forms(SOME, 0.0 * VECTORS), np.zeros((3, 2)))


def test_blocks_are_symmetric_sums_of_kernels(rows):
    points, weights = RNG.permutation(N_MANY)[:60], np.array([0.5, 2.0, 1.0])
    found = known().block(SOME, weights, points)
    assert_array_equal(found, found.T)
    expected = np.tensordot(weights, MANY_GRAMS[SOME], axes=1)[np.ix_(points, points)]
    assert_allclose(found, expected, atol=1e-12)


def test_expansions_are_weighted_sums_of_products(rows):
    weights, at = np.array([0.5, 2.0, 1.0]), np.array([7, 3, 3, N_MANY - 1])
    found = known().expansion(SOME, weights, VECTORS, at)
    expected = np.tensordot(weights, MANY_GRAMS[SOME] @ VECTORS, axes=1)[at]
    assert_allclose(found, expected, atol=1e-12)


LACKING = np.where(RNG.random((N_MANY, 4)) < 0.1, np.nan, RNG.normal(size=(N_MANY, 4)))
OF_DEVICES = {
    "gaussians": FeatureSource(MANY, KERNELS),
    "all functions": FeatureSource(RNG.normal(size=(N_MANY, 4)), kernels_of(4)),
    "cosines": FeatureSource(RNG.normal(size=(N_MANY, 4)), kernels_of(4), cosine=True),
    "gaps": FeatureSource(LACKING, kernels_of(4)),
    "many features": FeatureSource(RNG.normal(size=(N_MANY, 70)) / 8, kernels_of(70)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("case", OF_DEVICES)
def test_products_on_a_device_are_those_with_matrices(name, case, monkeypatch):
    device_there(name)
    for edge in ("EDGE", "PROCESSOR_EDGE"):  # tiles that cut rows and columns
        monkeypatch.setattr(bank_device, edge, 20)
    plain = OF_DEVICES[case]
    everyone, order = np.arange(N_MANY), np.array([4, 0, 3, 5, 1, 2])
    grams = np.stack([plain.between(m, everyone, everyone) for m in order[SOME].tolist()])
    own = known(source=SelectedSource(on_device(plain, name, "device"), order))
    weights, at = np.array([0.5, 2.0, 1.0]), RNG.permutation(N_MANY)[:90]
    total = np.tensordot(weights, grams, axes=1)
    for vectors in (VECTORS, 0.0 * VECTORS):
        products = grams @ vectors
        forms = np.einsum("ir,mir->mr", vectors, products)
        for found, expected in (
            (own.products(SOME, vectors), products),
            (own.forms(SOME, vectors), forms),
            (own.expansion(SOME, weights, vectors, at), (total @ vectors)[at]),
            (own.block(SOME, weights, at), total[np.ix_(at, at)]),
        ):
            assert found.shape == expected.shape
            assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_device_counts_its_work_as_the_loops_do():
    source = FeatureSource(MANY, KERNELS)
    both = known(source=on_device(source, "array_api_strict", "device")), known(source=source)
    assert type(both[0].passes) is not type(both[1].passes)
    for found in both:
        found.products(SOME, VECTORS)
        found.forms(SOME, VECTORS)
        found.expansion(SOME, np.ones(3), VECTORS, np.arange(50))
        found.block(SOME, np.ones(3), np.arange(50))
        assert found.forms(SOME[:0], VECTORS).shape == (0, 2)
        assert found.products(SOME[:0], VECTORS).shape == (0, N_MANY, 2)
    assert both[0].counter.bytes_computed == both[1].counter.bytes_computed


def test_points_are_taken_to_a_device_once(monkeypatch):
    source = on_device(FeatureSource(MANY, KERNELS), "array_api_strict", "device")
    taken = []
    plain = Device.array
    monkeypatch.setattr(
        Device, "array", lambda own, values: (taken.append(values.shape), plain(own, values))[1]
    )
    for _ in range(3):
        found = known(source=SelectedSource(source, np.array([0, 3])))
        found.products(np.arange(2), VECTORS)
        found.block(np.arange(2), np.ones(2), np.arange(7))
        found.forms(np.arange(2), VECTORS)
    assert [shape for shape in taken if shape[0] == N_MANY] == [(N_MANY, 3), (N_MANY, 1)]


def test_bits_do_not_depend_on_the_threads(monkeypatch):
    monkeypatch.setattr(looped, "ROWS", 9)
    one, more = known(1), known(3)
    assert_array_equal(one.products(SOME, VECTORS), more.products(SOME, VECTORS))
    assert_array_equal(one.forms(SOME, VECTORS), more.forms(SOME, VECTORS))


def test_selections_are_known_and_what_the_loops_do_not_know_is_not():
    part = known(source=SelectedSource(FeatureSource(MANY, KERNELS), np.array([4, 0])))
    expected = MANY_GRAMS[[4, 0]] @ VECTORS
    assert_allclose(part.products(np.array([0, 1]), VECTORS), expected, atol=1e-12)
    lacking = MANY.copy()
    lacking[0, 1] = np.nan
    cosines = FeatureSource(MANY, listed(["linear"], [[0, 1]], [1.0]), cosine=True)
    for source in (ArraySource(MANY_GRAMS), FeatureSource(lacking, KERNELS), cosines):
        assert point_products(source, PassCounter(), 1) is None


@pytest.mark.parametrize("device", ["", "array_api_strict"])
def test_a_kernel_that_is_not_finite_is_named(device):
    kernels, both = listed(["linear", "polynomial"], [[0, 1]], [1.0, 40.0]), np.array([0, 1])
    source = FeatureSource(1e9 * MANY, kernels)
    found = known(source=on_device(source, device, "device") if device else source)
    for ask in (
        lambda: found.products(both, VECTORS),
        lambda: found.expansion(both, np.ones(2), VECTORS, np.arange(N_MANY)),
        lambda: found.forms(both, VECTORS),
    ):
        with pytest.raises(GramError, match="polynomial"):
            ask()
