"""``mkldist.solve``: solutions for Gram matrices in memory, and messages about mistakes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

import mkldist
import mkldist.fit.api as solve_module
from mkldist.core import threads as blas_threads
from mkldist.errors import ConvergenceWarning, GramError, SpecError
from mkldist.methods.registry import METHODS
from tests.methods import instances
from tests.methods.references.recorded import optimum_of


@pytest.fixture(scope="module")
def instance():
    return instances.balanced()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_returns_a_certified_solution(name, instance):
    n = len(instance.y)
    options = {"laplacian": n * np.eye(n) - 1} if METHODS[name].needs_laplacian else {}
    solution = mkldist.solve(name, instance.grams, instance.y, **options)
    assert isinstance(solution, mkldist.Solution)
    assert solution.kernel_weights.shape == (len(instance.grams),)
    assert solution.dual_variables.shape == (n,)
    assert solution.dual_objective <= solution.objective * (1 + 1e-12)
    assert solution.gap <= 0.01
    assert solution.converged
    assert solution.decision_function(instance.grams).shape == (n,)


def test_a_solution_shows_what_was_reached_in_a_line(instance):
    solution = mkldist.solve("level", instance.grams, instance.y, C=instance.C)
    shown = repr(solution)
    assert shown.startswith(f"<Solution: converged at {solution.objective:.6g}, gap 0.00")
    assert f"{np.count_nonzero(solution.kernel_weights)} of {len(instance.grams)} kernels" in shown
    assert len(shown) < 100


def test_optimum_is_the_conic_one(instance):
    optimum = optimum_of("level", instances.balanced)
    for name in ("level", "simplemkl"):
        solution = mkldist.solve(name, instance.grams, instance.y, C=instance.C, tol=1e-8)
        assert solution.objective == pytest.approx(optimum, rel=1e-6)


def test_decision_function_on_new_points_is_that_of_an_svm_on_the_combined_kernel(instance):
    train, test = np.arange(40), np.arange(40, 60)
    grams = instance.grams[:, train][:, :, train]
    cross = instance.grams[:, test][:, :, train]
    solution = mkldist.solve("level", grams, instance.y[train], C=50.0, tol=1e-8)
    combined = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    svc = SVC(C=50.0, kernel="precomputed", tol=1e-8).fit(combined, instance.y[train])
    expected = svc.decision_function(np.einsum("m,mij->ij", solution.kernel_weights, cross))
    np.testing.assert_allclose(solution.decision_function(cross), expected, atol=1e-4)
    with pytest.raises(GramError, match=r"expected \(M, n_test, n\) = \(7, n_test, 40\)"):
        solution.decision_function(cross[:3])


def spoilt(grams, what):
    grams = grams.copy()
    if what == "NaN":
        grams[2, 3, 4] = np.nan
    elif what == "infinite":
        grams[2, 3, 3] = np.inf
    elif what == "asymmetric":
        grams[2, 0, 1] += 0.1
    elif what == "indefinite":
        grams[2] -= 0.1 * np.eye(len(grams[2]))
    elif what == "not square":
        grams = grams[:, :, :-1]
    elif what == "one matrix":
        grams = grams[0]
    return grams


@pytest.mark.parametrize(
    "what", ["NaN", "infinite", "asymmetric", "indefinite", "not square", "one matrix"]
)
def test_unusable_gram_matrices_are_refused(what, instance):
    with pytest.raises(GramError) as caught:
        mkldist.solve("level", spoilt(instance.grams, what), instance.y)
    if what in ("NaN", "infinite", "asymmetric", "indefinite"):
        assert "2" in str(caught.value)


@pytest.mark.parametrize(
    "labels",
    [np.ones(60), np.zeros(60), np.arange(60.0), np.ones(59), np.full(60, np.nan)],
    ids=["one class", "zeros", "many values", "too few", "NaN"],
)
def test_unusable_labels_are_refused(labels, instance):
    with pytest.raises(GramError):
        mkldist.solve("level", instance.grams, labels)


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("levle", {}, "Did you mean 'level'"),
        (None, {}, "method: found None; expected one of"),
        (["level"], {}, r"method: found \['level'\]; expected one of"),
        ("level", {"c": 1.0}, "C"),
        ("level", {"C": -1.0}, "C"),
        ("level", {"C": "much"}, "C"),
        ("level", {"tol": 0.0}, "tol"),
        ("simplemkl", {"max_iter": 0}, "max_iter"),
    ],
)
def test_mistakes_in_names_and_parameters_are_named(method, params, said, instance):
    with pytest.raises(SpecError, match=said):
        mkldist.solve(method, instance.grams, instance.y, **params)


def test_float32_and_lists_are_taken(instance):
    grams = instance.grams.astype(np.float32)
    solution = mkldist.solve("level", grams, instance.y.astype(int).tolist(), C=10.0, tol=1e-4)
    exact = mkldist.solve("level", instance.grams, instance.y, C=10.0, tol=1e-4)
    assert solution.objective == pytest.approx(exact.objective, rel=1e-3)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (["M", "B"] * 30, "y: found texts such as M; expected numbers"),
        (["1", "-1"] * 30, "y: found texts such as 1; expected numbers"),
        (np.ones((60, 1)), r"y: found shape \(60, 1\); expected \(n,\): .* Use y.ravel\(\)"),
        (np.ones((30, 2)), r"y: found shape \(30, 2\)"),
        (1.0, r"y: found shape \(\)"),
        ([[1.0], [1.0, 2.0]], "y: found list"),
        ([1.0, object()], "y: found list"),
        (np.full(60, 1j), "y: found an array of complex128"),
        ({"a": 1}, "y: found dict"),
    ],
)
def test_labels_that_are_no_vector_of_numbers_are_refused(y, said, instance):
    with pytest.raises(GramError, match=said):
        mkldist.solve("level", instance.grams, y)


@pytest.mark.parametrize(
    ("grams", "said"),
    [
        ([np.eye(2), np.eye(3)], "grams: found list"),
        (np.full((2, 60, 60), "a"), "grams: found texts such as a"),
        (np.eye(60), r"grams: found shape \(60, 60\); expected \(M, n, n\)"),
        (np.ones((1, 60, 60), dtype=complex), "grams: found an array of complex128"),
        (np.zeros((0, 60, 60)), "at least one matrix"),
        (None, r"grams: found shape \(\); expected"),
    ],
)
def test_grams_that_are_no_stack_of_matrices_are_refused(grams, said, instance):
    with pytest.raises(GramError, match=said):
        mkldist.solve("level", grams, instance.y)


@pytest.mark.parametrize("name", ["level", "rls"])
def test_a_laplacian_that_a_method_does_not_use_is_refused(instance, name):
    laplacian = np.eye(len(instance.y)) - 1.0 / len(instance.y)
    with pytest.raises(SpecError, match=f"one for {name}, which uses no graph.*lapsvm"):
        mkldist.solve(name, instance.grams, instance.y, laplacian=laplacian)


def test_a_laplacian_that_is_no_matrix_of_numbers_is_refused(instance):
    with pytest.raises(GramError, match="laplacian: found texts such as near"):
        mkldist.solve("lapsvm", instance.grams, instance.y, laplacian=[["near"]])


def test_a_tolerance_that_was_not_reached_is_warned_of(instance):
    said = r"level stopped before its tolerance \(max_iter\) after 1 iterations: .* tol 1e-08"
    with pytest.warns(ConvergenceWarning, match=said) as caught:
        solution = mkldist.solve("level", instance.grams, instance.y, max_iter=1, tol=1e-8)
    assert f"relative gap {solution.gap:.2g}" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_warning_names_what_the_tolerance_limits(instance):
    laplacian = np.eye(len(instance.y)) - 1.0 / len(instance.y)
    settings = {"laplacian": laplacian, "form": "shared", "max_iter": 1, "tol": 1e-12}
    with pytest.warns(ConvergenceWarning) as caught:
        solution = mkldist.solve("lapmkl", instance.grams, instance.y, **settings)
    assert f"stationarity {solution.extra['stationarity']:.2g}" in str(caught[0].message)
    assert "relative gap" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("spicymkl", {"epsilon": 0.1}, 'epsilon with loss = "logistic", where it has no effect; '
         'expected '
         'loss = "epsilon", or no epsilon'),
        ("spicymkl", {"mix": 0.1}, 'mix with regularizer = "block1", where it has no effect'),
        ("elastmkl", {"q": 1.5}, 'q with regularizer = "elastic-net", where it has no effect'),
        ("primalmkl", {"epsilon": 1.0}, 'epsilon with loss = "squared-hinge", where it has no '
         'effect'),
        ("lapsvm", {"early_stop": True}, 'early_stop with inner = "newton", where it has no '
         'effect'),
    ],
)  # fmt: skip
def test_parameters_without_effect_are_refused_by_name(method, params, said, instance):
    with pytest.raises(SpecError) as caught:
        mkldist.solve(method, instance.grams, instance.y, **params)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("level", {"C": 1e4}),
        ("hessianmkl", {"C": 1e4}),
        ("gmkl", {"C": 1e4}),
        ("skm", {"C": 1e4}),
        ("primalmkl", {"C": 100000000.0}),
    ],
)
def test_kernels_in_few_digits_have_the_bounds_of_semidefinite_ones(name, params):
    """Eigenvalues of -5e-9 of the trace make objectives unbounded that C magnifies."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    y = np.sign(x[:, 0] + 0.7 * rng.normal(size=30))
    exact, coarse = [], []
    for _ in range(3):
        K, E = (x * rng.random(4)) @ x.T, rng.normal(size=(30, 30))
        E += E.T
        coarse.append(K + E / np.linalg.norm(E, 2) * 5e-9 * np.trace(K))
        values, vectors = np.linalg.eigh(coarse[-1])
        assert values[0] < -1e-9 * np.trace(K)
        exact.append((vectors * np.maximum(values, 0)) @ vectors.T)
    solution = mkldist.solve(name, np.array(coarse), y, tol=1e-3, **params)
    expected = mkldist.solve("silp", np.array(exact), y, C=1e4, tol=1e-5)
    assert solution.converged
    assert solution.dual_objective <= solution.objective * (1 + 1e-9)
    if name not in ("gmkl", "primalmkl") and "C" in params:
        assert solution.objective == pytest.approx(expected.objective, rel=2e-3)


@pytest.mark.parametrize("limit", [0, 2000])
def test_small_problems_take_one_thread_of_linear_algebra(limit, monkeypatch):
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    seen, solve_job = [], solve_module.solve_job

    def watched(*given):
        seen.append(threads())
        return solve_job(*given)

    x = np.random.default_rng(0).normal(size=(20, 3))
    with threadpool_limits(limits=2):
        before = threads()
        monkeypatch.setattr(blas_threads, "MANY_POINTS", limit)
        monkeypatch.setattr(solve_module, "solve_job", watched)
        mkldist.solve("level", (x @ x.T)[None], np.sign(x[:, 0]), C=1.0)
        assert threads() == before
    assert seen == [[1] * len(before) if limit else before]


NOT_FOR_ARRAYS = {
    "scipy.stats", "sklearn", "pandas", "xarray", "zarr", "dask", "distributed", "matplotlib",
}  # fmt: skip


@pytest.mark.slow
def test_a_call_imports_no_heavy_package_that_it_does_not_use():
    code = """
import sys
import numpy as np, mkldist
x = np.linspace(-2, 2, 20)
grams = np.array([np.outer(x, x), np.outer(x, x) ** 2])
mkldist.solve("level", grams, np.where(np.abs(x) < 1, 1.0, -1.0), C=10.0)
print(*sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not NOT_FOR_ARRAYS & set(run.stdout.split())
