"""Decision values at test points of `bank_inputs`, against sums of kernels written out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.data.dataset import Dataset, Split
from mkldist.fit import decision as cross_values
from mkldist.fit import score as cross_kernels
from mkldist.fit.decision import RawPredictor
from mkldist.fit.problem import BankInputs, TrainingView
from mkldist.fit.score import CrossKernels
from mkldist.gram.bank_kernels import BankKernels
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import PreprocessingSpec

WIDTHS = (0.5, 1.0, 2.0, 4.0)
SPLIT = Split(train=np.array([5, 1, 7, 2]), test=np.array([0, 9, 4]))
RNG = np.random.default_rng(3)
X = RNG.normal(size=(10, 2))
GRAMS = np.array([(k + 1.0) * rbf_kernel(X, gamma=1 / (2 * w**2)) for k, w in enumerate(WIDTHS)])


def on_features() -> BankInputs:
    data = Dataset("d", X, np.ones(10), ("no", "yes"), ("a", "b"))
    entry = {"function": "gaussian", "widths": list(WIDTHS)}
    kernels = BankKernels.of(BankSpec.model_validate({"kernels": [entry]}), data, seed=0)
    return BankInputs(data, (SPLIT,), None, X, kernels, (), PreprocessingSpec(), seed=0)


def on_grams(*, cosine: bool = True) -> BankInputs:
    data = Dataset("d", None, np.ones(10), ("no", "yes"), (), grams=GRAMS)
    steps = ("cosine",) if cosine else ()
    return BankInputs(data, (SPLIT,), None, None, None, steps, PreprocessingSpec(), seed=0)


def kernels_by_hand(*, cosine: bool = True) -> np.ndarray:
    kernels = np.array([K / K[0, 0] for K in GRAMS]) if cosine else GRAMS
    return kernels[:, SPLIT.test[:, None], SPLIT.train]


@pytest.mark.parametrize("group_bytes", [1, 2**20])
@pytest.mark.parametrize("inputs", [on_features, on_grams])
def test_values_are_weighted_sums_of_kernels(monkeypatch, inputs, group_bytes):
    monkeypatch.setattr(cross_values, "GROUP_BYTES", group_bytes)
    part = CrossKernels(inputs(), TrainingView(0))
    kernels, weights, bias = np.array([3, 0, 2]), np.array([0.25, -1.0, 4.0]), 0.5
    for coefficients in (RNG.normal(size=4), RNG.normal(size=(3, 4))):
        found = part.decision_values(RawPredictor(kernels, weights, coefficients, bias))
        each = np.broadcast_to(coefficients, (3, 4))
        by_hand = np.einsum("s,sti,si->t", weights, kernels_by_hand()[kernels], each) + bias
        np.testing.assert_allclose(found, by_hand, rtol=1e-12)


def test_precomputed_kernels_are_scaled_to_cosines_only_if_asked_for():
    part = CrossKernels(on_grams(cosine=False), TrainingView(0))
    found = part.decision_values(RawPredictor(np.array([3]), np.ones(1), np.ones(4), 0.0))
    np.testing.assert_allclose(found, kernels_by_hand(cosine=False)[3].sum(axis=1), rtol=1e-12)


def test_a_function_without_kernels_is_its_bias():
    none = RawPredictor(np.zeros(0, dtype=np.intp), np.zeros(0), np.ones(4), -2.0)
    assert CrossKernels(on_features(), TrainingView(0)).decision_values(none).tolist() == [-2.0] * 3


def test_multiples_of_the_same_weights_share_one_combination(monkeypatch):
    combined, real = [], cross_values.combined

    def combine(values, kernels, weights, shape):
        combined.append(kernels)
        return real(values, kernels, weights, shape)

    monkeypatch.setattr(cross_kernels, "combined", combine)
    part, kernels = CrossKernels(on_features(), TrainingView(0)), np.array([0, 1])
    values = [
        part.decision_values(RawPredictor(kernels, factor * np.ones(2), np.ones(4), 0.0))
        for factor in (1.0, 8.0)
    ]
    assert len(combined) == 1
    np.testing.assert_allclose(values[1], 8.0 * values[0])
    part.decision_values(RawPredictor(kernels, np.array([1.0, 2.0]), np.ones(4), 0.0))
    assert len(combined) == 2


@pytest.mark.parametrize("inputs", [on_features, on_grams])
def test_a_combination_that_is_too_large_is_not_made(monkeypatch, inputs):
    kernels, weights = np.array([3, 0, 2]), np.array([0.25, -1.0, 4.0])
    coefficients = np.array([0.5, 0.0, -2.0, 1.0])  # the second training row is not needed
    monkeypatch.setattr(cross_kernels, "LARGEST_BYTES", 8 * 3 * 4 - 1)
    monkeypatch.setattr(cross_kernels, "BLOCK_BYTES", 8 * 3 * 2)
    seen = []

    def spied(values, predictor, shape):
        def counted(kernels, support):
            for of_kernel in values(kernels, support):
                seen.append(of_kernel.shape)
                yield of_kernel

        return cross_values.sum_of_expansions(counted, predictor, shape)

    monkeypatch.setattr(cross_kernels, "sum_of_expansions", spied)
    part = CrossKernels(inputs(), TrainingView(0))
    found = part.decision_values(RawPredictor(kernels, weights, coefficients, 0.5))
    by_hand = np.einsum("s,sti,i->t", weights, kernels_by_hand()[kernels], coefficients) + 0.5
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)
    assert seen == 3 * [(2, 3)] + 3 * [(1, 3)]
    assert part.n_bytes == 0
