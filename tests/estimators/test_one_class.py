"""OneClassMKL: outliers, and a strength that means the same at any number of rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from mkldist import OneClassMKL
from mkldist.kernels import Linear

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("d", [2, 10])
def test_about_a_tenth_of_the_training_rows_is_outside(n, d):
    X = RNG.normal(size=(n, d))
    assert 0.02 < np.mean(OneClassMKL().fit_predict(X) == -1) < 0.25


def test_rows_from_elsewhere_are_outside():
    X = RNG.normal(size=(150, 3))
    new, far = RNG.normal(size=(80, 3)), RNG.normal([5, 0, -5], size=(80, 3))
    model = OneClassMKL().fit(X)
    values = model.decision_function(np.vstack([new, far]))
    assert roc_auc_score(np.repeat([1, 0], 80), values) > 0.95
    assert (model.predict(far) == -1).mean() > 0.9
    np.testing.assert_allclose(model.score_samples(far) - model.offset_, values[80:])


def test_rows_repeated_change_nothing():
    X = RNG.normal(size=(60, 2))
    one = OneClassMKL(tol=1e-7).fit(X)
    two = OneClassMKL(tol=1e-7).fit(np.repeat(X, 2, axis=0))
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-5)
    scale = np.abs(one.score_samples(X)).max()
    np.testing.assert_allclose(two.score_samples(X), one.score_samples(X), atol=1e-3 * scale)


def test_a_larger_alpha_leaves_more_outside():
    X = RNG.normal(size=(120, 2))
    shares = [np.mean(OneClassMKL(C=C).fit_predict(X) == -1) for C in (1000, 100, 10)]
    assert shares == sorted(shares)
    assert shares[0] < shares[-1]


@pytest.mark.parametrize(
    ("X", "settings", "said"),
    [
        (np.zeros((20, 2)), {}, "20 training rows, all outliers: the kernels are zero on them"),
        (RNG.normal(size=(20, 2)), {"kernels": [Linear()]}, "add up to zero as centred ones do"),
        (RNG.normal(size=(20, 2)), {"normalisation": ["centre", "trace"]}, "use kernels such as"),
        (RNG.normal(size=(20, 2)), {"C": 1e-3}, r"C=0.001 is too small\. Raise C"),
    ],
)
def test_a_description_that_leaves_all_rows_outside_is_told(X, settings, said):
    model = OneClassMKL(**settings)
    with pytest.warns(UserWarning, match=said):
        model.fit(X)
    assert (model.predict(X) == -1).all()
