"""Problems of every kind by every way, held to the answers of `solve`."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mkldist
from mkldist.fit.inputs import Features
from tests.fit.problems import (
    ALL_KERNELS,
    FEW_KERNELS,
    FEW_LABELS,
    METHODS,
    NEIGHBOURS,
    NEW,
    ON_GRAPHS,
    OUTER,
    REGRESSIONS,
    SEEN,
    SHARING,
    TEST,
    THREE,
    TRAIN,
    TWO,
    VALUES,
    WEIGHING,
    X,
    against_rest,
    given,
    weights_of,
)
from tests.fit.ways import (
    LOOSE,
    ROUNDING,
    TOL,
    Found,
    assert_model,
    assert_near,
    by_estimator,
    by_solve,
    by_sweep,
    model_of,
    neighbours_laplacian,
    standardised,
    sweep,
)

BANK = {"kernels": FEW_KERNELS, "normalisation": "trace"}
SETTINGS = {"kernels": FEW_KERNELS, "normalisation": "trace", "tol": TOL}
PLAIN = {"impute": None, "scale": None}
NAMES = np.array(["low", "middle", "high"])
APART = ("level", "spicymkl", "primalmkl", "easymkl")
SWEPT = ("level", "primalmkl", "lp_mkl")
POINTS = standardised(X, SEEN)


def few_kernels() -> mkldist.KernelBank:
    """Return the few kernels on the training points."""
    return mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, normalisation="trace")


def two_classes(method: str) -> Found:
    """Return the answer of a method, which sees the unlabelled rows if it can."""
    rows = SEEN if method in FEW_LABELS else TRAIN
    labels = TWO[rows].astype(float)
    labels[len(TRAIN) :] = 0.0
    more = {}
    if method in ON_GRAPHS:
        more["laplacian"] = neighbours_laplacian(POINTS[rows], NEIGHBOURS)
    bank = mkldist.KernelBank(POINTS[rows], ALL_KERNELS, normalisation="trace")
    return by_solve(method, bank, labels, POINTS[NEW], **METHODS[method], **more)


def three_classes(method: str, *, shared: bool) -> Found:
    """Return the answer for three classes, with kernel weights of their own or shared ones."""
    labels = against_rest(THREE[TRAIN])
    given: Any = labels if shared else list(labels.T)
    return by_solve(method, few_kernels(), given, POINTS[NEW], **METHODS[method])


def one_class() -> Found:
    """Return the answer for the rows of class +1 alone."""
    inner = POINTS[TRAIN[TWO[TRAIN] > 0]]
    bank = mkldist.KernelBank(inner, FEW_KERNELS, normalisation="trace")
    return by_solve("primalmkl", bank, np.ones(len(inner)), POINTS[NEW], loss="one-class", C=OUTER)


def method_entry(method: str, **more: Any) -> dict[str, Any]:
    """Return an entry of methods."""
    return {"name": method, **METHODS[method], **more}


def classifier(method: str, **more: Any) -> mkldist.MKLClassifier:
    """Return an estimator that neither fills nor scales."""
    params = dict(METHODS[method])
    settings = {"C": params.pop("C")} if "C" in params else {}
    return mkldist.MKLClassifier(method, method_params=params, **settings, **SETTINGS, **more)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return the results of a sweep over three classes, learnt apart or together."""
    folder = tmp_path_factory.mktemp("three") / "results"
    apart = [method_entry(name) for name in SWEPT]
    shared = [
        method_entry(name, label=f"{name}_shared", kernel_weights="shared")
        for name in SWEPT
        if name in SHARING
    ]
    few = [method_entry("lapmkl"), method_entry("mklsvm")]
    few.append(method_entry("mklsvm", label="mklsvm_shared", kernel_weights="shared"))
    data = given(NAMES[THREE], unlabelled=True)
    datasets = [{"name": "mine", "classes": NAMES.tolist()}]
    entries = [*apart, *shared, *few]
    tree = sweep(folder, data, entries, BANK, datasets=datasets, graph={"neighbours": NEIGHBOURS})
    return folder, tree


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "shared"),
    [*[(name, False) for name in dict.fromkeys(APART + SHARING)], *[(m, True) for m in SHARING]],
)
def test_three_classes(method, shared, three, tmp_path):
    expected = three_classes(method, shared=shared)
    classes = expected.values.argmax(axis=1)
    fitted = classifier(method, shared_weights=shared, **PLAIN).fit(POINTS[TRAIN], THREE[TRAIN])
    expected.assert_near(by_estimator(fitted, POINTS[NEW]), method)
    np.testing.assert_array_equal(fitted.predict(POINTS[NEW]), classes)
    rtol = LOOSE.get(method, ROUNDING)
    assert_near(fitted.to_model().decision_function(POINTS[NEW]), expected.values, rtol)
    if method not in SWEPT:
        return
    folder, tree = three
    name = f"{method}_shared" if shared else method
    node = tree[f"mine/{name}"]
    expected.assert_near(by_sweep(node, NEW), method)
    wrong = classes[-len(TEST) :] != THREE[TEST]
    assert_near(node.test_error.values.squeeze(), wrong.mean())
    model = model_of(folder, tmp_path / "a.model", "--method", name)
    assert_near(model.decision_function(X[NEW]), expected.values, rtol)
    np.testing.assert_array_equal(model.predict(X[NEW]), NAMES[classes])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lapmkl", "mklsvm", "mklsvm_shared"])
def test_three_classes_of_few_labels(name, three, tmp_path):
    folder, tree = three
    method, shared = name.removesuffix("_shared"), name.endswith("_shared")
    labels = against_rest(THREE[SEEN])
    labels[len(TRAIN) :] = 0.0
    bank = mkldist.KernelBank(POINTS[SEEN], FEW_KERNELS, normalisation="trace")
    laplacian = neighbours_laplacian(POINTS[SEEN], NEIGHBOURS)
    apart = labels if shared else list(labels.T)
    expected = by_solve(method, bank, apart, POINTS[NEW], laplacian=laplacian, **METHODS[method])
    expected.assert_near(by_sweep(tree[f"mine/{name}"], NEW), method)
    if not shared:
        numbers = np.where(np.isin(SEEN, TRAIN), THREE[SEEN], -1)
        fitted = mkldist.SemiSupervisedMKLClassifier(
            method, **METHODS[method], graph={"neighbours": NEIGHBOURS}, **SETTINGS, **PLAIN
        ).fit(POINTS[SEEN], numbers)
        expected.assert_near(by_estimator(fitted, POINTS[NEW]), method)
    model = model_of(folder, tmp_path / "a.model", "--method", name)
    assert_near(model.decision_function(X[NEW]), expected.values)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["none", "zscore"])
def test_real_values(target, tmp_path):
    values = 50.0 + 20.0 * VALUES
    entries = [
        method_entry(method, loss=loss, label=f"{method}-{loss}") for method, loss in REGRESSIONS
    ]
    datasets = [{"name": "mine", "task": "regression"}]
    tree = sweep(
        tmp_path / "r", given(values), entries, BANK,
        datasets=datasets, preprocessing={"target": target},
    )  # fmt: skip
    points = standardised(X, TRAIN)
    own = values[TRAIN]
    centre, spread = (own.mean(), own.std()) if target == "zscore" else (0.0, 1.0)
    bank = mkldist.KernelBank(points[TRAIN], FEW_KERNELS, normalisation="trace")
    for method, loss in REGRESSIONS:
        params = {"loss": loss, **METHODS[method]}
        scaled = by_solve(method, bank, (own - centre) / spread, points[TEST], **params)
        expected = Found(
            scaled.bounds, scaled.weights,
            scaled.bias * spread + centre, scaled.values * spread + centre,
        )  # fmt: skip
        node = tree[f"mine/{method}-{loss}"]
        expected.assert_near(by_sweep(node, TEST), method)
        errors = expected.values - values[TEST]
        assert float(node.rmse.squeeze()) == pytest.approx(np.sqrt((errors**2).mean()), rel=1e-8)
        if target == "zscore":
            strength = next(iter(METHODS[method].values()))
            fitted = mkldist.MKLRegressor(
                method, C=strength, method_params={"loss": loss}, **SETTINGS
            ).fit(X[TRAIN], own)
            expected.assert_near(by_estimator_of_values(fitted, X[TEST]), method)
            assert_near(fitted.to_model().predict(X[TEST]), expected.values)
        model = model_of(tmp_path / "r", tmp_path / "a.model", "--method", f"{method}-{loss}",
                         "--overwrite")  # fmt: skip
        assert_near(model.predict(X[TEST]), expected.values)


def by_estimator_of_values(fitted: mkldist.MKLRegressor, new: np.ndarray) -> Found:
    """Return what an estimator of real values says, which has predictions alone."""
    [solution] = fitted.solutions_
    bounds = np.array([fitted.objective_, solution.dual_objective])
    weights = fitted.kernel_weights_["weight"].to_numpy()
    return Found(bounds, weights, np.array(fitted.intercept_), fitted.predict(new))


def test_one_class(tmp_path):
    entry = {"name": "primalmkl", "loss": "one-class", "C": OUTER}
    names = np.where(TWO > 0, "inner", "outer")
    datasets = [{"name": "mine", "positive": "inner"}]
    tree = sweep(tmp_path / "r", given(names), [entry], BANK, datasets=datasets)
    points = standardised(X, TRAIN)
    bank = mkldist.KernelBank(points[TRAIN], FEW_KERNELS, normalisation="trace")
    expected = by_solve("primalmkl", bank, TWO[TRAIN], points[TEST], loss="one-class", C=OUTER)
    expected.assert_near(by_sweep(tree["mine/primalmkl"], TEST), "primalmkl")
    model = model_of(tmp_path / "r", tmp_path / "a.model")
    assert_model(model, expected, X[TEST])


def test_one_class_of_the_estimator():
    inner = POINTS[TRAIN[TWO[TRAIN] > 0]]
    n = len(inner)
    fitted = mkldist.OneClassMKL(C=n * OUTER, **SETTINGS, **PLAIN).fit(inner)
    expected = one_class()
    assert_near(fitted.solutions_[0].objective, expected.bounds[0])
    assert_near(fitted.solutions_[0].dual_objective, expected.bounds[1])
    assert_near(fitted.kernel_weights_["weight"], expected.weights)
    assert_near(fitted.decision_function(POINTS[NEW]) / n, expected.values)
    np.testing.assert_array_equal(
        fitted.predict(POINTS[NEW]), np.where(expected.values >= 0, 1, -1)
    )
    assert_near(fitted.to_model().decision_function(POINTS[NEW]) / n, expected.values)


@pytest.mark.slow
@pytest.mark.parametrize("method", WEIGHING)
def test_weights_of_points(method):
    points, labels = POINTS[TRAIN], TWO[TRAIN]
    weights, some = weights_of(labels), np.arange(len(labels)) % 5 > 0
    for own, classes in (
        (weights, None),
        (weights / np.where(labels > 0, 3.0, 1.0), {1: 3.0}),  # which do not weigh in traces
        (np.where(some, weights, 0.0), None),
    ):
        model = classifier(method, class_weight=classes, **PLAIN)
        model.fit(points, labels, sample_weight=own)
        used = own > 0.0
        counted = replace(Features.of(points[used]), weights=own[used])
        bank = mkldist.KernelBank(counted, FEW_KERNELS, normalisation="trace")
        given = {"weights": weights[used], **METHODS[method]}
        expected = by_solve(method, bank, labels[used], POINTS[NEW], **given)
        expected.assert_near(by_estimator(model, POINTS[NEW]), method)


@pytest.mark.slow
def test_a_sweep_along_paths(tmp_path):
    methods = {"level": [10.0, 1.0, 30.0], "primalmkl": [100.0, 10.0, 300.0]}
    entries = [{"name": name, "C": values} for name, values in methods.items()]
    tree = sweep(tmp_path / "r", given(TWO), entries, BANK, execution="path")
    points = standardised(X, TRAIN)
    bank = mkldist.KernelBank(points[TRAIN], FEW_KERNELS, normalisation="trace")
    for name, values in methods.items():
        path = mkldist.solve_path(name, bank, TWO[TRAIN], tol=TOL, C=values)
        for value, found in zip(values, path, strict=True):
            run = tree[f"mine/{name}"].to_dataset().squeeze().sel(C=value)
            assert_near(run.objective.values, found.objective)
            assert_near(run.kernel_weights.values, found.kernel_weights, 1e-8)
            values_there = found.decision_function(bank.on(points[TEST]))
            assert_near(run.decision_values.values[TEST], values_there, 1e-8)


solved = cache(two_classes)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of one sweep of all methods, which share its passes."""
    folder = tmp_path_factory.mktemp("methods") / "results"
    entries = [{"name": name, **params} for name, params in METHODS.items()]
    bank = {"kernels": ALL_KERNELS, "normalisation": "trace"}
    graph = {"neighbours": NEIGHBOURS}
    sweep(folder, given(TWO, unlabelled=True), entries, bank, graph=graph)
    return folder


@pytest.fixture(scope="module")
def tree(results: Path) -> Any:
    return mkldist.open_results(results)


def test_all_methods_are_here():
    assert set(METHODS) == set(mkldist.list_methods().index)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_sweep_finds_what_solve_finds(method, tree):
    expected, node = solved(method), tree[f"mine/{method}"]
    expected.assert_near(by_sweep(node, NEW), method)
    run = node.to_dataset().squeeze()
    assert str(run.stop_reason.values) == "converged"
    errors = np.where(expected.values >= 0, 1, -1) != TWO[NEW]
    assert_near(run.test_error.values, errors[-len(TEST) :].mean())
    assert_near(run.unlabelled_error.values, errors[: -len(TEST)].mean())


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_finds_what_solve_finds(method, tmp_path):
    params = dict(METHODS[method])
    settings = {"kernels": ALL_KERNELS, "normalisation": "trace", "tol": TOL}
    plain = {"impute": None, "scale": None}
    if method in FEW_LABELS:
        params["graph"] = {"neighbours": NEIGHBOURS}
        model = mkldist.SemiSupervisedMKLClassifier(method, **params, **settings, **plain)
        labels = np.where(np.isin(SEEN, TRAIN), TWO[SEEN] > 0, -1)
        model.fit(POINTS[SEEN], labels)
    else:
        if "C" in params:
            settings["C"] = params.pop("C")
        model = mkldist.MKLClassifier(method, method_params=params, **settings, **plain)
        model.fit(POINTS[TRAIN], TWO[TRAIN])
    expected, found = solved(method), by_estimator(model, POINTS[NEW])
    expected.assert_equal(found, "bounds", "weights", "bias")
    expected.assert_near(found, method)
    shares = model.contributions(POINTS[NEW]).to_numpy().sum(axis=1)
    assert_near(shares, expected.values, LOOSE.get(method, ROUNDING))
    model.to_model().save(tmp_path / "a.model")
    kept = mkldist.load_model(tmp_path / "a.model")
    assert_model(kept, expected, POINTS[NEW], method)
    np.testing.assert_array_equal(kept.predict(POINTS[NEW]), model.predict(POINTS[NEW]))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_model_of_the_command_finds_what_solve_finds(method, results, tmp_path):
    model = model_of(results, tmp_path / "a.model", "--method", method)
    assert_model(model, solved(method), X[NEW], method)
    assert model.facts["rows"] == len(SEEN)
