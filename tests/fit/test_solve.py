"""``solve`` and ``solve_path``: solutions, lines, and messages about arrays, labels and graphs."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

import mkldist
import mkldist.fit.api as solve_module
from mkldist.core import threads as blas_threads
from mkldist.core.arrays import Target
from mkldist.errors import ConvergenceWarning, GramError, SpecError
from mkldist.fit.api import SolverLines
from mkldist.fit.inputs import check_method, checked_laplacian, label_array, label_hint
from mkldist.kernels import Gaussian, Linear
from mkldist.kernels.graph import graph_laplacian, graph_spec
from mkldist.methods.registry import METHODS
from mkldist.solvers.progress import Clock
from tests.methods import instances


@pytest.fixture(scope="module")
def instance():
    return instances.balanced()


def test_a_solution_shows_what_was_reached_in_a_line(instance):
    solution = mkldist.solve("level", instance.grams, instance.y, C=instance.C)
    shown = repr(solution)
    assert shown.startswith(f"<Solution: converged at {solution.objective:.6g}, gap 0.00")
    assert f"{np.count_nonzero(solution.kernel_weights)} of {len(instance.grams)} kernels" in shown
    assert len(shown) < 100


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


def test_labels_of_any_numbers_are_float64():
    for given in ([1, -1, 1], np.array([True, False, True]), np.array([1, -1, 1], np.int8)):
        labels = label_array(given, (3,))
        assert labels.dtype == np.float64
        np.testing.assert_array_equal(labels, np.asarray(given, dtype=np.float64))
    columns = np.asfortranarray([[1, -1], [-1, 1], [1, 1]])
    assert label_array(columns, (3,)).flags.c_contiguous


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([1.0, np.nan, np.inf], r"y\[1\]: found nan; expected a finite number. Leave this point"),
        ([[1.0, 1.0], [1.0, -np.inf], [1.0, 1.0]], r"y\[1, 1\]: found -inf; expected a finite"),
        (np.ones((3, 2, 2)), r"y: found shape \(3, 2, 2\)"),
    ],
)
def test_labels_of_other_shapes_or_not_finite_are_refused(labels, said):
    with pytest.raises(GramError, match=said):
        label_array(labels, (3,))


SIGNS = [-1.0, 1.0, 1.0]
LABELS = {
    "signs": SIGNS,
    "ones": [1.0, 1.0, 1.0],
    "minus ones": [-1.0, -1.0, -1.0],
    "partial": [-1.0, 0.0, 1.0],
    "one sign and zero": [0.0, 1.0, 1.0],
    "values": [0.5, 1.0, -1.0],
    "none": [],
}
FITTING = {
    Target.CLASSES: {"signs"},
    Target.PARTIAL: {"signs", "partial"},
    Target.ONE_CLASS: {"signs", "ones"},
    Target.VALUES: set(LABELS),
}


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("name", LABELS)
def test_labels_fit_what_a_method_learns(target, name):
    labels = np.array(LABELS[name])
    method = METHODS["uniform"]
    if name in FITTING[target]:
        check_method(method, target, labels, has_laplacian=False)
        return
    shown = ", ".join(f"{value:g}" for value in sorted(set(LABELS[name])))
    with pytest.raises(GramError) as caught:
        check_method(method, target, labels, has_laplacian=False)
    assert str(caught.value).startswith(f"y: found labels {{{shown}}}; expected ")


def test_the_first_column_that_does_not_fit_is_shown():
    columns = np.array([SIGNS, [1.0, 1.0, 1.0], [2.0, 3.0, 4.0]]).T
    with pytest.raises(
        GramError, match=r"found labels \{1\}; expected both classes, as -1 and \+1"
    ):
        check_method(METHODS["level"], Target.CLASSES, columns, has_laplacian=False)


LAPLACIAN = np.array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])


def test_laplacians_are_float64_and_stay_sparse():
    assert checked_laplacian(None, 3) is None
    dense = checked_laplacian(LAPLACIAN.astype(int).tolist(), 3)
    np.testing.assert_array_equal(dense, LAPLACIAN)
    thin = checked_laplacian(sparse.csr_array(LAPLACIAN.astype(np.float32)), 3)
    assert sparse.issparse(thin)
    assert thin.dtype == dense.dtype == np.float64


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda L: L[:2], r"found shape \(2, 3\); expected \(3, 3\)"),
        (lambda L: L * np.where(np.eye(3), np.inf, 1.0), "found entries that are not finite"),
        (lambda L: L + np.eye(3, k=1), "found an asymmetry of 1; expected a symmetric matrix"),
        (lambda L: L - 0.5 * np.eye(3), "found an eigenvalue of -0.5; expected a positive semi"),
    ],
)
def test_other_matrices_are_no_laplacians(form, change, said):
    with pytest.raises(GramError, match=f"laplacian: {said}"):
        checked_laplacian(form(change(LAPLACIAN)), 3)


def test_the_laplacian_that_the_message_names_does():
    x = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(np.arange(20) < 8, np.where(x[:, 0] > 0, 1, -1), 0)
    with pytest.raises(SpecError) as caught:
        mkldist.solve("lapmkl", [x @ x.T], y)
    given = re.search(r"laplacian=(\S+ .*?\)\)),", str(caught.value)).group(1)
    names = {"X": x, "graph_laplacian": graph_laplacian, "graph_spec": graph_spec}
    assert mkldist.solve("lapmkl", [x @ x.T], y, laplacian=eval(given, names)).converged


X = np.random.default_rng(0).normal(size=(30, 2))
GRAMS = np.array([X @ X.T, (X @ X.T) ** 2])


@pytest.mark.parametrize(
    ("method", "y", "said"),
    [
        ("level", X[:, 0], 'call spicymkl, elastmkl or primalmkl, with loss="squared".'),
        ("level", np.arange(30) % 2, "Write np.where(y == 1, 1, -1)."),
        ("level", np.arange(30) % 2 + 1, "Write np.where(y == 2, 1, -1)."),
        ("level", np.arange(30) % 3 - 1, "If 0 marks points without a label, call lapmkl, lapsvm"),
        ("primalmkl", np.arange(30) % 3, "np.where(y == 2, 1, -1); for real values, call spicy"),
    ],
)
def test_labels_that_do_not_fit_are_met_with_what_to_do(method, y, said):
    with pytest.raises(GramError, match=r"^y: found labels .*" + re.escape(said)):
        mkldist.solve(method, GRAMS, y)


def test_the_loss_that_is_named_learns_real_values():
    for method in ("spicymkl", "elastmkl", "primalmkl"):
        assert mkldist.solve(method, GRAMS, X[:, 0], loss="squared", tol=0.1).gap <= 0.1


def test_more_labels_than_are_shown_are_told():
    with pytest.raises(GramError, match=r"found labels \{.*, \.\.\.\}; expected both classes"):
        mkldist.solve("level", GRAMS, X[:, 0])


def test_one_class_alone_has_no_remedy():
    assert label_hint(METHODS["level"], [1.0], Target.CLASSES) == ""
    assert label_hint(METHODS["primalmkl"], [0.5, 2.0], Target.ONE_CLASS) == ""


CS = [0.01, 0.1, 1.0, 10.0]
KERNELS = [Gaussian(relative_widths=[0.25, 0.5, 1.0, 2.0]), Linear()]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["level", "spicymkl", "primalmkl"])
def test_a_good_c_does_not_depend_on_the_number_of_rows(method):
    X, classes = load_breast_cancer(return_X_y=True)
    y = np.where(classes == 1, 1.0, -1.0)
    for n in (80, 240):
        errors = np.zeros(len(CS))
        draws = StratifiedShuffleSplit(2, train_size=n, test_size=200, random_state=0)
        for train, test in draws.split(X, y):
            scaler = StandardScaler().fit(X[train])
            bank = mkldist.KernelBank(scaler.transform(X[train]), KERNELS)
            new = bank.on(scaler.transform(X[test]))
            path = mkldist.solve_path(method, bank, y[train], C=CS)
            signs = [np.sign(one.decision_function(new)) for one in path]
            errors += [np.mean(sign != y[test]) / 2 for sign in signs]
        assert errors[2] <= errors.min() + 0.015, n
        assert errors[0] >= errors[2] + 0.01, n


X_LINES = np.random.default_rng(0).normal(size=(60, 3))
Y = np.sign(X_LINES[:, 0] * X_LINES[:, 1])
KERNELS_LINES = [{"function": "gaussian", "widths": [0.5, 1, 2], "features": ["all", "each"]}]


@pytest.fixture(scope="module")
def bank():
    return mkldist.KernelBank(X_LINES, KERNELS_LINES)


def lines(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["level", "spicymkl", "primalmkl", "skm", "uniform"])
def test_two_prints_the_bounds_of_every_iteration_and_the_outcome(method, bank, capsys):
    found = mkldist.solve(method, bank, Y, trace=True, verbose=2)
    *iterations, last = lines(capsys)
    assert "a further round" not in "".join(iterations)
    said = [re.match(rf"\[{method}\] iteration (\d+): objective (\S+), lower", one)
            for one in iterations]  # fmt: skip
    assert [int(one.group(1)) for one in said] == list(range(1, len(found.trace["gap"]) + 1))
    values = [float(one.group(2)) for one in said]
    np.testing.assert_allclose(values, found.trace["objective"], rtol=1e-5)
    assert last.startswith(f"[{method}] {found.stop_reason} at {found.objective:.6g}, ")
    assert f"{found.counters.passes} pass" in last


def test_one_prints_an_iteration_about_once_a_second(bank, capsys):
    found = mkldist.solve("level", bank, Y, verbose=True)
    assert len(lines(capsys)) < min(5, found.counters.outer_iterations)
    for seconds, printed in ((0.0, 3), (60.0, 0)):
        clock = Clock()
        SolverLines("level", 1, clock, seconds)
        for k in range(3):
            clock.on_iteration(1.0, 0.5 + k / 10)
        assert len(lines(capsys)) == printed


def test_it_is_silent_unless_asked(bank, capsys):
    mkldist.solve("level", bank, Y)
    mkldist.solve_path("level", bank, Y, C=[1.0, 10.0])
    assert lines(capsys) == []
    mkldist.solve_path("level", bank, Y, C=[1.0, 10.0], verbose=True)
    assert sum("converged" in one for one in lines(capsys)) == 2


def test_solvers_on_factors_are_heard(capsys):
    bank = mkldist.KernelBank(X_LINES, KERNELS_LINES, backend="factors", tolerance=0.5)
    mkldist.solve("level", bank, Y, verbose=2)
    *iterations, last = lines(capsys)
    assert any("a further round, whose bounds start anew" in one for one in iterations)
    assert ", exact " in last


@pytest.mark.parametrize("value", ["yes", None, -1, 1.5])
def test_other_words_are_refused(value, bank):
    with pytest.raises(SpecError, match=r"^verbose: found .*; expected False, True, or 2"):
        mkldist.solve("level", bank, Y, verbose=value)
    model = mkldist.OneClassMKL(verbose=value)
    with pytest.raises(SpecError, match=r"^verbose: found "):
        model.fit(X_LINES)
