"""Kernels of sparse points, against the same points made dense, which they are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, random_array

from mkldist.kernel_functions.sparse_points import is_sparse, squared_lengths
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec

D = 50


def sparse_kernels() -> KernelList:
    features: list[Any] = ["all", "f3", "some", {"count": 3}]
    entries = [
        {"function": "gaussian", "widths": [0.5, 2.0], "features": features},
        {"function": "polynomial", "degrees": [1, 3], "features": features},
        {"function": "linear", "features": features},
    ]
    names = tuple(f"f{j}" for j in range(D))
    spec = BankSpec.model_validate({"kernels": entries})
    return kernel_list(spec, D, names, {"some": tuple(range(0, D, 7))}, 0)


def sparse_points(n: int, seed: int) -> csr_array:
    return csr_array(random_array((n, D), density=0.1, rng=np.random.default_rng(seed)))


@pytest.mark.parametrize("cosine", [False, True])
def test_kernels_are_those_of_dense_points(cosine):
    kernels, points, others = sparse_kernels(), sparse_points(20, 0), sparse_points(9, 1)
    for left, right in ((points, points), (points, others)):
        expected = evaluate(
            kernels,
            left.toarray(),
            right.toarray(),
            cosine=cosine,
            symmetric=left is right,
        )
        found = evaluate(kernels, left, right, cosine=cosine)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    square = evaluate(kernels, points, points, cosine=cosine)
    assert_array_equal(square, square.swapaxes(1, 2))


def test_points_are_never_made_dense(monkeypatch):
    points = sparse_points(20, 0)
    made: list[tuple[int, ...]] = []
    plain = csr_array.toarray

    def toarray(self: csr_array, *args: Any, **kwargs: Any) -> np.ndarray:
        made.append(self.shape)
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(csr_array, "toarray", toarray)
    evaluate(sparse_kernels(), points, points)
    assert set(made) == {(20, 20)}


def test_lengths_and_kinds():
    points = sparse_points(5, 2)
    assert_allclose(squared_lengths(points), (points.toarray() ** 2).sum(axis=1), rtol=1e-14)
    assert_allclose(squared_lengths(points.toarray()), squared_lengths(points), rtol=1e-14)
    assert is_sparse(points)
    assert not is_sparse(points.toarray())
