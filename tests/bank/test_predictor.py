"""Decision functions in terms of stored kernels, against kernel values centred by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mkldist.bank.bank import MemoryBank
from mkldist.bank.view import make_views
from mkldist.fit.decision import BankFunctions
from tests.bank.bank_suite import random_grams
from tests.bank.test_view import CHAINS, N_KERNELS, N_POINTS


@pytest.fixture(scope="module")
def grams() -> np.ndarray:
    return random_grams(N_KERNELS, N_POINTS)


@pytest.fixture
def bank(grams: np.ndarray) -> MemoryBank:
    return MemoryBank.from_grams(grams)


@pytest.mark.parametrize("chain", CHAINS, ids="-".join)
def test_functions_of_a_bank_are_those_of_its_view(
    bank: MemoryBank, grams: np.ndarray, chain: tuple[str, ...]
) -> None:
    """Against test rows that are centred with the training means, as in kernel PCA."""
    rng = np.random.default_rng(5)
    train = rng.permutation(N_POINTS)[:15]
    test = np.setdiff1d(np.arange(N_POINTS), train)
    [view] = make_views(bank, [train], chain)
    weights = np.where(rng.random(N_KERNELS) < 0.5, 0.0, rng.random(N_KERNELS))
    coefficients = rng.standard_normal(15)

    inner, cross = grams[:, train[:, None], train], grams[:, test[:, None], train]
    if "centre" in chain:
        cross = (
            cross
            - cross.mean(axis=2, keepdims=True)
            - inner.mean(axis=1, keepdims=True)
            + inner.mean(axis=(1, 2), keepdims=True)
        )
    expected = np.einsum("m,mti,i->t", weights * view.scale, cross, coefficients) + 0.3

    raw = BankFunctions.of(view, weights, coefficients, 0.3)
    assert_array_equal(raw.kernels, np.flatnonzero(weights))
    found = raw.bias + np.einsum(
        "s,sti,ik->tk", raw.weights, grams[raw.kernels][:, test[:, None], train], raw.coefficients
    )
    assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-12)

    two = np.stack([coefficients, -2.0 * coefficients], axis=1)
    several = BankFunctions.of(view, weights, two, np.array([0.3, 1.0]))
    assert_allclose(several.coefficients, raw.coefficients * [1.0, -2.0], atol=1e-12)
    assert_allclose(several.bias, [raw.bias[0], 1.0 - 2.0 * (raw.bias[0] - 0.3)], atol=1e-12)


@pytest.mark.parametrize("chain", [(), ("centre",), ("trace", "centre")])
def test_functions_of_kernels_with_coefficients_of_their_own(
    bank: MemoryBank, grams: np.ndarray, chain: tuple[str, ...]
) -> None:
    """Each is the sum of the functions of the single kernels."""
    rng = np.random.default_rng(6)
    train = rng.permutation(N_POINTS)[:15]
    [view] = make_views(bank, [train], chain)
    weights = np.where(rng.random(N_KERNELS) < 0.5, 0.0, rng.random(N_KERNELS))
    kept = np.flatnonzero(weights)
    own = rng.standard_normal((len(kept), 15))
    raw = BankFunctions.of(view, weights, own, 0.3)
    found = np.full(N_POINTS, raw.bias)
    for s, kernel in enumerate(raw.kernels):
        found += raw.weights[s] * (grams[kernel][:, train] @ raw.coefficients[s, :, 0])
    expected = np.full(N_POINTS, 0.3)
    for kernel, coefficients in zip(kept, own, strict=True):
        alone = np.where(np.arange(N_KERNELS) == kernel, weights, 0.0)
        one = BankFunctions.of(view, alone, coefficients, 0.0)
        image = grams[kernel][:, train] @ one.coefficients[:, 0]
        expected += one.weights[0] * image + one.bias
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
