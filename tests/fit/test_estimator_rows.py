"""Views, missing views, sparse rows and columns of texts, against explicit matrices and a sweep."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator_sparse_array, check_estimator_sparse_tag

import mkldist
from mkldist import MKLClassifier, MKLRegressor, OneClassMKL, SemiSupervisedMKLClassifier
from mkldist.data.dataset import View
from mkldist.errors import DataError, SpecError
from mkldist.fit.estimators import BANKS
from mkldist.fit.preprocess import check_views, column_views
from mkldist.kernels import Gaussian, Laplacian, Linear, Polynomial, Spectrum
from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum

RNG = np.random.default_rng(5)
N, VIEWS = 60, {"clinical": [0, 1], "genes": slice(2, 6)}
Y = np.where(RNG.random(N) < 0.5, 1, -1)
X = RNG.normal(size=(N, 6)) + 0.7 * Y[:, None]
LACKING = np.arange(N) % 4 == 1
X[LACKING, 2:] = np.nan
X[6, 2] = np.nan  # a value that is missing beside others
X[7, 1] = np.nan
TRAIN, TEST = np.arange(0, 40), np.arange(40, N)
KERNELS = [Gaussian(widths=[1.0, 3.0], features="views"), Linear(features="genes")]
FRAME = pd.DataFrame(X, columns=["age", "crp", "a", "b", "c", "d"])
SPARSE = csr_array(random_array((N, 30), density=0.15, rng=np.random.default_rng(0)))
SPARSE.data[:] = np.round(SPARSE.data, 3)
TEXT = np.where(SPARSE.sum(axis=1) > np.median(SPARSE.sum(axis=1)), "long", "short")


def matrices() -> tuple[np.ndarray, np.ndarray]:
    """Return the five Gram matrices of all rows by scikit-learn, and who has which."""
    absent = np.isnan(X[:, 2:]).all(axis=1)
    medians = np.nanmedian(X[TRAIN], axis=0)
    x = np.where(np.isnan(X), medians, X)
    grams, has = [], []
    for columns, present in ((slice(0, 2), ~absent | True), (slice(2, 6), ~absent)):
        own = x[:, columns]
        known = own[TRAIN][present[TRAIN]]
        own = (own - known.mean(axis=0)) / known.std(axis=0)
        mask = np.outer(present, present)
        grams += [rbf_kernel(own, gamma=0.5 / width**2) * mask for width in (1.0, 3.0)]
        has += [present, present]
        if columns.start:
            grams.append(linear_kernel(own) * mask)
            has.append(present)
    return np.array(grams), np.array(has)


def test_kernels_are_those_of_masked_rows():
    model = MKLClassifier(kernels=KERNELS, views=VIEWS, C=2.0, tol=1e-7).fit(X[TRAIN], Y[TRAIN])
    grams, has = matrices()
    scaled = []
    for gram, present in zip(grams, has, strict=True):
        own = TRAIN[present[TRAIN]]
        variance = np.diag(gram)[own].mean() - gram[np.ix_(own, own)].mean()
        scaled.append(gram / variance)
    scaled = np.array(scaled)
    own, y = scaled[:, TRAIN[:, None], TRAIN], Y[TRAIN].astype(float)
    optimum = simplex_optimum(Instance("views", own, y, 2.0), y, {"C": 2.0})
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    weights = model.kernel_weights_["weight"].to_numpy()
    assert (weights > 0).sum() > 1
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-10)
    svm.fit(np.einsum("m,mij->ij", weights, own), y)
    between = np.einsum("m,mij->ij", weights, scaled[:, TEST[:, None], TRAIN])
    values = svm.decision_function(between)
    assert np.isnan(X[TEST, 2:]).all(axis=1).any()
    np.testing.assert_allclose(model.decision_function(X[TEST]), values, atol=1e-4)


FEW = np.where(np.arange(N) < 30, Y + 1, -1)  # classes 0 and 2
ESTIMATORS = [
    (MKLClassifier(), Y),
    (MKLRegressor(), Y + 0.5),
    (OneClassMKL(), None),
    (SemiSupervisedMKLClassifier("rls"), FEW),
]


def test_rows_without_any_view_get_the_intercept():
    model = MKLClassifier(views={"all columns": slice(None)}).fit(X, Y)
    assert model.decision_function(np.full((1, 6), np.nan)) == model.intercept_


def test_the_default_widths_follow_the_spread_of_sparse_rows():
    table = MKLClassifier(scale=None, tol=0.5).fit(SPARSE, TEXT).kernel_weights_
    spread = np.sqrt(SPARSE.toarray().var(axis=0).sum())
    expected = spread * np.array([0.5, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(table["width"].dropna().unique(), expected, rtol=1e-5)


def test_sparse_kernels_are_those_of_scikit_learn():
    kernels = [Gaussian(2.0), Polynomial(degrees=2), Linear()]
    model = MKLClassifier("uniform", kernels=kernels, scale=None, normalisation="none", tol=1e-8)
    model.fit(SPARSE[TRAIN], TEXT[TRAIN])

    def sums(x, z):
        return (
            rbf_kernel(x, z, gamma=0.125)
            + polynomial_kernel(x, z, degree=2, gamma=1.0, coef0=1.0)
            + linear_kernel(x, z)
        ) / 3

    dense = SPARSE.toarray()
    svm = SVC(C=1.0, kernel="precomputed", tol=1e-10)
    svm.fit(sums(dense[TRAIN], dense[TRAIN]), TEXT[TRAIN])
    np.testing.assert_allclose(
        model.decision_function(SPARSE[TEST]),
        svm.decision_function(sums(dense[TEST], dense[TRAIN])),
        atol=1e-4,
    )
    np.testing.assert_allclose(  # dense rows are taken too
        model.decision_function(dense[TEST]), model.decision_function(SPARSE[TEST]), atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=lambda one: type(one).__name__)
def test_scikit_learn_agrees_on_sparse_rows(estimator, y):
    unscaled = clone(estimator).set_params(scale=None)
    for one in (estimator, unscaled):
        check_estimator_sparse_tag(type(one).__name__, one)
        check_estimator_sparse_array(type(one).__name__, one)
    assert unscaled.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, r"scale: found 'zscore' for sparse X, which it would fill; expected None"),
        (
            {"scale": None, "kernels": [Laplacian(1.0)]},
            "a laplacian-rbf kernel of sparse features, dense .* [kM]iB; expected gaussian",
        ),
    ],
)
def test_sparse_rows_that_would_be_filled_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        MKLClassifier(**settings).fit(SPARSE, TEXT)


def test_sparse_rows_are_finite_and_of_the_kind_of_those_before():
    gap = SPARSE.copy()
    gap.data[3] = np.nan
    with pytest.raises(ValueError, match="absent entries of sparse features are 0, not missing"):
        MKLClassifier(scale=None).fit(gap, TEXT)
    dense = MKLClassifier(scale=None).fit(SPARSE.toarray(), TEXT)
    with pytest.raises(ValueError, match=r"X: found sparse features; expected dense ones"):
        dense.predict(SPARSE)


@pytest.mark.parametrize(
    ("views", "missing", "said"),
    [
        ("genes", "zero", "views: found 'genes'; expected columns by the names of views"),
        ({}, "zero", "views: found {}; expected columns"),
        ({"each": [0]}, "zero", "views: found a view 'each'; expected a name that is neither"),
        ({"age": [0]}, "zero", "views: found a view 'age'; expected a name that is neither"),
        ({"v": []}, "zero", r"views\['v'\]: found no columns; expected at least one column"),
        ({"v": [0, "age"]}, "zero", r"views\['v'\]: found a column twice"),
        ({"v": [0.5]}, "zero", r"views\['v'\]: found \[0.5\]; expected numbers from 0 or names"),
        ({"v": [True, False]}, "zero", r"expected numbers from 0 or names of columns"),
        ({"v": np.eye(6, dtype=bool)[0]}, "zero", r"columns of a mask: np\.flatnonzero\(mask\)"),
        ({"v": None}, "zero", r"views\['v'\]: found None; expected numbers from 0 or names"),
        ({"v": [9]}, "zero", r"views\['v'\]: found feature 9; expected a number from 0 to 5"),
        ({"v": ["aeg"]}, "zero", r"no feature 'aeg'.*Did you mean 'age'"),
        ({"v": [0]}, "zeros", "missing_views: found 'zeros'.*Did you mean 'zero'"),
    ],
)
def test_views_that_do_not_fit_are_refused(views, missing, said):
    with pytest.raises(ValueError, match=said):
        MKLClassifier(views=views, missing_views=missing).fit(FRAME, Y)


def test_groups_and_views_have_names_of_their_own():
    with pytest.raises(SpecError, match="groups: found 'genes', the name of a view too"):
        MKLClassifier(views=VIEWS, groups={"genes": [0]}).fit(X, Y)
    with pytest.raises(
        SpecError, match=r"groups\['blood'\]: found None; expected features in lists"
    ):
        MKLClassifier(groups={"blood": None}).fit(X[TRAIN][:, :2], Y[TRAIN])


def test_columns_are_numbers_names_slices_and_arrays():
    views = {"a": 1, "b": "crp", "c": slice(1, 2), "d": np.array([1]), "e": pd.Index(["crp"])}
    found = column_views(views, "error", 2, ["age", "crp"], ())
    assert found == (dict.fromkeys(views, View((1,), None)), {})


def test_rows_that_lack_a_view_are_refused_where_asked():
    with pytest.raises(
        DataError, match=r"no value of view 'genes' for row 1 \(from 0\), row 5.*missing_views"
    ):
        MKLClassifier(views=VIEWS, missing_views="error").fit(X, Y)
    nobody = X.copy()
    nobody[:, 2:] = np.nan
    with pytest.raises(DataError, match="no row with a value of view 'genes'"):
        check_views(nobody, {"genes": View((2, 3, 4, 5), "zero")}, fitting=True)
    with pytest.raises(SpecError, match="graph: found rows that lack a view"):
        SemiSupervisedMKLClassifier(views=VIEWS).fit(X, FEW)
    with pytest.raises(DataError, match="X: found values that are too large to be scaled, or NaN"):
        MKLClassifier(views=VIEWS, impute=None).fit(X, Y)


N_TEXT = 60
RNG_TEXT = np.random.default_rng(0)
Y_TEXT = np.where(RNG_TEXT.permutation(N_TEXT) % 2, "a", "b")
X_TEXT = pd.DataFrame(
    {
        "dna": [
            "".join(RNG_TEXT.choice(list("abc"), 6)) + "ab" * int(one == "a") for one in Y_TEXT
        ],
        "x": RNG_TEXT.normal(size=N_TEXT) + (Y_TEXT == "a"),
        "z": RNG_TEXT.normal(size=N_TEXT),
    }
)
KERNELS_TEXT = [Spectrum(length=[1, 2], features="dna"), Gaussian(1.0)]
CLASSIFIER = MKLClassifier(kernels=KERNELS_TEXT, texts=["dna"])
FEW_TEXT = np.where(np.arange(N_TEXT) < 20, Y_TEXT == "a", -1)
ESTIMATORS_TEXT = [
    (CLASSIFIER, Y_TEXT),
    (MKLClassifier(texts=["dna"], class_weight="balanced", calibration="sigmoid"), Y_TEXT),
    (MKLRegressor(texts=["dna"]), 2.0 * X_TEXT["x"] + X_TEXT["dna"].str.count("ab")),
    (OneClassMKL(texts=["dna"]), None),
    (SemiSupervisedMKLClassifier(texts=["dna"]), FEW_TEXT),
]


OF_VIEWS = {"views": {"clinical": ["age", "crp"], "genes": ["a", "b", "c", "d"]}}
FEW_SPARSE = np.where(np.arange(N) < 30, TEXT == "long", -1)
KINDS = [
    *((one, FRAME, y, {**OF_VIEWS, "missing_views": "zero"}) for one, y in ESTIMATORS),
    (MKLClassifier(), FRAME, Y, {**OF_VIEWS, "missing_views": "impute"}),
    (MKLClassifier(), FRAME, Y > 0, {"scale": "minmax"}),
    (MKLClassifier(), SPARSE, TEXT, {"scale": None}),
    (MKLClassifier(class_weight="balanced"), SPARSE, TEXT,
     {"scale": None, "views": {"first": slice(10)}}),
    (MKLRegressor(), SPARSE, np.asarray(SPARSE.sum(axis=1)), {"scale": None}),
    (OneClassMKL(), SPARSE, None, {"scale": None}),
    (SemiSupervisedMKLClassifier(), SPARSE, FEW_SPARSE, {"scale": None}),
    *((one, X_TEXT, y, {}) for one, y in ESTIMATORS_TEXT),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "rows", "y", "settings"), KINDS)
def test_estimators_their_pickles_and_their_models_agree(estimator, rows, y, settings, tmp_path):
    model = clone(estimator).set_params(**settings).fit(rows, y)
    again, expected = pickle.loads(pickle.dumps(model)), model.predict(rows)
    np.testing.assert_array_equal(again.predict(rows), expected)
    model.to_model().save(tmp_path / "a.model")
    kept = mkldist.load_model(tmp_path / "a.model")
    assert kept.is_sparse == (rows is SPARSE)
    found = kept.predict(rows if rows is SPARSE else rows.iloc[:, ::-1])
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    else:
        np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind
    if hasattr(model, "decision_function"):
        decided = model.decision_function(rows)
        np.testing.assert_allclose(kept.decision_function(rows), decided, rtol=1e-9, atol=1e-11)
    if rows is SPARSE:
        return
    assert model.feature_names_in_.tolist() == rows.columns.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(rows.rename(columns={rows.columns[0]: "other"}))


def test_each_view_has_default_kernels_and_shares_of_its_own():
    for estimator, y in ESTIMATORS:
        model = clone(estimator).set_params(**OF_VIEWS).fit(FRAME, y)
        table = model.kernel_weights_.drop_duplicates("name")
        counts = table.groupby(["features", "function"]).size().to_dict()
        expected = {(view, "gaussian"): 4 for view in VIEWS}
        assert counts == expected | {(v, "additive"): 3 for v in VIEWS if y is not None}
        shares = model.contributions(FRAME, by="features")
        assert set(shares.columns) <= {"clinical", "genes", "intercept", *FRAME.columns}
        assert "genes" not in shares or (shares.loc[LACKING, "genes"] == 0.0).all()


@pytest.mark.parametrize("by", ["kernels", "features"])
def test_contributions_of_texts_and_numbers_add_up(by):
    model = clone(CLASSIFIER).fit(X_TEXT, Y_TEXT)
    shares = model.contributions(X_TEXT, by=by)
    assert ("dna" in shares) == (by == "features")
    total = shares.sum(axis=1)
    np.testing.assert_allclose(total, model.decision_function(X_TEXT), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pipeline", "rows", "y", "grid"),
    [
        (make_pipeline(MKLClassifier(tol=0.1)), X, Y,
         {"mklclassifier__views": [None, VIEWS],
          "mklclassifier__missing_views": ["zero", "impute"]}),
        (make_pipeline(MaxAbsScaler(), MKLClassifier(scale=None, tol=0.1)), SPARSE, TEXT,
         {"mklclassifier__C": [0.1, 10.0]}),
    ],
    ids=["views", "sparse"],
)  # fmt: skip
def test_searches_in_pipelines(pipeline, rows, y, grid):
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(rows, y)
    assert search.best_score_ > 0.6


@pytest.mark.slow
def test_texts_alone_are_searched_and_the_bank_of_a_split_is_made_once(monkeypatch):
    BANKS.clear()
    sizes = []

    class Counted(mkldist.KernelBank):
        def __init__(self, X_TEXT, *args, **settings):
            sizes.append(X_TEXT.n_points)
            super().__init__(X_TEXT, *args, **settings)

    monkeypatch.setattr("mkldist.fit.bank.KernelBank", Counted)
    search = GridSearchCV(
        MKLClassifier(texts=["dna"]), {"C": [0.1, 1.0, 10.0]}, cv=3, error_score="raise"
    )
    search.fit(X_TEXT[["dna"]], Y_TEXT)
    assert search.best_score_ > 0.8
    different = {*zip(X_TEXT["dna"], Y_TEXT, strict=True)}
    assert (len(sizes), sizes[-1]) == (4, len(different))
    assert set(search.best_estimator_.kernel_weights_["function"]) == {"spectrum"}


def test_rows_may_lack_texts_where_a_view_says_so():
    gaps = X_TEXT.copy()
    gaps.loc[[1, 5], "dna"] = None
    gaps.loc[3, ["x", "z"]] = np.nan
    model = clone(CLASSIFIER).set_params(views={"strings": ["dna"], "numbers": ["x", "z"]})
    model.fit(gaps, Y_TEXT)
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
            clone(model).set_params(**refusing).fit(gaps.fillna({"x": 0.0, "z": 0.0}), Y_TEXT)


@pytest.mark.parametrize(
    ("estimator", "rows", "y", "said"),
    [
        (
            MKLClassifier(texts="dna"),
            X_TEXT,
            Y_TEXT,
            r"expected a list of names.*Write texts=\['dna'\]",
        ),
        (MKLClassifier(texts=["rna"]), X_TEXT, Y_TEXT, "X: texts: found no column 'rna'.*'dna'"),
        (
            MKLClassifier(texts=["dna"]),
            X_TEXT.to_numpy(),
            Y_TEXT,
            "expected a DataFrame, for columns of",
        ),
        (MKLClassifier(), X_TEXT, Y_TEXT, r"text in column 'dna'.*or set texts="),
        (
            SemiSupervisedMKLClassifier(texts=["dna"]),
            X_TEXT[["dna"]],
            FEW_TEXT,
            "graph: found columns of",
        ),
    ],
    ids=["name", "other", "array", "unnamed", "graph"],
)
def test_texts_that_do_not_fit_are_refused(estimator, rows, y, said):
    with pytest.raises(ValueError, match=said):
        clone(estimator).fit(rows, y)


def test_views_are_divided_into_numbers_and_texts():
    views = {"both": ["x", "dna"], "own": 1}
    assert column_views(views, "zero", 3, ("x", "z", "dna"), ["dna"]) == (
        {"both": View((0,), "zero"), "own": View((1,), "zero")},
        {"both": View((0,), "zero")},
    )
