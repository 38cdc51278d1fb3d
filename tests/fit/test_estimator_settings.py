"""Parameters of methods, and default kernels, as estimators pass them on."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import mkldist
from mkldist import KernelBank, MKLClassifier, OneClassMKL
from mkldist.core.arrays import Target
from mkldist.errors import DataError, SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import losses_by_target

X = np.random.default_rng(0).normal(size=(12, 2))
Y = np.arange(12) % 2
FEW = np.where(np.arange(12) < 8, Y, -1)
KERNELS = [mkldist.kernels.Gaussian(widths=1.0)]


def used(model, y=Y):
    """Return the parameters that the solver of a fitted estimator had."""
    return model.set_params(kernels=KERNELS).fit(X, y).to_model().facts["params"]


ESTIMATORS = {
    Target.CLASSES: mkldist.MKLClassifier,
    Target.PARTIAL: mkldist.SemiSupervisedMKLClassifier,
    Target.ONE_CLASS: mkldist.OneClassMKL,
    Target.VALUES: mkldist.MKLRegressor,
}


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("name", METHODS)
def test_a_method_learns_the_target_or_is_refused(name, target):
    method, model = METHODS[name], ESTIMATORS[target](name, tol=0.1)
    if target in losses_by_target(method.params):
        found, settings = model._method_settings()
        assert found is method
        assert method.params(**settings).target is target
        assert settings["tol"] == 0.1
    else:
        with pytest.raises(SpecError, match=f"found '{name}', which learns"):
            model.fit(X, Y)


@pytest.mark.slow
def test_the_users_parameters_go_first():
    given = {"tol": 0.5, "loss": "epsilon", "C": 3.0}
    assert used(mkldist.MKLRegressor("spicymkl", method_params=given), X[:, 0]) == given
    given = {"tol": 0.5, "C": 3.0}
    assert used(mkldist.MKLClassifier(C=2.0, method_params=given)) == given


def test_C_goes_to_methods_that_have_one():
    assert used(mkldist.MKLClassifier(C=3))["C"] == 3.0
    easy = used(mkldist.MKLClassifier("easymkl", method_params={"lam": 0.5}))
    assert easy == {"tol": 0.03, "lam": 0.5}
    with pytest.raises(SpecError, match=r"Set the parameters of easymkl by method_params: lam"):
        used(mkldist.MKLClassifier("easymkl", C=3.0))


def test_the_strength_of_the_regulariser_has_the_methods_name():
    assert used(mkldist.MKLRegressor(C=2), X[:, 0])["C"] == 2.0
    assert used(mkldist.MKLRegressor("elastmkl", C=2), X[:, 0])["C"] == 2.0
    assert used(mkldist.OneClassMKL(C=1e3))["C"] == pytest.approx(1e3 / 12)
    few = used(mkldist.SemiSupervisedMKLClassifier("rls", gamma_a=2), FEW)
    assert few["gamma_a"] == 2.0


@pytest.mark.parametrize("value", ["1", True, None, 0.0, -1.0, float("nan"), float("inf")])
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (mkldist.MKLClassifier, "C"),
        (mkldist.OneClassMKL, "C"),
        (mkldist.MKLRegressor, "C"),
        (mkldist.SemiSupervisedMKLClassifier, "gamma_a"),
    ],
)
def test_strengths_are_numbers_above_zero(model, name, value):
    with pytest.raises(SpecError, match=rf"^{name}: found .*; expected a finite number above 0"):
        model(**{name: value}).fit(X, Y)


@pytest.mark.parametrize("value", ["1", None, True, -1.0, float("nan"), float("inf")])
def test_the_strength_on_the_graph_is_a_number_of_at_least_zero(value):
    model = mkldist.SemiSupervisedMKLClassifier(gamma_i=value)
    with pytest.raises(
        SpecError, match=r"^gamma_i: found .*; expected a finite number of at least 0"
    ):
        model.fit(X, Y)
    mkldist.SemiSupervisedMKLClassifier(gamma_i=0).fit(X, Y)


def test_searches_vary_parameters_of_the_method_one_by_one():
    model = mkldist.MKLClassifier("lp_mkl", kernels=KERNELS, method_params={"max_iter": 50})
    search = GridSearchCV(model, {"C": [1.0], "method_params__p": [1.5, 3.0]}, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 2
    best = search.best_params_["method_params__p"]
    assert search.best_estimator_.method_params == {"max_iter": 50, "p": best}
    assert model.method_params == {"max_iter": 50}
    assert used(search.best_estimator_)["p"] == best
    copy = clone(search.best_estimator_)
    assert copy.get_params()["method_params__p"] == best
    assert "method_params__p" not in copy.get_params(deep=False)
    pipeline = make_pipeline(model).set_params(mklclassifier__method_params__p=2.5)
    assert pipeline.get_params()["mklclassifier__method_params__p"] == 2.5


@pytest.mark.parametrize(
    "settings",
    [
        *({name: np.ones(2)} for name in ("impute", "scale", "missing_views", "calibration")),
        *({name: np.ones(2)} for name in ("backend", "groups")), {"backend": float("nan")},
        {"texts": 10**400}, {"C": 10**400}, {"class_weight": {0: 10**400}}, {"class_weight": 1},
    ],
)  # fmt: skip
def test_values_that_numpy_cannot_compare_or_hold_are_refused_by_name(settings):
    with pytest.raises((SpecError, DataError)):
        MKLClassifier(**settings).fit(X, Y)


@pytest.mark.parametrize(
    "data", [([[10**400] * 2] * 12, Y), (X, Y, [10**400] * 12)], ids=["X", "weights"]
)
def test_numbers_without_float64_are_refused(data):
    with pytest.raises(DataError):
        MKLClassifier().fit(*data)


def test_a_parameter_that_the_method_lacks_is_refused_when_it_is_set():
    model = mkldist.MKLClassifier("lp_mkl", method_params={"p": 2.0})
    with pytest.raises(SpecError, match=r"lp_mkl\.q: found an unknown parameter"):
        model.set_params(method_params__q=1.0)
    assert model.method_params == {"p": 2.0}
    model.set_params(method="level", method_params__max_iter=3, method_params={})
    assert model.method_params == {"max_iter": 3}


def points(d, n=20):
    return np.random.default_rng(0).normal(size=(n, d))


@pytest.mark.parametrize(("d", "second"), [(1, "additive"), (250, "additive"), (251, "linear")])
def test_it_is_modest(d, second):
    functions = KernelBank(points(d), "default").kernels["function"].tolist()
    n = {"additive": 3, "linear": 1}[second]
    assert functions == ["gaussian"] * 4 + [second] * n


@pytest.mark.parametrize("d", [2, 30, 300])
def test_kernels_on_all_features_are_neither_constant_nor_diagonal(d):
    X = points(d, 80) * 3.0
    table = KernelBank(X, "default").kernels
    widths = table["width"][table["function"] == "gaussian"]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(80, 1)]
    typical = np.exp(-np.median(squares) / (2 * widths.to_numpy() ** 2))
    assert typical.min() > 1e-3
    assert typical.max() < 0.98
    assert ((typical > 0.1) & (typical < 0.9)).sum() >= 2


def test_each_view_has_its_own_and_features_of_none_make_kernels_on_all():
    X = points(5)
    both = KernelBank(X, "default", views={"a": [0, 1], "b": [2, 3, 4]}).kernels
    assert both.groupby("features").size().to_dict() == {"a": 7, "b": 7}
    some = KernelBank(X, "default", views={"a": [0, 1]}).kernels
    assert some.groupby("features").size().to_dict() == {"a": 7, "all": 7}


def test_sparse_features_have_linear_kernels_beside_gaussians():
    X = scipy.sparse.csr_array(np.abs(points(6)))
    assert KernelBank(X, "default").kernels["function"].tolist() == ["gaussian"] * 4 + ["linear"]


def test_estimators_have_those_of_banks_but_for_one_class():
    X, y = points(3, 30), np.arange(30) % 2
    table = MKLClassifier(scale=None).fit(X, y).kernel_weights_
    assert table["name"].tolist() == KernelBank(X, "default").kernels["name"].tolist()
    assert set(OneClassMKL().fit(X).kernel_weights_["function"]) == {"gaussian"}
