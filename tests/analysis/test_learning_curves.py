"""Learning curves, with intervals by the formula of Nadeau & Bengio written out."""

from __future__ import annotations

import math

import pytest
import scipy

from mkldist.analysis import learning_curve
from tests.analysis.traced import learnt


def test_intervals_are_corrected_for_overlap():
    table = learning_curve(learnt("level", {100: 0.2, 50: 0.3}, spread=0.01))
    assert table["dataset"].tolist() == ["ring", "ring"]
    assert table["n_train"].tolist() == [50, 100]
    assert table["mean"].to_numpy() == pytest.approx([0.3, 0.2])
    for row, n_train in zip(table.itertuples(), (50, 100), strict=True):
        half = 0.01 * math.sqrt(1 / 3 + 50 / n_train) * scipy.stats.t.ppf(0.975, 2)
        assert row.high - row.mean == pytest.approx(half)
        assert row.mean - row.low == pytest.approx(half)


def test_one_size_is_no_curve():
    assert learning_curve(learnt("level", {100: 0.2})).empty
