"""Probabilities and thresholds from decision values: against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import balanced_accuracy_score, f1_score, zero_one_loss

from mkldist.calibration import best_threshold, fit_calibration


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values are its only feature."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def values_and_labels(seed=0, n=120):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    return 0.8 * y + rng.normal(size=n) - 0.5, y


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_are_those_of_scikit_learn(method, weighted):
    values, y = values_and_labels()
    weights = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    other = CalibratedClassifierCV(Given(), method=method, ensemble=False)
    expected = other.fit(values[:, None], y, sample_weight=weights).predict_proba(values[:, None])
    found = fit_calibration(values, y, method, weights)
    np.testing.assert_allclose(found.probabilities(values), expected[:, 1], atol=2e-5)
    beyond = found.probabilities(np.array([-1e9, 1e9]))
    assert np.isfinite(beyond).all()
    assert beyond[0] <= beyond[1]


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize(
    "values", [np.zeros(40), np.full(40, 7e5), -np.r_[np.ones(10), -np.ones(30)]]
)
def test_values_that_say_nothing_give_the_share_of_the_class(values, method):
    y = np.r_[np.ones(10), -np.ones(30)]
    found = fit_calibration(values, y, method).probabilities(values)
    np.testing.assert_allclose(found, 0.25, atol=0.03)


def test_classes_that_are_apart_have_probabilities_within_0_and_1():
    values = np.r_[np.linspace(-2, -1, 20), np.linspace(1, 2, 20)] * 1e4
    found = fit_calibration(values, values).probabilities(values)
    assert (found[:20] < 0.15).all()
    assert (found[20:] > 0.85).all()
    assert ((found > 0) & (found < 1)).all()


SCORES = {
    "error": zero_one_loss,
    "balanced_error": lambda y, own: 1 - balanced_accuracy_score(y, own),
    "f1": lambda y, own: 1 - f1_score(y, own, pos_label=1.0),
}


@pytest.mark.parametrize("metric", SCORES)
@pytest.mark.parametrize("seed", range(3))
def test_no_threshold_does_better(metric, seed):
    values, y = values_and_labels(seed)
    values = np.round(values, 1)  # ties

    def loss(threshold):
        return SCORES[metric](y, np.where(values >= threshold, 1.0, -1.0))

    found = best_threshold(values, y, metric)
    ordered = np.unique(values)
    between = (ordered[1:] + ordered[:-1]) / 2
    others = [ordered[0] - 1.0, *between, ordered[-1] + 1.0, 0.0]
    assert loss(found) == pytest.approx(min(map(loss, others)))
    assert loss(found) <= loss(0.0)


@pytest.mark.parametrize("metric", ["auc", "average_precision", "log_loss", "brier"])
def test_metrics_without_a_threshold_leave_it_at_0(metric):
    values, y = values_and_labels()
    assert best_threshold(values, y, metric) == 0.0
    assert best_threshold(values, np.ones(len(y)), "error") == 0.0


def test_other_methods_are_refused():
    with pytest.raises(ValueError, match="platt"):
        fit_calibration(np.arange(4.0), np.array([-1, 1, -1, 1]), "platt")
