"""The kernels that estimators, banks and sweeps have by default."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from mkldist import KernelBank, MKLClassifier, OneClassMKL


def points(d, n=20):
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.mark.parametrize(("d", "second"), [(1, "additive"), (250, "additive"), (251, "linear")])
def test_it_is_modest(d, second):
    functions = KernelBank(points(d), "default").kernels["function"].tolist()
    n = {"additive": 3, "linear": 1}[second]
    assert functions == ["gaussian"] * 4 + [second] * n


@pytest.mark.parametrize("d", [2, 30, 300])
def test_kernels_on_all_features_are_neither_constant_nor_diagonal(d):
    X = points(d, 80) * 3.0
    table = KernelBank(X, "default").kernels
    widths = table["width"][table["function"] == "gaussian"]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(80, 1)]
    typical = np.exp(-np.median(squares) / (2 * widths.to_numpy() ** 2))
    assert typical.min() > 1e-3
    assert typical.max() < 0.98
    assert ((typical > 0.1) & (typical < 0.9)).sum() >= 2


def test_each_view_has_its_own_and_features_of_none_make_kernels_on_all():
    X = points(5)
    both = KernelBank(X, "default", views={"a": [0, 1], "b": [2, 3, 4]}).kernels
    assert both.groupby("features").size().to_dict() == {"a": 7, "b": 7}
    some = KernelBank(X, "default", views={"a": [0, 1]}).kernels
    assert some.groupby("features").size().to_dict() == {"a": 7, "all": 7}


def test_sparse_features_have_linear_kernels_beside_gaussians():
    X = scipy.sparse.csr_array(np.abs(points(6)))
    assert KernelBank(X, "default").kernels["function"].tolist() == ["gaussian"] * 4 + ["linear"]


def test_estimators_have_those_of_banks_but_for_one_class():
    X, y = points(3, 30), np.arange(30) % 2
    table = MKLClassifier(scale=None).fit(X, y).kernel_weights_
    assert table["name"].tolist() == KernelBank(X, "default").kernels["name"].tolist()
    assert set(OneClassMKL().fit(X).kernel_weights_["function"]) == {"gaussian"}
