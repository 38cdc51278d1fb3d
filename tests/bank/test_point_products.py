"""`point_products` by loops and `device_products`, held to products with whole matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mkldist.bank.recomputed as looped
from mkldist.bank import device as bank_device
from mkldist.bank.bank import PassCounter
from mkldist.bank.device import on_device
from mkldist.bank.recomputed import point_products
from mkldist.bank.sources import ArraySource, FeatureSource, SelectedSource
from mkldist.core.devices import Device
from mkldist.errors import GramError
from mkldist.kernels.evaluate import evaluate
from tests.kernels.few_lists import gaussians, listed
from tests.kernels.made_up import DEVICES, device_there, kernels_of

N = 130
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 3))
KERNELS = gaussians([0.5, 1.0, 2.0], [[0, 1, 2], [1]])
GRAMS = evaluate(KERNELS, POINTS, POINTS)
VECTORS = RNG.normal(size=(N, 2))
VECTORS[::3] = 0.0
USED = int(VECTORS.any(axis=1).sum())
SOME = np.array([1, 2, 5])


def known(threads=1, source=None):
    found = point_products(source or FeatureSource(POINTS, KERNELS), PassCounter(), threads)
    assert found is not None
    return found


@pytest.fixture(params=[1, 7, 500])
def rows(request, monkeypatch):
    monkeypatch.setattr(looped, "ROWS", request.param)


def test_products_are_those_with_matrices_and_zeros_cost_nothing(rows):
    found = known()
    assert_allclose(found.products(SOME, VECTORS), GRAMS[SOME] @ VECTORS, atol=1e-12)
    assert found.counter.bytes_computed == 8 * 3 * N * USED
    assert found.counter.threads_cpu_seconds > 0.0


def test_forms_take_half_of_the_values_between_points_that_count():
    found = known()
    expected = np.einsum("ir,mij,jr->mr", VECTORS, GRAMS[SOME], VECTORS)
    assert_allclose(found.forms(SOME, VECTORS), expected, rtol=1e-11)
    assert found.counter.bytes_computed == 8 * 3 * USED * (USED + 1) // 2
    assert_array_equal(found.forms(SOME, 0.0 * VECTORS), np.zeros((3, 2)))


def test_blocks_are_symmetric_sums_of_kernels(rows):
    points, weights = RNG.permutation(N)[:60], np.array([0.5, 2.0, 1.0])
    found = known().block(SOME, weights, points)
    assert_array_equal(found, found.T)
    expected = np.tensordot(weights, GRAMS[SOME], axes=1)[np.ix_(points, points)]
    assert_allclose(found, expected, atol=1e-12)


def test_expansions_are_weighted_sums_of_products(rows):
    weights, at = np.array([0.5, 2.0, 1.0]), np.array([7, 3, 3, N - 1])
    found = known().expansion(SOME, weights, VECTORS, at)
    expected = np.tensordot(weights, GRAMS[SOME] @ VECTORS, axes=1)[at]
    assert_allclose(found, expected, atol=1e-12)


LACKING = np.where(RNG.random((N, 4)) < 0.1, np.nan, RNG.normal(size=(N, 4)))
OF_DEVICES = {
    "gaussians": FeatureSource(POINTS, KERNELS),
    "all functions": FeatureSource(RNG.normal(size=(N, 4)), kernels_of(4)),
    "cosines": FeatureSource(RNG.normal(size=(N, 4)), kernels_of(4), cosine=True),
    "gaps": FeatureSource(LACKING, kernels_of(4)),
    "many features": FeatureSource(RNG.normal(size=(N, 70)) / 8, kernels_of(70)),
}


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("case", OF_DEVICES)
def test_products_on_a_device_are_those_with_matrices(name, case, monkeypatch):
    device_there(name)
    for edge in ("EDGE", "PROCESSOR_EDGE"):  # tiles that cut rows and columns
        monkeypatch.setattr(bank_device, edge, 20)
    plain = OF_DEVICES[case]
    everyone, order = np.arange(N), np.array([4, 0, 3, 5, 1, 2])
    grams = np.stack([plain.between(m, everyone, everyone) for m in order[SOME].tolist()])
    own = known(source=SelectedSource(on_device(plain, name, "device"), order))
    weights, at = np.array([0.5, 2.0, 1.0]), RNG.permutation(N)[:90]
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
    source = FeatureSource(POINTS, KERNELS)
    both = known(source=on_device(source, "array_api_strict", "device")), known(source=source)
    assert type(both[0].passes) is not type(both[1].passes)
    for found in both:
        found.products(SOME, VECTORS)
        found.forms(SOME, VECTORS)
        found.expansion(SOME, np.ones(3), VECTORS, np.arange(50))
        found.block(SOME, np.ones(3), np.arange(50))
        assert found.forms(SOME[:0], VECTORS).shape == (0, 2)
        assert found.products(SOME[:0], VECTORS).shape == (0, N, 2)
    assert both[0].counter.bytes_computed == both[1].counter.bytes_computed


def test_points_are_taken_to_a_device_once(monkeypatch):
    source = on_device(FeatureSource(POINTS, KERNELS), "array_api_strict", "device")
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
    assert [shape for shape in taken if shape[0] == N] == [(N, 3), (N, 1)]


def test_bits_do_not_depend_on_the_threads(monkeypatch):
    monkeypatch.setattr(looped, "ROWS", 9)
    one, more = known(1), known(3)
    assert_array_equal(one.products(SOME, VECTORS), more.products(SOME, VECTORS))
    assert_array_equal(one.forms(SOME, VECTORS), more.forms(SOME, VECTORS))


def test_selections_are_known_and_what_the_loops_do_not_know_is_not():
    part = known(source=SelectedSource(FeatureSource(POINTS, KERNELS), np.array([4, 0])))
    expected = GRAMS[[4, 0]] @ VECTORS
    assert_allclose(part.products(np.array([0, 1]), VECTORS), expected, atol=1e-12)
    lacking = POINTS.copy()
    lacking[0, 1] = np.nan
    cosines = FeatureSource(POINTS, listed(["linear"], [[0, 1]], [1.0]), cosine=True)
    for source in (ArraySource(GRAMS), FeatureSource(lacking, KERNELS), cosines):
        assert point_products(source, PassCounter(), 1) is None


def test_a_kernel_that_is_not_finite_is_named():
    kernels = listed(["linear", "polynomial"], [[0, 1]], [1.0, 40.0])
    found = known(source=FeatureSource(1e9 * POINTS, kernels))
    with pytest.raises(GramError, match="polynomial"):
        found.products(np.array([0, 1]), VECTORS)
    with pytest.raises(GramError, match="polynomial"):
        found.expansion(np.array([0, 1]), np.ones(2), VECTORS, np.arange(N))
    with pytest.raises(GramError, match="polynomial"):
        found.forms(np.array([0, 1]), VECTORS)


def test_a_kernel_that_is_not_finite_on_a_device_is_named():
    kernels = listed(["linear", "polynomial"], [[0, 1]], [1.0, 40.0])
    source = on_device(FeatureSource(1e9 * POINTS, kernels), "array_api_strict", "device")
    found, both = known(source=source), np.array([0, 1])
    for ask in (
        lambda: found.products(both, VECTORS),
        lambda: found.expansion(both, np.ones(2), VECTORS, np.arange(N)),
        lambda: found.forms(both, VECTORS),
    ):
        with pytest.raises(GramError, match="polynomial"):
            ask()
