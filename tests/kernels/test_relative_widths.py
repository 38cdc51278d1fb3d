"""Widths in units of the spread of feature subsets, against numpy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler

import mkldist
from mkldist.errors import SpecError
from mkldist.kernels import Gaussian, Laplacian, Matern, Polynomial

X = np.random.default_rng(0).normal(size=(40, 4)) * [1.0, 2.0, 30.0, 0.0] + [0.0, 0.0, 5.0, 3.0]
SPREAD = np.sqrt(X.var(axis=0).sum())


def bank_of(*kernels, points=X):
    return mkldist.KernelBank(points, list(kernels), normalisation="none")


def test_widths_are_multiples_of_the_spread_of_their_features():
    found = bank_of(
        Gaussian(relative_widths=[0.5, 2.0], features=["all", "each"]),
        Laplacian(relative_widths=1.0),
        Matern(relative_widths={"start": 1, "stop": 3, "num": 2}, features="x1"),
        Gaussian(widths=7.0),
    ).kernels
    deviations = np.array([*X.std(axis=0)[:3], 1.0])  # a constant feature has the unit 1
    of_all = [0.5 * SPREAD, 2.0 * SPREAD, deviations[:3].sum(), 7.0]
    expected = [
        *of_all,
        *np.outer(deviations, [0.5, 2.0]).ravel(),
        deviations[1],
        3.0 * deviations[1],
    ]
    np.testing.assert_allclose(found.width, expected, rtol=1e-5)
    multiples = [0.5, 2.0, 1.0, np.nan, *[0.5, 2.0] * 4, 1.0, 3.0]
    np.testing.assert_array_equal(found.relative_width, multiples)
    assert found.name[0] == f"gaussian({found.width[0]:g})[all]"


def test_the_root_of_a_half_is_the_scale_of_a_support_vector_machine():
    scaled = StandardScaler().fit_transform(X[:, :3])
    [width] = bank_of(Gaussian(relative_widths=np.sqrt(0.5)), points=scaled).kernels.width
    assert 1.0 / (2.0 * width**2) == pytest.approx(1.0 / (3 * scaled.var()), rel=1e-5)


def test_sparse_features_have_the_spread_of_dense_ones():
    kernels = Gaussian(relative_widths=[0.5, 2.0], features=["all", "x1"])
    dense, sparse = (bank_of(kernels, points=points).kernels for points in (X, csr_array(X)))
    assert sparse.width.tolist() == dense.width.tolist()


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (Gaussian(), "without widths"),
        (Gaussian(widths=1.0, relative_widths=1.0), "one of them"),
        (Gaussian(relative_widths=-1.0), "relative_widths"),
        ({"function": "chi-squared", "relative_widths": 1.0}, "relative_widths of a chi-squared"),
        ({"function": "polynomial", "degrees": 2, "relative_widths": 1.0}, "degrees, offset alone"),
    ],
)
def test_mistakes_name_the_place(kernel, said):
    with pytest.raises(SpecError, match=rf"^kernels\[0\].*{said}"):
        bank_of(kernel, Polynomial(2))


def test_a_sweep_has_one_list_for_all_splits_by_the_scaling_of_all_rows(tmp_path):
    entry = {"function": "gaussian", "relative_widths": [0.5, 1], "features": ["all", "each"]}
    sweep = {
        "name": "relative",
        "splits": {"train_fraction": 0.6, "repeats": 2},
        "banks": [{"name": "b", "kernels": [entry]}],
        "methods": [{"name": "uniform"}],
    }
    y = np.where(X[:, 0] + X[:, 1] > 0.0, 1, -1)
    tree = mkldist.sweep(sweep, {"made": (X[:, :3], y)}, output=tmp_path / "out", progress=False)
    found = tree["made/uniform"]
    expected = [*np.sqrt(3.0) * np.array([0.5, 1.0]), *[0.5, 1.0] * 3]
    np.testing.assert_allclose(found["width"], expected, rtol=1e-5)
    assert found.relative_width.values.tolist() == [0.5, 1.0] * 4
    assert found.kernel.values[:3].tolist() == [
        "gaussian(0.866025)[all]", "gaussian(1.73205)[all]", "gaussian(0.5)[f0]"
    ]  # fmt: skip
