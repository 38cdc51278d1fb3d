"""Every method by every way: the same kernel weights, bounds, decision values and scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mkldist
from tests.fit.problems import (
    ALL_KERNELS,
    FEW_LABELS,
    METHODS,
    NEIGHBOURS,
    NEW,
    ON_GRAPHS,
    SEEN,
    TRAIN,
    TWO,
    X,
    given,
)
from tests.fit.ways import (
    LOOSE,
    LOOSE_BOUNDS,
    ROUNDING,
    TOL,
    Found,
    assert_model,
    assert_near,
    by_estimator,
    by_solve,
    by_sweep,
    called,
    model_of,
    neighbours_laplacian,
    predicted,
    standardised,
    sweep,
)

POINTS = standardised(X, SEEN)


def solved(method: str) -> Found:
    """Return the answer of `solve` on points that are scaled here."""
    rows = SEEN if method in FEW_LABELS else TRAIN
    labels = TWO[rows].astype(float)
    labels[len(TRAIN) :] = 0.0
    more = {}
    if method in ON_GRAPHS:
        more["laplacian"] = neighbours_laplacian(POINTS[rows], NEIGHBOURS)
    bank = mkldist.KernelBank(POINTS[rows], ALL_KERNELS)
    return by_solve(method, bank, labels, POINTS[NEW], **METHODS[method], **more)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of one sweep of all methods, which share its passes."""
    folder = tmp_path_factory.mktemp("methods") / "results"
    entries = [{"name": name, **params} for name, params in METHODS.items()]
    bank = {"kernels": ALL_KERNELS, "normalisation": "trace"}
    graph = {"neighbours": NEIGHBOURS}
    sweep(folder, given(TWO, unlabelled=True), entries, bank, graph=graph)
    return folder


def test_all_methods_are_here() -> None:
    assert set(METHODS) == set(mkldist.list_methods().index)


@pytest.mark.parametrize("method", METHODS)
def test_a_sweep_and_its_models_find_what_solve_finds(method, results, tmp_path):
    expected = solved(method)
    tree = mkldist.open_results(results)
    node = tree[f"mine/{method}"]
    expected.assert_near(by_sweep(node, NEW), method)
    rtol = LOOSE.get(method, ROUNDING)
    model = model_of(results, tmp_path / "a.model", "--method", method)
    assert_model(model, expected, X[NEW], rtol)
    run = node.to_dataset().squeeze()
    values = expected.values[len(NEW) - int(run.n_test) :]
    test = NEW[len(NEW) - len(values) :]
    wrong = np.where(values >= 0, 1, -1) != TWO[test]
    assert float(run.test_error) == pytest.approx(wrong.mean(), abs=1e-15)
