"""The majority class against scikit-learn's dummy classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from mkldist.methods.majority import METHOD
from tests.methods import plain_bank


@pytest.mark.parametrize("positives", [3, 5, 8])
def test_majority_predicts_what_the_dummy_classifier_does(positives):
    y = np.where(np.arange(10) < positives, 1.0, -1.0)
    grams = np.ones((2, 10, 10))
    solution = plain_bank.run(
        METHOD.solve(plain_bank.problem(grams, y), METHOD.params(C=2.0)), grams
    )
    dummy = DummyClassifier(strategy="most_frequent").fit(np.zeros((10, 1)), y)
    if positives != 5:
        assert np.sign(solution.bias) == dummy.predict(np.zeros((1, 1)))[0]
    assert solution.gap == 0.0
    assert solution.objective == 2 * 2.0 * min(positives, 10 - positives)
    assert solution.dual_variables @ y == pytest.approx(0)
    assert solution.dual_variables.sum() == pytest.approx(solution.dual_objective)
    assert solution.dual_variables.max() <= 2.0 + 1e-12
