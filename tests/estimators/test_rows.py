"""Rows with columns of texts in every estimator, against scikit-learn's counts and its SVC."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mkldist
from mkldist import MKLClassifier, MKLRegressor, OneClassMKL, SemiSupervisedMKLClassifier
from mkldist.data.dataset import TextColumns, View
from mkldist.fit.estimators import BANKS
from mkldist.fit.preprocess import Rows, column_views
from mkldist.kernels import Gaussian, Spectrum

N, N_TRAIN = 60, 40
RNG = np.random.default_rng(0)
Y = np.where(RNG.permutation(N) % 2, "a", "b")
X = pd.DataFrame(
    {
        "dna": ["".join(RNG.choice(list("abc"), 6)) + "ab" * int(one == "a") for one in Y],
        "x": RNG.normal(size=N) + (Y == "a"),
        "z": RNG.normal(size=N),
    }
)
KERNELS = [Spectrum(length=[1, 2], features="dna"), Gaussian(1.0)]
CLASSIFIER = MKLClassifier(kernels=KERNELS, texts=["dna"])
FEW = np.where(np.arange(N) < 20, Y == "a", -1)
ESTIMATORS = [
    (CLASSIFIER, Y),
    (MKLClassifier(texts=["dna"], class_weight="balanced", calibration="sigmoid"), Y),
    (MKLRegressor(texts=["dna"]), 2.0 * X["x"] + X["dna"].str.count("ab")),
    (OneClassMKL(texts=["dna"]), None),
    (SemiSupervisedMKLClassifier(texts=["dna"]), FEW),
]
IDS = ["classes", "calibrated", "values", "one-class", "few-labels"]


def test_decisions_are_those_of_explicit_matrices():
    model = clone(CLASSIFIER).set_params(method="uniform", normalisation="none", tol=1e-8)
    model.fit(X[:N_TRAIN], Y[:N_TRAIN])
    points = StandardScaler().fit(X[["x", "z"]][:N_TRAIN]).transform(X[["x", "z"]])
    total = rbf_kernel(points, gamma=0.5)
    for length in (1, 2):
        counter = CountVectorizer(analyzer="char", ngram_range=(length, length))
        counts = counter.fit_transform(X["dna"]).toarray().astype(float)
        total = total + counts @ counts.T
    svm = SVC(kernel="precomputed", tol=1e-10).fit(total[:N_TRAIN, :N_TRAIN] / 3, Y[:N_TRAIN])
    expected = svm.decision_function(total[N_TRAIN:, :N_TRAIN] / 3)
    np.testing.assert_allclose(model.decision_function(X[N_TRAIN:]), expected, atol=1e-4)


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=IDS)
def test_estimators_their_pickles_and_their_models_agree(estimator, y, tmp_path):
    model = clone(estimator).fit(X, y)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["dna", "x", "z"]
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    model.to_model().save(tmp_path / "a.model")
    kept = mkldist.load_model(tmp_path / "a.model").predict(X[["z", "dna", "x"]])
    if kept.dtype.kind == "f":
        np.testing.assert_allclose(kept, model.predict(X), rtol=1e-9)
    else:
        np.testing.assert_array_equal(kept, model.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X.rename(columns={"dna": "rna"}))


@pytest.mark.parametrize("by", ["kernels", "features"])
def test_contributions_of_texts_and_numbers_add_up(by):
    model = clone(CLASSIFIER).fit(X, Y)
    shares = model.contributions(X, by=by)
    assert ("dna" in shares) == (by == "features")
    total = shares.sum(axis=1)
    np.testing.assert_allclose(total, model.decision_function(X), atol=1e-9)


@pytest.mark.slow
def test_texts_alone_are_searched_and_the_bank_of_a_split_is_made_once(monkeypatch):
    BANKS.clear()
    sizes = []

    class Counted(mkldist.KernelBank):
        def __init__(self, X, *args, **settings):
            sizes.append(len(X))
            super().__init__(X, *args, **settings)

    monkeypatch.setattr("mkldist.fit.bank.KernelBank", Counted)
    search = GridSearchCV(
        MKLClassifier(texts=["dna"]), {"C": [0.1, 1.0, 10.0]}, cv=3, error_score="raise"
    )
    search.fit(X[["dna"]], Y)
    assert search.best_score_ > 0.8
    assert sorted(sizes) == [40, 40, 40, N]
    assert set(search.best_estimator_.kernel_weights_["function"]) == {"spectrum"}


def test_rows_may_lack_texts_where_a_view_says_so():
    gaps = X.copy()
    gaps.loc[[1, 5], "dna"] = None
    gaps.loc[3, ["x", "z"]] = np.nan
    model = clone(CLASSIFIER).set_params(views={"strings": ["dna"], "numbers": ["x", "z"]})
    model.fit(gaps, Y)
    shares = model.contributions(gaps, by="views")
    assert (shares.loc[[1, 5], "strings"] == 0.0).all()
    assert (shares.loc[3].drop(["strings", "intercept"]) == 0.0).all()
    kept = model.to_model()
    assert list(kept.texts.values()) == [True]
    values = kept.decision_function(gaps)
    np.testing.assert_allclose(values, model.decision_function(gaps), rtol=1e-12)
    said = r"X: found no text in column 'dna' for row 1 \(from 0\), row 5.*name a view"
    for refusing in ({"views": None}, {"missing_views": "error"}):
        with pytest.raises(ValueError, match=said):
            clone(model).set_params(**refusing).fit(gaps.fillna({"x": 0.0, "z": 0.0}), Y)


@pytest.mark.parametrize(
    ("estimator", "rows", "y", "said"),
    [
        (MKLClassifier(texts="dna"), X, Y, r"expected a list of names.*Write texts=\['dna'\]"),
        (MKLClassifier(texts=["rna"]), X, Y, "X: texts: found no column 'rna'.*'dna'"),
        (MKLClassifier(texts=["dna"]), X.to_numpy(), Y, "expected a DataFrame, for columns of"),
        (MKLClassifier(), X, Y, r"text in column 'dna'.*or set texts="),
        (SemiSupervisedMKLClassifier(texts=["dna"]), X[["dna"]], FEW, "graph: found columns of"),
    ],
    ids=["name", "other", "array", "unnamed", "graph"],
)
def test_texts_that_do_not_fit_are_refused(estimator, rows, y, said):
    with pytest.raises(ValueError, match=said):
        clone(estimator).fit(rows, y)


def test_views_are_divided_into_numbers_and_texts():
    texts = TextColumns.of({"dna": ["acg"]})
    views = {"both": ["x", "dna"], "own": 1}
    assert column_views(views, "zero", 3, ("x", "z", "dna"), ["dna"]) == (
        {"both": View((0,), "zero"), "own": View((1,), "zero")},
        {"both": View((0,), "zero")},
    )
    rows = Rows(np.ones((1, 2)), ("x", "z"), texts)
    assert rows.table().columns.tolist() == ["x", "z", "dna"]
    assert len(rows.where(np.array([False]))) == 0
