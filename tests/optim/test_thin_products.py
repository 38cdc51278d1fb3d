"""Products with a `thin_factor` on devices, against numpy's on the matrices multiplied out."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mkldist.optim import factored_matrix as thin_products
from mkldist.optim.factored_matrix import FactoredMatrix, ThinProducts, centred_inner
from mkldist.optim.thin_system import ThinSystem
from tests.kernels.made_up import DEVICES, device_there

RNG = np.random.default_rng(0)
N = 30
FACTORS = [RNG.normal(size=(N, rank)) for rank in (3, 0, 12)]
WEIGHTS = np.array([0.5, 1.0, 2.0])
FULL = [G @ G.T for G in FACTORS]
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
    monkeypatch.setattr(thin_products, "BLOCK_BYTES", 7 * 8 * 12)  # blocks of seven rows
    return ThinProducts(device_there(name), ROOM[room])


@pytest.mark.parametrize("columns", [slice(0, 4), 0], ids=["several", "one"])
def test_products_are_those_of_the_matrices(products, columns):
    vectors = VECTORS[:, columns]
    for G, full in zip(FACTORS, FULL, strict=True):
        projected = products.projected(G, vectors)
        assert_allclose(projected, G.T @ vectors, atol=1e-13)
        assert_allclose(products.spread(G, projected), full @ vectors, atol=1e-12)
        assert_allclose(
            products.squares(G, vectors), (vectors * (full @ vectors)).sum(axis=0), rtol=1e-12
        )
    expected = sum(w * full @ vectors for w, full in zip(WEIGHTS, FULL, strict=True))
    assert_allclose(products.times(FACTORS, WEIGHTS, vectors), expected, atol=1e-12)
    assert products.times([], np.empty(0), vectors).tolist() == np.zeros_like(vectors).tolist()


def test_blocks_are_those_of_the_matrices_and_leave_factors_as_they_are(products):
    points, before = np.array([7, 2, 29]), [G.copy() for G in FACTORS]
    expected = sum(w**2 * full for w, full in zip(WEIGHTS, FULL, strict=True))
    for _ in range(2):
        found = products.block(FACTORS, WEIGHTS, points)
        assert_allclose(found, expected[np.ix_(points, points)], atol=1e-12)
    assert all((old == G).all() for G, old in zip(FACTORS, before, strict=True))


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
    own = np.ascontiguousarray(FACTORS[2])
    products = ThinProducts(device, room=FACTORS[0].nbytes)
    for _ in range(2):
        products.squares(FACTORS[0], VECTORS)
        products.squares(own, VECTORS)
    assert products.taken == FACTORS[0].nbytes + 2 * own.nbytes


def test_operators_and_systems_multiply_on_their_device(device):
    products = ThinProducts(device, 2**20)
    diagonals = np.array([np.diagonal(full) for full in FULL])
    plain = FactoredMatrix(WEIGHTS, FACTORS, diagonals, N, ridge=0.1)
    K = FactoredMatrix(WEIGHTS, FACTORS, diagonals, N, 0.1, products).plus(0.5, plain)
    expected, points = plain.plus(0.5, plain), np.array([3, 1, 20])
    assert_allclose(K @ VECTORS, expected @ VECTORS, atol=1e-12)
    assert_allclose(K.block(points), expected.block(points), atol=1e-12)
    assert_allclose(K.on(points) @ VECTORS[:3], expected.on(points) @ VECTORS[:3], atol=1e-12)
    assert centred_inner(K, K) == pytest.approx(centred_inner(expected, expected), rel=1e-12)
    diagonal, gradient = np.linspace(0.5, 2.0, N), VECTORS[:, 0]
    systems = [ThinSystem(diagonal, WEIGHTS, FACTORS, *own) for own in ([], [products])]
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
    factor, expected = Kept(FACTORS[2]), FULL[2] @ VECTORS
    for _ in range(3):
        assert_allclose(products.times([factor], np.ones(1), VECTORS), expected, atol=1e-12)
    keeps = "kept" in request.node.name or "cuda shared" in request.node.name
    assert factor.asked == (1 if keeps else 3)
    points = np.array([4, 1])
    block = products.block([factor], np.ones(1), points)
    assert_allclose(block, FULL[2][np.ix_(points, points)], atol=1e-12)
