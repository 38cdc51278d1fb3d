"""Banks of every backend, normalisation and origin: the same answers by `solve` and by a sweep."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import mkldist
from tests.fit.problems import FEW_KERNELS, FEW_LABELS, METHODS, TEST, TRAIN, TWO, X, given
from tests.fit.ways import (
    LOOSE,
    ROUNDING,
    TOL,
    Found,
    assert_near,
    by_estimator,
    by_solve,
    by_sweep,
    model_of,
    standardised,
    sweep,
)

POINTS = standardised(X, TRAIN)
LABELS = TWO[TRAIN]
EXACT = ("memory", "recompute")
BACKENDS = (*EXACT, "mmap", "stream", "sharded", "factors")
ON_FACTORS = (
    "level", "silp", "simplemkl", "hessianmkl", "lp_mkl", "group_mkl", "spicymkl", "elastmkl",
    "primalmkl", "uniform", "best_single", "svm", "align", "alignf", "easymkl",
)  # fmt: skip
SWEPT = ("level", "spicymkl", "primalmkl", "alignf", "best_single", "uniform")
NORMALISATIONS: dict[str, Any] = {
    "none": "none",
    "trace": "trace",
    "variance": "variance",
    "cosine": "cosine",
    "centred": ["centre", "trace"],
    "centred-cosines": ["cosine", "centre"],
}


@cache
def in_memory(method: str) -> Found:
    """Return the answer on a bank in memory."""
    bank = mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, backend="memory", normalisation="trace")
    return by_solve(method, bank, LABELS, POINTS[TEST], **METHODS[method])


@pytest.mark.slow
def test_solve_finds_the_same_on_every_backend():
    supervised = [name for name in METHODS if name not in FEW_LABELS]
    with mkldist.KernelBank(
        POINTS[TRAIN], FEW_KERNELS, backend="recompute", normalisation="trace"
    ) as bank:
        for method in supervised:
            found = by_solve(method, bank, LABELS, POINTS[TEST], **METHODS[method])
            in_memory(method).assert_near(found, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", ON_FACTORS)
def test_solve_on_factors_is_near_the_kernels(method):
    bank = mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, backend="factors", normalisation="trace")
    solution = mkldist.solve(method, bank, LABELS, tol=1e-6, **METHODS[method])
    expected = in_memory(method)
    assert solution.exact_gap <= 1e-6
    assert solution.objective == pytest.approx(expected.bounds[0], rel=2e-6)
    assert solution.exact_dual_objective <= expected.bounds[0] * (1 + 1e-12)
    assert_near(solution.decision_function(bank.on(POINTS[TEST])), expected.values, 1e-2)


@pytest.fixture(scope="module")
def backends(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a sweep over banks of all backends."""
    folder = tmp_path_factory.mktemp("backends") / "results"
    banks = [{"name": name, "kernels": FEW_KERNELS, "backend": name} for name in BACKENDS]
    entries = [{"name": name, **METHODS[name]} for name in SWEPT]
    return folder, sweep(folder, given(TWO), entries, banks)


def test_a_sweep_builds_a_bank_that_another_one_computes_in_passes(tmp_path):
    names = "memory", "recompute"
    banks = [{"name": name, "kernels": FEW_KERNELS, "backend": name} for name in names]
    tree = sweep(tmp_path / "results", given(TWO), [{"name": "level", "C": 10.0}], banks)
    for name in names:
        in_memory("level").assert_near(by_sweep(tree[f"mine/{name}/level"], TEST))


@pytest.mark.slow
@pytest.mark.parametrize("backend", [*EXACT, "mmap", "stream", "sharded"])
@pytest.mark.parametrize("method", SWEPT)
def test_a_sweep_finds_the_same_on_every_backend(method, backend, backends):
    found = by_sweep(backends[1][f"mine/{backend}/{method}"], TEST)
    in_memory(method).assert_near(found, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", SWEPT)
def test_a_sweep_on_factors_finds_what_solve_finds_on_them(method, backends, tmp_path):
    folder, tree = backends
    bank = mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, backend="factors", normalisation="trace")
    expected = by_solve(method, bank, LABELS, POINTS[TEST], **METHODS[method])
    node = tree[f"mine/factors/{method}"]
    expected.assert_near(by_sweep(node, TEST), rtol=1e-6)
    assert float(node.exact_gap.squeeze()) <= TOL
    model = model_of(folder, tmp_path / "a.model", "--method", method, "--bank", "factors")
    assert_near(model.decision_function(X[TEST]), expected.values, 1e-6)


@pytest.mark.parametrize("backend", [*EXACT, "factors"])
def test_an_estimator_finds_the_same_on_every_backend(backend):
    model = mkldist.MKLClassifier(
        C=10.0, kernels=FEW_KERNELS, normalisation="trace", tol=TOL, backend=backend
    ).fit(X[TRAIN], LABELS)
    expected = in_memory("level")
    if backend == "factors":
        assert model.objective_ == pytest.approx(expected.bounds[0], rel=2 * TOL)
        assert_near(model.decision_function(X[TEST]), expected.values, 1e-3)
    else:
        expected.assert_near(by_estimator(model, X[TEST]))


def test_single_precision_is_near():
    bank = mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, dtype="float32", normalisation="trace")
    found = by_solve("level", bank, LABELS, POINTS[TEST], tol=1e-6, C=10.0)
    expected = in_memory("level")
    assert_near(found.bounds, expected.bounds, 1e-5)
    assert_near(found.values, expected.values, 1e-2)


@pytest.fixture(scope="module")
def normalised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Return a sweep over banks of all normalisations."""
    folder = tmp_path_factory.mktemp("normalised") / "results"
    banks = [
        {"name": name, "kernels": FEW_KERNELS, "normalisation": value}
        for name, value in NORMALISATIONS.items()
    ]
    entries = [{"name": "level", "C": 1.0}, {"name": "primalmkl", "C": 10.0}]
    return folder, sweep(folder, given(TWO), entries, banks)


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_normalisations(name, normalised, tmp_path):
    folder, tree = normalised
    normalisation = NORMALISATIONS[name]
    bank = mkldist.KernelBank(POINTS[TRAIN], FEW_KERNELS, normalisation=normalisation)
    for method, params in (("level", {"C": 1.0}), ("primalmkl", {"C": 10.0})):
        expected = by_solve(method, bank, LABELS, POINTS[TEST], **params)
        expected.assert_near(by_sweep(tree[f"mine/{name}/{method}"], TEST))
    own = {"C": 1.0, "kernels": FEW_KERNELS, "normalisation": normalisation, "tol": TOL}
    fitted = mkldist.MKLClassifier("level", **own).fit(X[TRAIN], LABELS)
    level = by_solve("level", bank, LABELS, POINTS[TEST], C=1.0)
    level.assert_near(by_estimator(fitted, X[TEST]), bias="centre" not in normalisation)
    model = model_of(folder, tmp_path / "a.model", "--method", "level", "--bank", name)
    assert_near(model.decision_function(X[TEST]), level.values)


def matrices() -> np.ndarray:
    """Return Gram matrices of all rows by scikit-learn, as large as those of unit trace."""
    n = len(TRAIN)
    rows = POINTS[:, :2], POINTS
    return np.array(
        [rbf_kernel(rows[0], gamma=0.5) / n, rbf_kernel(rows[1], gamma=0.1) / n,
         polynomial_kernel(rows[0], degree=2, gamma=1.0) / n]
    )  # fmt: skip


@pytest.fixture(scope="module")
def precomputed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a sweep on Gram matrices."""
    entries = [{"name": name, **METHODS[name]} for name in SWEPT]
    data = {"mine": {"grams": matrices(), "y": TWO, "train": TRAIN[None], "test": TEST[None]}}
    bank = {"family": "precomputed", "normalisation": "none"}
    return sweep(tmp_path_factory.mktemp("grams") / "results", data, entries, bank)


@pytest.mark.slow
@pytest.mark.parametrize("method", SWEPT)
def test_gram_matrices(method, precomputed):
    grams = matrices()
    between = grams[:, TEST[:, None], TRAIN]
    own = grams[:, TRAIN[:, None], TRAIN]
    bank = mkldist.KernelBank.from_grams(own)
    expected = by_solve(method, bank, LABELS, between, **METHODS[method])
    expected.assert_near(by_sweep(precomputed[f"mine/{method}"], TEST), method)
    solution = mkldist.solve(method, own, LABELS, tol=TOL, **METHODS[method])
    rtol = LOOSE.get(method, ROUNDING)
    assert_near(solution.decision_function(between), expected.values, rtol)
    assert_near(solution.kernel_weights, expected.weights, rtol)


@pytest.mark.parametrize("method", ["level", "primalmkl", "best_single"])
def test_an_estimator_on_gram_matrices_by_row_numbers(method):
    grams = matrices()

    def at(left: np.ndarray, right: np.ndarray, gram: int) -> np.ndarray:
        return grams[gram][np.ix_(left[:, 0].astype(int), right[:, 0].astype(int))]

    kernels = [mkldist.kernels.Custom(at, {"gram": [0, 1, 2]})]
    params = dict(METHODS[method])
    model = mkldist.MKLClassifier(
        method, C=params.pop("C", 1.0), kernels=kernels, normalisation="none", tol=TOL,
        impute=None, scale=None, method_params=params,
    )  # fmt: skip
    model.fit(TRAIN[:, None], LABELS)
    bank = mkldist.KernelBank.from_grams(grams[:, TRAIN[:, None], TRAIN])
    between = grams[:, TEST[:, None], TRAIN]
    expected = by_solve(method, bank, LABELS, between, **METHODS[method])
    expected.assert_near(by_estimator(model, TEST[:, None]))
