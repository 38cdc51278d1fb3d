"""Kernels of texts between new points and support points, against scikit-learn's counts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from mkldist.fit import decision as text_support
from mkldist.fit.decision import Expansion, TextSupport
from mkldist.fit.model_file import kernel_list

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
def test_values_are_counts_of_substrings_a_few_rows_at_a_time(cosine, monkeypatch):
    monkeypatch.setattr(text_support, "GROUP_BYTES", 8 * 4 * 2)  # two rows
    found = [np.full((5, 4), np.nan), np.full((5, 4), np.nan)]
    support = TextSupport(KERNELS, TEXTS[5:])
    for rows, m, values in support.values(TEXTS[:5], cosine=cosine):
        assert rows.stop - rows.start <= 2
        found[m][rows] = values
    np.testing.assert_allclose(found, explicit(TEXTS[:5], TEXTS[5:], cosine=cosine))


def test_columns_that_no_kernel_uses_may_be_dropped():
    whole = TextSupport(KERNELS, TEXTS[5:])
    part = whole.on_columns(np.array([0, 2]))
    assert part.points.shape == (4, 2)
    chosen = part.select(np.array([1]), np.array([3, 0]))
    [(_, _, values)] = chosen.values(TEXTS[:5, [0, 2]], cosine=False)
    expected = explicit(TEXTS[:5], TEXTS[[8, 5]], cosine=False)[1]
    np.testing.assert_array_equal(values, expected)


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
