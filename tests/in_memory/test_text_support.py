"""Kernels of texts between new points and support points, against scikit-learn's counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from mkldist.fit.decision import Expansion, TextSupport
from mkldist.fit.model import kernel_list

KERNELS = kernel_list(
    [
        {"function": "spectrum", "parameter": 2.0, "offset": 0.0, "features": [2], "label": None},
        {"function": "spectrum", "parameter": 1.0, "offset": 0.0, "features": [0], "label": None},
    ]
)
DRAW = np.random.default_rng(0)
TEXTS = np.array(
    [["".join(DRAW.choice(list("abc"), 6)) for _ in range(3)] for _ in range(9)], dtype=object
)
TEXTS[[1, 7], 0] = ""
TEXTS[8, 1] = ""  # which no kernel uses


def explicit(rows: np.ndarray, cols: np.ndarray, *, cosine: bool) -> list[np.ndarray]:
    """Return the two kernels between texts by counts of substrings."""
    found = []
    for length, column in ((2, 2), (1, 0)):
        counter = CountVectorizer(analyzer="char", ngram_range=(length, length)).fit(
            TEXTS[:, column]
        )
        left, right = (counter.transform(side[:, column]) for side in (rows, cols))
        if cosine:
            left, right = normalize(left), normalize(right)
        found.append((left @ right.T).toarray())
    return found


@pytest.mark.parametrize("cosine", [False, True])
def test_values_are_counts_of_substrings(cosine):
    support, coefficients = TextSupport(KERNELS, TEXTS[5:]), DRAW.normal(size=(4, 2))
    no_features, points = KERNELS.select([]), np.zeros((9, 0))
    function = Expansion(
        no_features, np.arange(2), cosine, points[5:], np.array([2.0, 0.5]), coefficients,
        np.zeros(2), texts=support,
    )  # fmt: skip
    first, second = explicit(TEXTS[:5], TEXTS[5:], cosine=cosine)
    expected = np.stack([2.0 * first @ coefficients, 0.5 * second @ coefficients], axis=1)
    found = function.contributions(["a", "b"], points[:5], texts=TEXTS[:5])
    np.testing.assert_allclose(found[:, :2], expected)
    np.testing.assert_allclose(function.values(points[:5], texts=TEXTS[:5]), expected.sum(axis=1))
    part = replace(function, texts=support.on_columns(np.array([0, 2])))
    assert part.texts.points.shape == (4, 2)
    again = part.contributions(["a", "b"], points[:5], texts=TEXTS[:5, [0, 2]])
    np.testing.assert_array_equal(found, again)


def test_kernels_of_texts_stand_between_others_in_a_decision_function():
    features = kernel_list(
        [{"function": "linear", "parameter": 1.0, "offset": 0.0, "features": [0], "label": None}]
    )
    points = np.arange(4.0)[:, None]
    function = Expansion(
        features,
        np.arange(3),
        False,
        points,
        np.array([2.0, 0.5, 3.0]),
        np.array([[1.0], [-1.0], [0.5], [2.0]]),
        np.array([0.25]),
        texts=TextSupport(KERNELS, TEXTS[5:]),
    )
    x = np.array([[1.0], [-2.0], [0.0], [3.0], [0.5]])
    found = function.values(x, texts=TEXTS[:5])
    first, second = explicit(TEXTS[:5], TEXTS[5:], cosine=False)
    combined = 2.0 * x @ points.T + 0.5 * first + 3.0 * second
    np.testing.assert_allclose(found, combined @ function.coefficients + 0.25)
    with pytest.raises(ValueError, match="kernels of texts need texts"):
        function.values(x)
