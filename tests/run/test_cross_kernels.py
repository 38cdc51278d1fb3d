"""Decision values at test points of `bank_inputs`, against sums of kernels written out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.bank_kernels import BankKernels
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.view import make_views
from mkldist.data.dataset import Dataset, Split
from mkldist.fit.decision import NewPoints
from mkldist.fit.problem import BankInputs
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


def points_of(inputs: BankInputs, cached_bytes: int = 0) -> NewPoints:
    bank = RecomputedBank(inputs.source())
    [view] = make_views(bank, [SPLIT.train], ())
    return inputs.new_points(view, SPLIT.test, SPLIT.train, cached_bytes)


@pytest.mark.parametrize("cached_bytes", [0, 2**20])
@pytest.mark.parametrize("inputs", [on_features, on_grams])
def test_values_are_weighted_sums_of_kernels(inputs, cached_bytes):
    points = points_of(inputs(), cached_bytes)
    weights, bias = np.array([-1.0, 0.0, 4.0, 0.25]), 0.5
    used = np.flatnonzero(weights)
    for coefficients in (RNG.normal(size=4), RNG.normal(size=(3, 4)), np.array([0.5, 0, -2, 1])):
        found = points.decision_values(weights, coefficients, bias)
        each = np.broadcast_to(coefficients, (3, 4))
        by_hand = np.einsum("s,sti,si->t", weights[used], kernels_by_hand()[used], each) + bias
        np.testing.assert_allclose(found, by_hand, rtol=1e-12)


def test_precomputed_kernels_are_scaled_to_cosines_only_if_asked_for():
    points = points_of(on_grams(cosine=False))
    found = points.decision_values(np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4), 0.0)
    np.testing.assert_allclose(found, kernels_by_hand(cosine=False)[3].sum(axis=1), rtol=1e-12)
