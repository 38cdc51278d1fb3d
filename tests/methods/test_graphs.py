"""Deformed kernels, bounds on a graph in spite of rounding, and LapSVM."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

import mkldist
from mkldist.core.arrays import Target
from mkldist.errors import ConvergenceWarning, SpecError
from mkldist.methods import deformed
from mkldist.methods.deformed import Deformation, pivoted_factor
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import ArrayCache
from mkldist.solvers.progress import StopReason
from tests.methods import instances
from tests.methods.manifolds import EDGES, at_edge, grams_between, manifold
from tests.methods.references.manifold import heat_laplacian, primal_optimum, some_labels
from tests.variants import quick


def positive_definite(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    return A @ A.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize(("gamma_a", "gamma_i"), [(1.0, 1.0), (1e-3, 2.0), (5.0, 1e-3), (0.3, 0.0)])
def test_block_and_coefficients_are_those_of_the_definition(gamma_a, gamma_i, dense):
    shape = manifold("moons", n=40)
    K, L = positive_definite(40), shape.laplacian.toarray()
    labelled = np.flatnonzero(shape.y)
    given = L if dense else shape.laplacian
    kernel = Deformation(given, gamma_a, gamma_i, labelled)(K)
    expected = np.linalg.inv(gamma_a * np.linalg.inv(K) + gamma_i * L)
    np.testing.assert_allclose(kernel.block(), expected[np.ix_(labelled, labelled)], rtol=1e-8)
    c = np.linspace(-1, 1, len(labelled))
    right = np.zeros(40)
    right[labelled] = c
    a = np.linalg.solve(gamma_a * np.eye(40) + gamma_i * L @ K, right)
    np.testing.assert_allclose(kernel.coefficients(c), a, rtol=1e-7, atol=1e-9 * abs(a).max())


@pytest.mark.parametrize("dense", [True, False])
def test_kept_factors_serve_other_labels_and_weights_and_no_other_kernel_or_graph(
    dense, monkeypatch
):
    shape, factored = manifold("moons", n=40), []
    given = shape.laplacian.toarray() if dense else shape.laplacian
    plain = deformed.pivoted_factor
    monkeypatch.setattr(deformed, "pivoted_factor", lambda K: factored.append(K) or plain(K))
    kept, labelled = ArrayCache(2**24), np.flatnonzero(shape.y)

    def holds(K, L, gamma_a, gamma_i, some):
        block = Deformation(L, gamma_a, gamma_i, some, kept)(K).block()
        dense_L = L if isinstance(L, np.ndarray) else L.toarray()
        expected = np.linalg.inv(gamma_a * np.linalg.inv(K) + gamma_i * dense_L)
        np.testing.assert_allclose(block, expected[np.ix_(some, some)], rtol=1e-8)

    for K in (positive_definite(40), positive_definite(40, seed=1)):
        for some in (labelled, labelled[::2]):  # another fold
            for gammas in ((1.0, 1.0), (1e-2, 2.0), (1e-2, 1e-3)):
                holds(K, given, *gammas, some)
    assert len(factored) == 2  # one for each kernel
    holds(positive_definite(40), 2.0 * given, 1.0, 1.0, labelled)
    assert len(factored) == 2  # the graph has no part in the factor, but in all else


def test_predictor_off_the_points_is_the_formula_of_sindhwani_niyogi_and_belkin():
    shape = manifold("circles", n=60)
    gamma_a, gamma_i = 0.1, 0.7
    labelled = np.flatnonzero(shape.y)
    new = np.random.default_rng(3).normal(size=(25, 2))
    c = np.array([0.3, -0.2, 0.5, -0.6])
    for K, k_new in zip(shape.grams, grams_between(new, shape.x), strict=True):
        a = Deformation(shape.laplacian, gamma_a, gamma_i, labelled)(K).coefficients(c)
        M = gamma_i / gamma_a * shape.laplacian.toarray()
        inner = np.linalg.solve(np.eye(60) + M @ K, M @ K[:, labelled])
        deformed = (k_new[:, labelled] - k_new @ inner) / gamma_a
        np.testing.assert_allclose(k_new @ a, deformed @ c, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 5])
def test_kernels_of_low_rank_deform_to_kernels(rank):
    rng = np.random.default_rng(rank)
    shape = manifold("moons", n=30)
    X = rng.normal(size=(30, rank))
    K = X @ X.T
    labelled = np.flatnonzero(shape.y)
    kernel = Deformation(shape.laplacian, 1e-4, 1.0, labelled)(K)
    system = 1e-4 * np.eye(rank) + X.T @ (shape.laplacian @ X)
    expected = X[labelled] @ np.linalg.solve(system, X[labelled].T) if rank else np.zeros((4, 4))
    np.testing.assert_allclose(kernel.block(), expected, rtol=1e-7, atol=1e-10)
    c = np.array([1.0, -1.0, 0.5, -0.5])
    f = K @ kernel.coefficients(c)
    np.testing.assert_allclose(f[labelled], expected @ c, rtol=1e-6, atol=1e-8)


def test_factor_multiplies_back_to_the_matrix():
    K = grams_between(*[manifold("moons", n=80).x] * 2)[3]  # numerically of low rank
    F = pivoted_factor(K)
    assert F.shape[1] < 80
    np.testing.assert_allclose(F @ F.T, K, atol=1e-14)


def test_penalty_is_the_two_norms():
    shape = manifold("moons", n=20)
    K = positive_definite(20)
    a = np.random.default_rng(0).normal(size=20)
    deformation = Deformation(shape.laplacian, 0.3, 0.6, np.flatnonzero(shape.y))
    expected = 0.3 * a @ K @ a + 0.6 * (K @ a) @ shape.laplacian.toarray() @ (K @ a)
    assert deformation.penalty(a, K @ a) == pytest.approx(expected)


TOL = 1e-6
N_POINTS, ENDS = 8, (0, 7)
GAMMAS = [(1.0, 1e-3), (1e-6, 1e3), (4e-6, 1e8), (1e-8, 1e2), (1e-8, 1e8), (1e8, 1e-8)]
every_gamma = pytest.mark.parametrize("gammas", GAMMAS)
every_kernel = pytest.mark.parametrize(
    ("kernel", "scale"),
    [("with-constant", 2.0**-26), ("with-constant", 2.0**26), ("full", 2.0**26), ("full", 1.0)],
)


MACHINES = [
    ("lapsvm", {}),
    ("lapsvm", {"inner": "pcg"}),
    ("laprls", {}),
    ("glks", {}),
    ("glks", {"acceleration": "none"}),
    ("lapmkl", {"form": "deformed"}),
    ("lapmkl", {"form": "shared"}),
    ("lsvm", {}),
]


def gram(kernel: str, scale: float) -> np.ndarray:
    """Return a Gram matrix without rounding: products of small integers."""
    rng = np.random.default_rng(0)
    features = rng.integers(-9, 10, (N_POINTS, 3)).astype(float)
    if kernel == "with-constant":
        features = np.column_stack([features, np.full(N_POINTS, 64.0)])
    if kernel == "full":
        features = np.column_stack([features, np.eye(N_POINTS)])
    return scale * (features @ features.T)


def laplacian() -> np.ndarray:
    """Return the iterated Laplacian of two paths that do not meet."""
    W = np.diag([1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0], 1)
    L = np.diag((W + W.T).sum(axis=1)) - W - W.T
    return L @ L


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Return the solution of a linear system by elimination."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    n = len(rows)
    for i in range(n):
        pivot = next(j for j in range(i, n) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(n):
            if j != i and rows[j][i] != 0:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def deformed_block(
    K: np.ndarray, gamma_a: Fraction, gamma_i: Fraction, weight: Fraction = Fraction(1)
) -> list[list[Fraction]]:
    """Return ``K (gamma_a I + gamma_i L K)^-1`` between the ends, K times the weight."""
    exact = [[weight * Fraction(v) for v in row] for row in K.tolist()]
    L = [[Fraction(v) for v in row] for row in laplacian().tolist()]
    n = range(N_POINTS)
    system = [
        [gamma_a * (i == j) + gamma_i * sum(L[i][k] * exact[k][j] for k in n) for j in n] for i in n
    ]
    columns = [solved(system, [Fraction(i == end) for i in n]) for end in ENDS]
    return [[sum(exact[end][k] * a[k] for k in n) for a in columns] for end in ENDS]


def spread_of_ends(
    K: np.ndarray, gamma_a: Fraction, gamma_i: Fraction, weight: Fraction
) -> Fraction:
    """Return h of the deformed kernel, the squared distance of the ends in it."""
    (first, across), (back, last) = deformed_block(K, gamma_a, gamma_i, weight)
    return first - across - back + last


def optimum(
    method: str, K: np.ndarray, gamma_a: float, gamma_i: float, weight: float = 1.0
) -> float:
    """Return the least objective with K times the weight."""
    a, i, d = Fraction(gamma_a), Fraction(gamma_i), Fraction(weight)
    if method == "lsvm":  # max 2 b - b^2 h / 2 over b <= 1/2
        h = spread_of_ends(K, 2 * a, 2 * i / N_POINTS**2, d)
        b = min(Fraction(1, 2), 2 / h) if h else Fraction(1, 2)
        return float(2 * b - b * b * h / 2)
    return float(2 / (2 + spread_of_ends(K, a, i, d)))  # max 2 b - b^2 - b^2 h / 2


@pytest.mark.slow
@every_gamma
@every_kernel
@pytest.mark.parametrize(("method", "params"), MACHINES, ids=str)
@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
def test_bounds_enclose_the_exact_optimum(method, params, kernel, scale, gammas):
    K, (gamma_a, gamma_i) = gram(kernel, scale), gammas
    y = np.zeros(N_POINTS)
    y[list(ENDS)] = 1.0, -1.0
    expected = optimum(method, K, gamma_a, gamma_i)
    solution = mkldist.solve(
        method,
        K[None],
        y,
        laplacian=laplacian(),
        gamma_a=gamma_a,
        gamma_i=gamma_i,
        tol=TOL,
        **params,
    )
    assert solution.dual_objective <= expected * (1 + 1e-9)
    assert solution.objective >= expected * (1 - 1e-9)
    if solution.converged:
        assert solution.objective <= expected * (1 + 2 * TOL)


@pytest.mark.slow
@every_gamma
@every_kernel
@pytest.mark.parametrize("more", quick([True, False]))
@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
def test_bounds_without_a_bias_enclose_the_exact_value(kernel, scale, gammas, more):
    K, (gamma_a, gamma_i) = gram(kernel, scale), gammas
    y = np.zeros(N_POINTS)
    y[list(ENDS)] = 1.0, -1.0
    grams = np.array([K, gram("full", 2.0**-9)] if more else [K])
    solution = mkldist.solve(
        "glks", grams, y, laplacian=laplacian(), gamma_a=gamma_a, gamma_i=gamma_i, tol=TOL,
        bias=False,
    )  # fmt: skip
    norms = Fraction(gamma_a), Fraction(gamma_i)
    blocks = [deformed_block(one, *norms) for one in grams]

    def value(d):
        system = [
            [sum(w * B[i][j] for w, B in zip(d, blocks, strict=True)) + (i == j) for j in range(2)]
            for i in range(2)
        ]
        c = solved(system, [Fraction(1), Fraction(-1)])
        return float((c[0] - c[1]) / 2)

    at = value([Fraction(w) for w in solution.kernel_weights.tolist()])
    alone = [value([Fraction(int(m == k)) for k in range(len(grams))]) for m in range(len(grams))]
    assert solution.dual_objective <= min(at, *alone) * (1 + 1e-9)
    assert solution.objective >= at * (1 - 1e-9)
    if solution.converged:
        assert solution.objective <= at * (1 + 2 * TOL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("power", "seed", "gamma_i", "n_labels"),
    quick([(20, 188, 1e-3, 7), (8, 128, 1.0, 4), (60, 1, 1.0, 5), (12, 171, 1e3, 7)], 3),
)
@pytest.mark.parametrize("params", quick([{"bias": False}, {"acceleration": "none"}, {}]), ids=str)
@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
def test_no_lower_bound_on_large_kernels_exceeds_a_value(power, seed, gamma_i, n_labels, params):
    rng, n = np.random.default_rng(seed), 7
    x = rng.normal(size=(n, 2))
    squares = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.5)
    W = np.triu(W, 1) + np.triu(W, 1).T
    L, y = np.diag(W.sum(axis=1)) - W, np.zeros(n)
    y[:n_labels] = np.where(np.arange(n_labels) % 2, -1.0, 1.0)
    grams = np.array([np.exp(-0.1 * squares), np.exp(-squares), x @ x.T]) * 10.0**power
    solution = mkldist.solve(
        "glks", grams, y, laplacian=L, gamma_a=1.0, gamma_i=gamma_i, tol=TOL, **params
    )
    values = [exact_least_squares(d, grams, L, y, gamma_i, params.get("bias", True))
              for d in (solution.kernel_weights, np.eye(3)[0])]  # fmt: skip
    assert np.isfinite(solution.objective)
    assert solution.dual_objective <= float(min(values)) * (1 + 1e-9)
    assert solution.objective >= float(values[0]) * (1 - 1e-9)


def exact_least_squares(d, grams, L, y, gamma_i, bias):
    """Return F at weights d in rational arithmetic, with gamma_a = 1."""
    n, labelled = range(len(y)), np.flatnonzero(y).tolist()
    graph, labels = ([[Fraction(v) for v in row] for row in a.tolist()] for a in (L, y[None]))
    system = [[Fraction(int(i == j)) for j in labelled] for i in labelled]
    for weight, K in zip(d.tolist(), grams, strict=True):
        exact = [[Fraction(v) for v in row] for row in K.tolist()]
        LK = [[sum(graph[i][k] * exact[k][j] for k in n) for j in n] for i in n]
        deforming = [[Fraction(gamma_i) * LK[i][j] + (i == j) for j in n] for i in n]
        columns = [solved(deforming, [Fraction(int(i == j)) for i in n]) for j in labelled]
        for row, i in zip(system, labelled, strict=True):
            for place, a in enumerate(columns):
                row[place] += Fraction(weight) * sum(exact[i][k] * a[k] for k in n)
    own = [labels[0][i] for i in labelled]
    c, ones = solved(system, own), solved(system, [Fraction(1)] * len(own))
    value = sum(label * v for label, v in zip(own, c, strict=True))
    return (value - (sum(c) ** 2 / sum(ones) if bias else 0)) / 2


@pytest.mark.slow
@every_gamma
@every_kernel
@pytest.mark.parametrize("gamma_sigma", [1e-6, 1e6])
@pytest.mark.filterwarnings("ignore::mkldist.errors.ConvergenceWarning")
def test_bounds_of_mklsvm_enclose_the_exact_value_at_its_weight(kernel, scale, gammas, gamma_sigma):
    K, (gamma_a, gamma_i) = gram(kernel, scale), gammas
    y = np.zeros(N_POINTS)
    y[list(ENDS)] = 1.0, -1.0
    norms = {"gamma_a": gamma_a, "gamma_i": gamma_i, "gamma_sigma": gamma_sigma}
    solution = mkldist.solve("mklsvm", K[None], y, laplacian=laplacian(), tol=TOL, **norms)
    d = float(solution.kernel_weights[0])
    value = optimum("lsvm", K, gamma_a, gamma_i, d) + gamma_sigma * d**2
    assert solution.dual_objective <= value * (1 + 1e-9)
    assert solution.objective >= value * (1 - 1e-9)


EVERY = [
    *(
        ("lapsvm", {}),
        ("laprls", {}),
        ("glks", {}),
        ("lsvm", {}),
        ("mklsvm", {"gamma_sigma": 1e-4}),
    ),
    *(("lapmkl", {"form": form}) for form in ("deformed", "shared")),
]
every_method = pytest.mark.parametrize(("method", "params"), EVERY, ids=str)


@pytest.mark.parametrize(("method", "params"), EVERY[:-1], ids=str)  # the last is not convex
def test_bounds_stay_close_where_the_graph_outweighs_the_kernel_by_far(method, params):
    shape = manifold("moons", n=200, per_class=3)
    traces = np.trace(shape.grams, axis1=1, axis2=2)
    grams = shape.grams / traces[:, None, None]
    given = {"gamma_a": 1e-8, "gamma_i": 1e4, "laplacian": shape.laplacian, "tol": 1e-3}
    assert mkldist.solve(method, grams, shape.y, **given, **params).converged


@every_method
@pytest.mark.parametrize("name", ["moons", "circles"])
def test_two_labels_a_class_are_enough_on_a_manifold(name, method, params):
    shape, new = manifold(name, n=200, seed=1), manifold(name, n=100, seed=9)
    gamma_a, gamma_i = (1e-5, 100.0) if method in ("lsvm", "mklsvm") else (1e-4, 1e-2)

    def error(solution, grams, truth):
        return (np.sign(solution.decision_function(grams)) != truth).mean()

    solution, plain = (
        mkldist.solve(method, shape.grams, shape.y, laplacian=shape.laplacian,
                      gamma_a=gamma_a, gamma_i=weight, **params)
        for weight in (gamma_i, 0.0)
    )  # fmt: skip
    assert error(solution, shape.grams, shape.truth) < 0.02
    assert error(plain, shape.grams, shape.truth) > 0.02
    assert error(solution, grams_between(new.x, shape.x), new.truth) < 0.03


@every_method
@pytest.mark.parametrize("edge", EDGES)
def test_edges(method, params, edge):
    grams, y, L = at_edge(edge)
    given = {"gamma_a": 1e-2, "tol": 1e-7, **params}
    solution = mkldist.solve(method, grams, y, laplacian=L, gamma_i=0.05, **given)
    assert solution.stop_reason is StopReason.CONVERGED
    assert np.isfinite(solution.coefficients).all()
    same = {"zero Laplacian": (L, 0.0), "dense Laplacian": (sparse.csr_array(L), 0.05)}
    if edge in same:
        other, gamma_i = same[edge]
        expected = mkldist.solve(method, grams, y, laplacian=other, gamma_i=gamma_i, **given)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-6)


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if one.needs_laplacian])
def test_labels_may_be_missing_and_a_laplacian_may_not(name):
    assert METHODS[name].params().target is Target.PARTIAL
    shape = manifold("moons", n=20)
    with pytest.raises(SpecError, match="laplacian"):
        mkldist.solve(name, shape.grams, shape.y)


GAMMAS_LAPSVM = {"gamma_a": 1e-2, "gamma_i": 0.05}


def solve(method, shape, **params):
    given = {} if method in ("rls", "primalmkl") else {"laplacian": shape.laplacian}
    return mkldist.solve(method, shape.grams, shape.y, **given, **params)


@pytest.mark.parametrize("inner", ["newton", "pcg"])
def test_one_kernel_of_many_has_its_own_optimum(inner):
    instance = instances.not_normalised()
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    gammas = {"gamma_a": 1e-1, "gamma_i": 1e-2}
    solution = mkldist.solve(
        "lapsvm",
        instance.grams,
        y,
        laplacian=L,
        kernel_number=2,
        inner=inner,
        tol=1e-6,
        max_iter=5000,
        **gammas,
    )
    alone = primal_optimum(instance.grams[2:3], L, y, gammas, squared=False)
    assert solution.objective == pytest.approx(alone, rel=2e-6)
    np.testing.assert_array_equal(np.flatnonzero(solution.kernel_weights), [2])


def test_a_kernel_that_is_not_there_is_refused():
    shape = manifold("moons", n=40)
    with pytest.raises(SpecError, match="kernel_number: found 99; expected a number from 0 to"):
        solve("lapsvm", shape, kernel_number=99, **GAMMAS_LAPSVM)


@pytest.mark.parametrize("gammas", [(1e-1, 1e-2), (1.0, 0.0), (1e-2, 1.0)])
def test_conjugate_gradients_meet_newton(gammas):
    shape = manifold("circles", n=80, per_class=5)
    params = dict(zip(("gamma_a", "gamma_i"), gammas, strict=True))
    newton = solve("lapsvm", shape, tol=1e-10, **params)
    pcg = solve("lapsvm", shape, inner="pcg", tol=1e-6, max_iter=5000, trace=True, **params)
    assert newton.stop_reason is pcg.stop_reason is StopReason.CONVERGED
    assert newton.objective == pytest.approx(pcg.objective, rel=2e-6)
    assert pcg.dual_objective <= newton.objective * (1 + 1e-10)
    assert len(pcg.trace["objective"]) == pcg.counters.outer_iterations
    assert (pcg.trace["dual_objective"] <= newton.objective * (1 + 1e-10)).all()
    assert (np.diff(pcg.trace["objective"]) <= 0).all()


def test_early_stopping_keeps_the_classes_and_saves_iterations():
    shape = manifold("moons", n=200, per_class=5)
    params = {"inner": "pcg", "max_iter": 5000, "tol": 1e-8, "gamma_a": 1e-3, "gamma_i": 1e-2}
    full = solve("lapsvm", shape, **params)
    early = solve("lapsvm", shape, early_stop=True, **params)
    assert early.extra["early_stopped"] == 1.0
    assert full.extra["early_stopped"] == 0.0
    assert early.stop_reason is StopReason.STALLED
    assert early.counters.outer_iterations < 0.5 * full.counters.outer_iterations
    assert early.dual_objective <= full.objective <= early.objective
    classes = [np.sign(s.decision_function(shape.grams)) for s in (full, early)]
    assert (classes[0] == classes[1]).mean() > 0.95


@pytest.mark.parametrize("limit", [{"max_iter": 3}, {"time_limit": 1e-9}])
def test_conjugate_gradients_respect_limits(limit):
    shape = manifold("moons")
    with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
        solution = solve("lapsvm", shape, inner="pcg", tol=1e-12, **GAMMAS_LAPSVM, **limit)
    best = solve("lapsvm", shape, tol=1e-10, **GAMMAS_LAPSVM).objective
    expected = StopReason.MAX_ITER if "max_iter" in limit else StopReason.TIME_LIMIT
    assert solution.stop_reason is expected
    assert solution.dual_objective <= best <= solution.objective
