"""Imputation and scaling of features, and scaling of targets, against scikit-learn and by hand."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mkldist.data import checks
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import (
    TargetScale,
    filled,
    fitted_preprocessing,
    preprocessed,
    target_scale,
)
from mkldist.spec.datasets import PreprocessingSpec
from tests.data.mistakes import mistake

X = np.random.default_rng(0).normal(3, 2, (20, 4))
SPLIT = Split(np.arange(3, 14), np.array([0, 1, 2, 14, 15, 16]))
ORACLES = {"zscore": StandardScaler(), "minmax": MinMaxScaler((-1, 1))}


@pytest.fixture(autouse=True, scope="module", params=[None, 100], ids=["a block", "small blocks"])
def block_bytes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything holds for data of one block, and for rows that are read a few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param is not None:
            patch.setattr(checks, "BLOCK_BYTES", request.param)
        yield


def scaled(spec: PreprocessingSpec, x: np.ndarray, split: Split | None = None) -> np.ndarray:
    return preprocessed(spec, Dataset("t", x, np.ones(len(x)), None), split)


def spec(**options: Any) -> PreprocessingSpec:
    return PreprocessingSpec(**options)


@pytest.mark.parametrize("scale", ORACLES)
@pytest.mark.parametrize("fit", ["train", "all"])
def test_agrees_with_scikit_learn(scale, fit):
    fitted = X[SPLIT.train] if fit == "train" else X
    expected = ORACLES[scale].fit(fitted).transform(X)
    np.testing.assert_allclose(scaled(spec(scale=scale, fit=fit), X, SPLIT), expected, atol=1e-13)


@pytest.mark.parametrize("impute", ["median", "mean", "most_frequent"])
@pytest.mark.parametrize("fit", ["train", "all"])
def test_imputation_and_scaling_are_fitted_on_the_same_rows(impute, fit):
    x = np.round(np.where(X > 4, np.nan, X), 1)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    dataset = Dataset("t", x, y, ("no", "yes"), tuple("abcd"), impute=impute)
    fitted = x[SPLIT.train] if fit == "train" else x
    steps = make_pipeline(SimpleImputer(strategy=impute), StandardScaler()).fit(fitted)
    found = preprocessed(spec(fit=fit), dataset, SPLIT)
    np.testing.assert_allclose(found, steps.transform(x), atol=1e-13)
    np.testing.assert_allclose(
        filled(spec(fit=fit), dataset, SPLIT), steps[0].transform(x), atol=1e-13
    )


@pytest.mark.parametrize("impute", ["median", "mean", "most_frequent"])
@pytest.mark.parametrize("scale", ["zscore", "minmax", "tfidf"])
@pytest.mark.parametrize("fit", ["train", "all"])
def test_rows_count_as_often_as_they_weigh(impute, scale, fit):
    x = np.round(np.where(X > 4, np.nan, X))
    draw = np.random.default_rng(1)
    weights = draw.integers(0, 4, 20)
    weights[SPLIT.train] += 1
    rows = np.repeat(np.arange(20), weights)
    labels = np.where(np.arange(20) % 2, 1.0, -1.0)
    own = spec(scale=scale, fit=fit)
    whole = Dataset("t", x, labels, ("no", "yes"), impute=impute, weights=weights.astype(float))
    train = np.flatnonzero(np.isin(rows, SPLIT.train))
    split = Split(train, np.flatnonzero(np.isin(rows, SPLIT.test)))
    repeated = Dataset("t", x[rows], labels[rows], ("no", "yes"), impute=impute)
    found = preprocessed(own, whole, SPLIT)
    np.testing.assert_allclose(found[rows], preprocessed(own, repeated, split), atol=1e-12)
    y = draw.normal(size=20)
    values, again = (replace(whole, y=y, classes=None), replace(repeated, y=y[rows], classes=None))
    one = target_scale(spec(target="zscore"), values, SPLIT)
    two = target_scale(spec(target="zscore"), again, split)
    assert (one.centre, one.spread) == pytest.approx((two.centre, two.spread))


def test_complete_features_are_passed_on():
    dataset = Dataset("t", X, np.ones(20), None)
    assert filled(spec(), dataset, SPLIT) is X
    assert preprocessed(spec(scale="none"), dataset, SPLIT) is X


@pytest.mark.parametrize("scale", ORACLES)
def test_test_rows_have_no_part_in_it(scale):
    changed = X.copy()
    changed[SPLIT.test] *= 1000
    first, second = (scaled(spec(scale=scale), x, SPLIT)[SPLIT.train] for x in (X, changed))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, scaled(spec(scale=scale, fit="all"), X, SPLIT)[SPLIT.train])


@pytest.mark.parametrize("scale", ORACLES)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_features_constant_in_training_are_only_shifted(scale, value):
    x = X.copy()
    x[:, 1] = value
    x[0, 1] = value + 2
    result = scaled(spec(scale=scale), x, SPLIT)
    assert (result[SPLIT.train, 1] == 0).all()
    assert result[0, 1] == pytest.approx(2)


def test_values_beyond_the_range_of_numbers():
    x = X.copy()
    x[4, 2] = 1e300
    with mistake("feature 2", "1e+300", "Rescale"):
        scaled(spec(), x, SPLIT)


def test_targets_are_scaled_on_the_training_rows_and_back():
    y = np.random.default_rng(1).normal(150, 70, 20)
    values = Dataset("t", X, y, None)
    for fit in ("train", "all"):
        scale = target_scale(spec(target="zscore", fit=fit), values, SPLIT)
        expected = StandardScaler().fit(y[SPLIT.train, None]).transform(y[:, None]).ravel()
        np.testing.assert_allclose(scale.scaled(y), expected)
        np.testing.assert_allclose(scale.restored(scale.scaled(y)), y)
    assert target_scale(spec(), values, SPLIT) == TargetScale(0.0, 1.0)
    signs = Dataset("t", X, np.sign(y - 150), ("a", "b"))
    assert target_scale(spec(target="zscore"), signs, SPLIT) == TargetScale(0.0, 1.0)


@pytest.mark.parametrize("constant", [0.1, 3.0, 1e150])
def test_targets_that_do_not_vary_are_only_shifted(constant):
    y = np.full(20, constant)
    y[0] = -1.0
    scale = target_scale(spec(target="zscore"), Dataset("t", X, y, None), SPLIT)
    assert scale == TargetScale(constant, 1.0)


@pytest.mark.parametrize("scale", ["zscore", "minmax", "tfidf", "none"])
@pytest.mark.parametrize("impute", ["median", "mean", "most_frequent", None])
@pytest.mark.parametrize("fit", ["train", "all"])
def test_fitted_preprocessing_does_to_rows_what_a_sweep_does(scale, impute, fit):
    draw = np.random.default_rng(0)
    x = draw.integers(0, 5, size=(20, 3)).astype(float)
    if impute is not None:
        x[::4, 1] = np.nan
    dataset = Dataset("d", x, np.ones(20), ("a", "b"), impute=impute)
    split, spec = (
        Split(np.arange(3, 12), np.arange(12, 20)),
        PreprocessingSpec(scale=scale, fit=fit),
    )
    fitted = fitted_preprocessing(spec, dataset, impute, split)
    np.testing.assert_array_equal(fitted.applied(x), preprocessed(spec, dataset, split))


def test_new_rows_may_miss_values_where_the_data_miss_none():
    x = np.array([[1.0, 2.0], [3.0, 6.0]])
    dataset = Dataset("d", x, np.ones(2), ("a", "b"))
    fitted = fitted_preprocessing(PreprocessingSpec(scale="none"), dataset, "mean")
    assert fitted.applied(np.array([[np.nan, np.nan]])).tolist() == [[2.0, 4.0]]


@pytest.mark.parametrize("fit", ["train", "all"])
def test_tf_idf_is_that_of_scikit_learn(fit):
    counts = np.random.default_rng(3).poisson(0.3, size=(20, 8)).astype(np.float64)
    counts[SPLIT.train, 0] = 0.0  # a term that only test rows have
    fitted = counts[SPLIT.train] if fit == "train" else counts
    expected = TfidfTransformer(norm=None).fit(fitted).transform(counts).toarray()
    found = scaled(spec(scale="tfidf", fit=fit), counts, SPLIT)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("fit", ["train", "all"])
def test_sparse_counts_of_terms_stay_sparse(fit):
    counts = np.random.default_rng(0).poisson(0.3, (20, 6)).astype(float)
    dense = Dataset("d", counts, np.ones(20), ("a", "b"))
    sparse = Dataset("d", None, np.ones(20), ("a", "b"), sparse=csr_array(counts))
    how = PreprocessingSpec(scale="tfidf", fit=fit)
    expected: Any = preprocessed(how, dense, SPLIT)
    found = preprocessed(how, sparse, SPLIT)
    assert isinstance(found, csr_array)
    np.testing.assert_array_equal(found.toarray(), expected)
    fitted = fitted_preprocessing(how, sparse, None, SPLIT)
    np.testing.assert_array_equal(fitted.applied(csr_array(counts)).toarray(), expected)
    assert preprocessed(PreprocessingSpec(scale="none"), sparse, SPLIT) is sparse.sparse


@pytest.mark.parametrize("block", [100, 2**23])
def test_a_large_mean_costs_no_digits_of_the_deviation(block, monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", block)
    small = np.random.default_rng(0).normal(size=(2000, 1))
    data = Dataset("t", small + 1e9, small[:, 0], None)
    found = fitted_preprocessing(spec(fit="all"), data, None).scale
    assert found.spread[0] == pytest.approx(small.std(), rel=1e-7)
