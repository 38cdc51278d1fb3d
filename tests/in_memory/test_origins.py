"""Origins, `feature_origin` too: names of kernels, and their values at new points, by numpy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mkldist.errors import GramError
from mkldist.fit.bank import FeatureOrigin, GramOrigin, bank_spec, given_names, kernels_on
from mkldist.fit.inputs import Features
from mkldist.gram.bank import MemoryBank
from mkldist.gram.view import BankView

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(9, 2)), columns=["age", "bmi"])
ENTRIES = [
    {"function": "gaussian", "widths": [0.5, 2], "features": ["all", "bmi"]},
    {"function": "polynomial", "degrees": 3, "offset": 2.0},
    {"function": "linear", "features": "age"},
    {"function": "laplacian-rbf", "widths": 4, "features": "age"},
]


def on_features(*, cosine=False):
    features = Features.of(FRAME[:6])
    kernels, _ = kernels_on(features, bank_spec(ENTRIES), {}, 0, {})
    return FeatureOrigin(features, kernels.of_features, cosine)


def test_the_table_describes_every_kernel():
    table = on_features().table()
    both, nan = ("age", "bmi"), np.nan
    expected = pd.DataFrame(
        [
            ("gaussian", 0.5, nan, nan, both, "gaussian(0.5)[all]"),
            ("gaussian", 2.0, nan, nan, both, "gaussian(2)[all]"),
            ("polynomial", nan, 3.0, 2.0, both, "polynomial(3, offset=2)[all]"),
            ("gaussian", 0.5, nan, nan, ("bmi",), "gaussian(0.5)[bmi]"),
            ("gaussian", 2.0, nan, nan, ("bmi",), "gaussian(2)[bmi]"),
            ("linear", nan, nan, nan, ("age",), "linear[age]"),
            ("laplacian-rbf", 4.0, nan, nan, ("age",), "laplacian-rbf(4)[age]"),
        ],
        columns=["function", "width", "degree", "offset", "features", "name"],
    )
    assert set(map(tuple, table.astype(str).to_numpy())) == set(
        map(tuple, expected.astype(str).to_numpy())
    )


def test_part_of_the_kernels_keep_their_descriptions():
    whole, order = on_features(), np.array([4, 0, 6])
    part, table = whole.select(order).table(), whole.table()
    columns = ["function", "width", "degree", "features"]
    pd.testing.assert_frame_equal(part[columns], table[columns].iloc[order].reset_index(drop=True))


def view_of(n_kernels):
    return BankView.whole(MemoryBank.from_grams(np.zeros((n_kernels, 6, 6))))


def values_at(points, kernel):
    one = np.zeros(points.view.n_kernels)
    one[kernel] = 1.0
    return np.array([points.decision_values(one, e, 0.0) for e in np.eye(6)]).T


def test_kernels_at_new_points_are_their_formulas():
    origin, new, train = on_features(), FRAME.to_numpy()[6:], FRAME.to_numpy()[:6]
    points = origin.at(FRAME[6:], view_of(7))
    name = origin.table().name.tolist()
    squares = ((new[:, None] - train) ** 2).sum(axis=2)
    found = values_at(points, name.index("gaussian(2)[all]"))
    np.testing.assert_allclose(found, np.exp(-squares / 8), rtol=1e-12)
    found = values_at(points, name.index("polynomial(3, offset=2)[all]"))
    np.testing.assert_allclose(found, (2 + new @ train.T) ** 3, rtol=1e-12)
    found = values_at(points, name.index("laplacian-rbf(4)[age]"))
    np.testing.assert_allclose(found, np.exp(-abs(new[:, None, 0] - train[:, 0]) / 4), rtol=1e-12)


def test_cosines_at_new_points_have_the_lengths_of_both():
    origin, new, train = on_features(cosine=True), FRAME.to_numpy()[6:], FRAME.to_numpy()[:6]
    kernel = origin.table().name.tolist().index("polynomial(3, offset=2)[all]")
    lengths = [np.sqrt((2 + (x**2).sum(axis=1)) ** 3) for x in (new, train)]
    expected = (2 + new @ train.T) ** 3 / np.outer(*lengths)
    np.testing.assert_allclose(values_at(origin.at(FRAME[6:], view_of(7)), kernel), expected)


def test_given_values_are_read_kernel_by_kernel():
    cross = np.random.default_rng(1).normal(size=(3, 4, 6)).astype(np.float32)
    origin = GramOrigin(6, ("a", "b", "c"))
    np.testing.assert_array_equal(values_at(origin.at(cross, view_of(3)), 1), cross[1])
    np.testing.assert_array_equal(values_at(origin.at(cross.tolist(), view_of(3)), 2), cross[2])
    part = origin.select(np.array([2, 0]))
    assert part.table().name.tolist() == ["c", "a"]
    with pytest.raises(GramError, match=r"X_new: found shape \(3, 4, 6\); .* \(2, n_new, 6\)"):
        part.at(cross, view_of(2))


def test_matrices_have_names():
    assert given_names(None, 2) == ("gram[0]", "gram[1]")
    assert given_names([1, "b"], 2) == ("1", "b")
    with pytest.raises(
        GramError, match="names: found 1 name for 2 matrices; expected one a matrix"
    ):
        given_names(["a"], 2)
