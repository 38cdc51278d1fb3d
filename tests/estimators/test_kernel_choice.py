"""The kernels that estimators have by default."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist import KernelBank
from mkldist.fit.estimators import default_kernels


@pytest.mark.parametrize(("d", "expected"), [(1, 6), (3, 8), (100, 105), (101, 5)])
def test_it_is_modest(d, expected):
    X = np.random.default_rng(0).normal(size=(20, d))
    assert len(KernelBank(X, default_kernels(d))) == expected


@pytest.mark.parametrize("d", [2, 30, 300])
def test_kernels_on_all_features_are_neither_constant_nor_diagonal(d):
    X = np.random.default_rng(0).normal(size=(80, d))
    table = KernelBank(X, default_kernels(d)).kernels
    widths = table["width"][table["features"] == "all"].dropna()
    squares = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(80, 1)]
    typical = np.exp(-np.median(squares) / (2 * widths.to_numpy() ** 2))
    assert typical.min() > 1e-8
    assert typical.max() < 0.95
    assert ((typical > 0.1) & (typical < 0.9)).sum() >= 2
