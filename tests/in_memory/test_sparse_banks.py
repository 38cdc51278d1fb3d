"""`given_features` that are sparse: banks of them, against banks of dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csr_array, csr_matrix, random_array

import mkldist
from mkldist.errors import DataError, SpecError
from mkldist.fit.bank import KernelBank
from mkldist.fit.inputs import Features
from tests.variants import quick

POINTS = csr_array(random_array((70, 30), density=0.2, rng=np.random.default_rng(1)))
TRAIN, NEW = POINTS[:50], POINTS[50:]
Y = np.where(TRAIN.sum(axis=1) > np.median(TRAIN.sum(axis=1)), 1.0, -1.0)
KERNELS = [
    mkldist.kernels.Gaussian([0.5, 2.0], features=["all", "x3"]),
    mkldist.kernels.Polynomial(2),
    mkldist.kernels.Linear(features="half"),
]
GROUPS = {"half": list(range(15))}


def bank_of(points: Any, **settings: Any) -> KernelBank:
    return KernelBank(points, KERNELS, groups=GROUPS, **settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["memory", pytest.param("recompute", marks=pytest.mark.slow), "stream"]
)
@pytest.mark.parametrize("normalisation", quick(["cosine", "trace", ["centre", "trace"]]))
def test_a_bank_of_sparse_points_is_that_of_dense_ones(backend, normalisation):
    dense = bank_of(TRAIN.toarray(), normalisation=normalisation)
    with bank_of(TRAIN, normalisation=normalisation, backend=backend) as bank:
        assert bank.kernels.equals(dense.kernels)
        assert_allclose(bank.view.scale, dense.view.scale, rtol=1e-9)
        solution = mkldist.solve("level", bank, Y, C=5.0, tol=1e-6)
        assert solution.objective == pytest.approx(
            mkldist.solve("level", dense, Y, C=5.0, tol=1e-6).objective, rel=1e-5
        )
        expected = solution.decision_function(dense.on(NEW.toarray()))
        for new in (NEW, NEW.toarray(), csr_matrix(NEW), coo_array(NEW)):
            found = solution.decision_function(bank.on(new))
            assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        apart = bank.expansion(solution)
        assert_allclose(apart.values(NEW)[:, 0], expected, rtol=1e-8, atol=1e-10)
        shares = apart.contributions(["all"] * apart.n_kernels, NEW).sum(axis=1)
        assert_allclose(shares[:, 0], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: bank_of(TRAIN.toarray()).on(NEW), DataError,
         "X_new: found sparse features; expected dense ones, as the bank was made of. Call X_new"),
        (lambda: bank_of(TRAIN).on(NEW[:, :4]), DataError, "X_new: found 4 columns; expected 30"),
        (lambda: bank_of(csr_array([[np.nan, 1.0]])), DataError, "X: found 1 value missing or inf"),
        (lambda: bank_of(csr_array((0, 3))), DataError, r"X: found a sparse array of float64, sha"),
        (lambda: Features.of({"a": TRAIN}), DataError, r"X\['a'\]: found sparse features; exp"),
        (lambda: KernelBank(TRAIN, [mkldist.kernels.Laplacian(1.0)]), SpecError,
         "a laplacian-rbf kernel of sparse features, dense 11.72 kiB; expected gaussian"),
    ],
)  # fmt: skip
def test_mistakes_are_told(make, error, said):
    with pytest.raises(error, match=said):
        make()
