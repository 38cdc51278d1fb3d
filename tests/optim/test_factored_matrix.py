"""Sums of thin products, their products and systems, against whole matrices."""

import gc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.optim import factored_matrix
from mkldist.optim.factored_matrix import (
    FactoredMatrix,
    ThinProducts,
    ThinSystem,
    block_of,
    centred_inner,
    diagonal_of,
    moved,
    ridged,
    scaled,
)
from tests.kernels.made_up import DEVICES, device_there
from tests.variants import quick

RNG = np.random.default_rng(0)
FACTORS = [RNG.normal(size=(30, rank)) for rank in (3, 1, 0, 12)]
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.0])


@pytest.mark.parametrize("kept", [slice(0, 4), slice(0, 1), slice(0, 0)])
def test_products_diagonal_and_blocks_are_those_of_the_sum(kept):
    weights, factors = WEIGHTS[kept], FACTORS[kept]
    full = sum((w * G @ G.T for w, G in zip(weights, factors, strict=True)), np.zeros((30, 30)))
    diagonals = np.array([(G**2).sum(axis=1) for G in factors]).reshape(len(factors), 30)
    K = FactoredMatrix(weights, factors, diagonals, 30)
    vectors = RNG.normal(size=(30, 5))
    points = RNG.permutation(30)[:7]
    assert_allclose(K @ vectors, full @ vectors, atol=1e-12)
    assert_allclose(K @ vectors[:, 0], full @ vectors[:, 0], atol=1e-12)
    assert_allclose(K.diagonal, np.diagonal(full), atol=1e-12)
    assert_allclose(K.block(points), full[np.ix_(points, points)], atol=1e-12)
    part = K.on(points)
    assert_allclose(part @ vectors[:7], full[np.ix_(points, points)] @ vectors[:7], atol=1e-12)
    assert_allclose(part.diagonal, np.diagonal(full)[points], atol=1e-12)


def operator(weights: np.ndarray, chosen: list[int]) -> tuple[FactoredMatrix, np.ndarray]:
    """Return an operator of some factors, and its matrix."""
    factors = [FACTORS[s] for s in chosen]
    diagonals = np.array([(G**2).sum(axis=1) for G in factors]).reshape(len(factors), 30)
    full = sum((w * G @ G.T for w, G in zip(weights, factors, strict=True)), np.zeros((30, 30)))
    return FactoredMatrix(weights, factors, diagonals, 30), full


@pytest.mark.parametrize(("chosen", "others"), [([0, 3], [3, 1]), ([], [1]), ([2], []), ([], [])])
def test_sums_and_ridges_are_those_of_the_matrices(chosen, others):
    K, full = operator(RNG.uniform(1, 2, len(chosen)), chosen)
    D, change = operator(RNG.normal(size=len(others)), others)
    total, expected = ridged(moved(K, -0.3, D), 0.5), full - 0.3 * change + 0.5 * np.eye(30)
    points, vectors = RNG.permutation(30)[:7], RNG.normal(size=(30, 5))
    assert isinstance(total, FactoredMatrix)
    assert len(total.factors) == len(set(chosen) | set(others))
    assert_allclose(total @ vectors, expected @ vectors, atol=1e-12)
    assert_allclose(diagonal_of(total), np.diagonal(expected), atol=1e-12)
    assert_allclose(block_of(total, points), expected[np.ix_(points, points)], atol=1e-12)
    dense = ridged(moved(full, -0.3, change), 0.5)
    assert_allclose(dense, expected, atol=1e-12)
    assert_allclose(block_of(dense, points), expected[np.ix_(points, points)], atol=1e-12)


def test_an_operator_and_a_matrix_have_no_sum():
    K, full = operator(np.ones(1), [0])
    with pytest.raises(TypeError, match="no sum"):
        moved(K, 1.0, full)


def test_ridges_may_differ_from_point_to_point():
    ridge, vectors, points = RNG.uniform(size=30), RNG.normal(size=(30, 5)), RNG.permutation(30)[:7]
    K, full = operator(np.array([1.0, -0.5]), [0, 3])
    K, full = ridged(K, ridge), full + np.diag(ridge)
    assert isinstance(K, FactoredMatrix)
    assert_allclose(K @ vectors, full @ vectors, atol=1e-12)
    assert_allclose(K @ vectors[:, 0], full @ vectors[:, 0], atol=1e-12)
    assert_allclose(K.diagonal, np.diagonal(full), atol=1e-12)
    assert_allclose(K.block(points), full[np.ix_(points, points)], atol=1e-12)
    part = K.on(points)
    assert_allclose(part @ vectors[:7], full[np.ix_(points, points)] @ vectors[:7], atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.7, RNG.uniform(size=30)])
def test_inner_products_of_centred_operators_are_those_of_the_matrices(ridge):
    K, full = operator(np.array([1.0, 0.3]), [0, 3])
    L, other = operator(np.array([2.0]), [1])
    H = np.eye(30) - 1.0 / 30.0
    K, full = ridged(K, ridge), full + ridge * np.eye(30)
    for one, matrix in ((K, full), (L, other)):
        expected = float((H @ full @ H * matrix).sum())
        assert centred_inner(K, one) == pytest.approx(expected, rel=1e-10)
        assert centred_inner(one, K) == pytest.approx(expected, rel=1e-10)


def test_a_multiple_of_an_operator_is_that_of_its_matrix():
    K, full = operator(np.array([1.0, 0.3]), [0, 3])
    vectors = RNG.normal(size=(30, 2))
    expected = 0.25 * (full + 0.5 * np.eye(30)) @ vectors
    assert_allclose(scaled(ridged(K, 0.5), 0.25) @ vectors, expected, atol=1e-12)
    assert_allclose(scaled(ridged(full, 0.5), 0.25) @ vectors, expected, atol=1e-12)


N = 30
THIN = [RNG.normal(size=(N, rank)) for rank in (3, 0, 12)]
OF_THIN = np.array([0.5, 1.0, 2.0])
FULL = [G @ G.T for G in THIN]
VECTORS = RNG.normal(size=(N, 4))
ROOM = {"shared": None, "kept": 2**20, "no room": 0}


@pytest.fixture(params=DEVICES)
def device(request):
    return device_there(request.param)


@pytest.fixture(params=["host", *(f"{name} {room}" for name in DEVICES for room in ROOM)])
def products(request, monkeypatch):
    if request.param == "host":
        return ThinProducts()
    name, _, room = request.param.partition(" ")
    monkeypatch.setattr(factored_matrix, "BLOCK_BYTES", 7 * 8 * 12)  # blocks of seven rows
    return ThinProducts(device_there(name), ROOM[room])


@pytest.mark.parametrize("columns", [slice(0, 4), 0], ids=["several", "one"])
def test_products_are_those_of_the_matrices(products, columns):
    vectors = VECTORS[:, columns]
    for G, full in zip(THIN, FULL, strict=True):
        projected = products.projected(G, vectors)
        assert_allclose(projected, G.T @ vectors, atol=1e-13)
        assert_allclose(products.spread(G, projected), full @ vectors, atol=1e-12)
        assert_allclose(
            products.squares(G, vectors), (vectors * (full @ vectors)).sum(axis=0), rtol=1e-12
        )
    expected = sum(w * full @ vectors for w, full in zip(OF_THIN, FULL, strict=True))
    assert_allclose(products.times(THIN, OF_THIN, vectors), expected, atol=1e-12)
    assert products.times([], np.empty(0), vectors).tolist() == np.zeros_like(vectors).tolist()


def test_blocks_are_those_of_the_matrices_and_leave_factors_as_they_are(products):
    points, before = np.array([7, 2, 29]), [G.copy() for G in THIN]
    expected = sum(w**2 * full for w, full in zip(OF_THIN, FULL, strict=True))
    for _ in range(2):
        found = products.block(THIN, OF_THIN, points)
        assert_allclose(found, expected[np.ix_(points, points)], atol=1e-12)
    assert all((old == G).all() for G, old in zip(THIN, before, strict=True))


def test_factors_of_float32_are_summed_in_float64(products):
    G = RNG.normal(size=(N, 5)).astype(np.float32)
    found = products.times([G], np.ones(1), VECTORS)
    assert found.dtype == np.float64
    wide = G.astype(np.float64)
    assert_allclose(found, wide @ (wide.T @ VECTORS), atol=1e-13)


def test_a_device_takes_a_factor_once_and_as_long_as_it_is_there(device):
    products, G = ThinProducts(device, 2**20), RNG.normal(size=(N, 5))
    for _ in range(3):
        products.times([G], np.ones(1), VECTORS)
        products.block([G], np.ones(1), np.arange(3))
    assert products.taken == G.nbytes
    del G
    gc.collect()
    assert not products._kept


def test_factors_without_room_go_through_the_device_each_time(device):
    own = np.ascontiguousarray(THIN[2])
    products = ThinProducts(device, room=THIN[0].nbytes)
    for _ in range(2):
        products.squares(THIN[0], VECTORS)
        products.squares(own, VECTORS)
    assert products.taken == THIN[0].nbytes + 2 * own.nbytes


def test_operators_and_systems_multiply_on_their_device(device):
    products = ThinProducts(device, 2**20)
    diagonals = np.array([np.diagonal(full) for full in FULL])
    plain = FactoredMatrix(OF_THIN, THIN, diagonals, N, ridge=0.1)
    K = FactoredMatrix(OF_THIN, THIN, diagonals, N, 0.1, products).plus(0.5, plain)
    expected, points = plain.plus(0.5, plain), np.array([3, 1, 20])
    assert_allclose(K @ VECTORS, expected @ VECTORS, atol=1e-12)
    assert_allclose(K.block(points), expected.block(points), atol=1e-12)
    assert_allclose(K.on(points) @ VECTORS[:3], expected.on(points) @ VECTORS[:3], atol=1e-12)
    assert centred_inner(K, K) == pytest.approx(centred_inner(expected, expected), rel=1e-12)
    diagonal, gradient = np.linspace(0.5, 2.0, N), VECTORS[:, 0]
    systems = [ThinSystem(diagonal, OF_THIN, THIN, *own) for own in ([], [products])]
    found = [system.minimiser(gradient, 1e-10) for system in systems]
    assert_allclose(found[1], found[0], atol=1e-9)
    assert products.taken > 0


class Kept:
    """A factor that somebody has, who counts how often its values are asked for."""

    def __init__(self, G):
        self._G, self.shape, self.asked = G, G.shape, 0

    @property
    def values(self):
        self.asked += 1
        return self._G

    def on(self, points):
        return self._G[points]


def test_a_factor_that_is_elsewhere_is_read_once_where_the_device_keeps_it(products, request):
    factor, expected = Kept(THIN[2]), FULL[2] @ VECTORS
    for _ in range(3):
        assert_allclose(products.times([factor], np.ones(1), VECTORS), expected, atol=1e-12)
    keeps = "kept" in request.node.name or "cuda shared" in request.node.name
    assert factor.asked == (1 if keeps else 3)
    points = np.array([4, 1])
    block = products.block([factor], np.ones(1), points)
    assert_allclose(block, FULL[2][np.ix_(points, points)], atol=1e-12)


SIZE = 60
DIAGONAL = 10.0 ** RNG.uniform(-3, 2, size=SIZE)
PARTS = [RNG.normal(size=(SIZE, rank)) * 0.8 ** np.arange(rank) for rank in (20, 0, 7)]
SHARES = np.array([2.0, 1.0, 0.5])
GRADIENT = RNG.normal(size=SIZE)


def dense() -> np.ndarray:
    products = [w * G @ G.T for w, G in zip(SHARES, PARTS, strict=True)]
    return np.diag(DIAGONAL) + sum(products)


def bordered(H: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return the minimiser of ``1/2 x'Hx + g'x`` over vectors of sum zero."""
    n = len(H)
    system = np.block([[H, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(-gradient, 0.0))[:n]


@pytest.mark.parametrize("columns", [1, 3, 12, 600])
def test_the_minimiser_is_that_of_the_dense_system_with_any_preconditioner(monkeypatch, columns):
    monkeypatch.setattr(factored_matrix, "COLUMNS", columns)
    system = ThinSystem(DIAGONAL, SHARES, PARTS)
    found = system.minimiser(GRADIENT, 1e-10)
    assert abs(found.sum()) <= 1e-12
    assert_allclose(found, bordered(dense(), GRADIENT), atol=1e-7)
    assert_allclose(system @ found, dense() @ found, atol=1e-9)


def test_gradients_side_by_side_are_solved_for_as_each_is_alone():
    system = ThinSystem(DIAGONAL, SHARES, PARTS)
    gradients = np.column_stack([GRADIENT, DIAGONAL**2, 1e6 * DIAGONAL])
    found = system.minimiser(gradients, 1e-10)
    expected = np.column_stack([bordered(dense(), gradient) for gradient in gradients.T])
    scales = np.abs(expected).max(axis=0)
    assert_allclose(found / scales, expected / scales, atol=1e-7)


def test_more_columns_of_the_preconditioner_take_fewer_steps(monkeypatch):
    steps = []
    for columns in (1, 8, 16, 27):
        monkeypatch.setattr(factored_matrix, "COLUMNS", columns)
        system = ThinSystem(DIAGONAL, SHARES, PARTS)
        system.minimiser(GRADIENT, 1e-6)
        steps.append(system.steps)
    assert steps[0] > steps[1] > steps[2] > steps[3]
    assert steps[3] <= 2


def test_columns_of_equal_weight_do_not_fill_the_preconditioner(monkeypatch):
    monkeypatch.setattr(factored_matrix, "COLUMNS", 5)
    factors = [
        np.eye(SIZE),
        np.zeros((SIZE, 3)),
        np.eye(SIZE),
    ]  # as of narrow kernels and of one of zeros
    system = ThinSystem(np.ones(SIZE), np.ones(3), factors)
    assert system._heaviest().shape == (SIZE, 5)
    expected = bordered(3.0 * np.eye(SIZE), GRADIENT)
    assert_allclose(system.minimiser(GRADIENT, 1e-10), expected, atol=1e-8)


def test_the_preconditioner_promises_at_least_the_gain(monkeypatch):
    monkeypatch.setattr(factored_matrix, "COLUMNS", 5)
    system = ThinSystem(DIAGONAL, SHARES, PARTS)
    best = bordered(dense(), GRADIENT)
    gain = -0.5 * float(GRADIENT @ best)
    assert 0.5 * float(GRADIENT @ system.preconditioned(GRADIENT)) >= gain


@pytest.mark.parametrize("constant", [1e6, 1e12, 1e18])
@pytest.mark.parametrize("share", [1e-2, 1e-10])
def test_constant_kernels_change_nothing_whatever_their_weight(constant, share):
    weights, factors = (np.append(SHARES, constant), [*PARTS, np.ones((SIZE, 1))])
    gradient = GRADIENT - GRADIENT.mean()
    found = ThinSystem(DIAGONAL, weights, factors).minimiser(gradient, share)
    expected = bordered(dense(), gradient)
    assert_allclose(found, expected, atol=10 * share * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("first", quick(range(0, 200, 40)))
def test_a_gradient_that_is_rounding_of_a_constant_leaves_rounding(first):
    for seed in range(first, first + 40):
        rng = np.random.default_rng(seed)
        factors = [np.ones((5, 1)), rng.normal(size=(5, 3))]
        diagonal = np.full(5, 10.0 ** rng.uniform(-12, 6))
        system = ThinSystem(diagonal, 10.0 ** rng.uniform(-12, 12, size=2), factors)
        gradient = 1e6 + 1e-10 * rng.normal(size=5)
        found = system.minimiser(gradient, 1e-5)
        assert np.isfinite(found).all()
        assert np.abs(found).max() <= 1e-7 / diagonal.min()


def test_a_system_without_factors_is_diagonal():
    system = ThinSystem(DIAGONAL, np.empty(0), [])
    found = system.minimiser(GRADIENT, 1e-12)
    assert_allclose(found, bordered(np.diag(DIAGONAL), GRADIENT), atol=1e-9)


def test_a_gradient_of_equal_entries_leaves_nothing_to_gain():
    system = ThinSystem(DIAGONAL, SHARES, PARTS)
    assert_allclose(system.minimiser(np.full(SIZE, 3.0), 1e-6), 0.0, atol=1e-9)


@pytest.mark.parametrize("least", [1e-16, 1e-60, 1e-300])
def test_diagonals_of_any_size_leave_directions_of_descent(least):
    diagonal = np.where(np.arange(SIZE) % 2, least, 1.0)
    system = ThinSystem(diagonal, SHARES, PARTS)
    found = system.minimiser(GRADIENT, 1e-2)
    assert np.isfinite(found).all()
    assert found @ GRADIENT <= 0.0
