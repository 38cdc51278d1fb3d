"""Every method by every way: the same kernel weights, bounds, decision values and scores."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mkldist
from tests.fit.golden import POINTS, two_classes
from tests.fit.problems import (
    ALL_KERNELS,
    FEW_LABELS,
    METHODS,
    NEIGHBOURS,
    NEW,
    SEEN,
    TEST,
    TRAIN,
    TWO,
    X,
    given,
)
from tests.fit.ways import (
    LOOSE,
    ROUNDING,
    TOL,
    assert_model,
    assert_near,
    by_estimator,
    by_sweep,
    model_of,
    sweep,
)

solved = cache(two_classes)
QUICK = ("level", "primalmkl", "spicymkl", "lapmkl", "mklsvm", "easymkl", "best_single", "majority")


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


def test_all_methods_are_here() -> None:
    assert set(METHODS) == set(mkldist.list_methods().index)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_sweep_finds_what_solve_finds(method: str, tree: Any) -> None:
    expected, node = solved(method), tree[f"mine/{method}"]
    expected.assert_near(by_sweep(node, NEW), method)
    run = node.to_dataset().squeeze()
    assert str(run.stop_reason.values) == "converged"
    errors = np.where(expected.values >= 0, 1, -1) != TWO[NEW]
    assert_near(run.test_error.values, errors[-len(TEST) :].mean())
    assert_near(run.unlabelled_error.values, errors[: -len(TEST)].mean())


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_finds_what_solve_finds(method: str, tmp_path: Path) -> None:
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
@pytest.mark.parametrize(
    "method",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in METHODS],
)
def test_a_model_of_the_command_finds_what_solve_finds(
    method: str, results: Path, tmp_path: Path
) -> None:
    model = model_of(results, tmp_path / "a.model", "--method", method)
    assert_model(model, solved(method), X[NEW], method)
    assert model.facts["rows"] == len(SEEN)
