"""Quadratic programs over a box with one equality: pair updates, Newton steps, blocks."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from mkldist.methods import weight_newton
from mkldist.methods.weight_newton import (
    Model,
    minimise_over_orthant,
    minimise_over_simplex,
)
from mkldist.optim import box_qp as free_system
from mkldist.optim import box_qp as module
from mkldist.optim.box_qp import (
    FEW_ROWS,
    MANY_ROWS,
    FreeSystem,
    block_ascent,
    newton_steps,
    pair_updates,
)
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.svm import solve_svm
from tests.variants import quick


def program(seed: int, n: int, rank: int) -> tuple[np.ndarray, ...]:
    """Return K, linear term, bounds and a feasible point whose sum is not zero."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, rank))
    lower, upper = -rng.random(n), rng.random(n)
    beta = lower + rng.random(n) * (upper - lower)
    return root @ root.T, rng.normal(size=n), lower, upper, beta


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [3, 40])
def test_pair_updates_and_newton_steps_reach_the_optimum(seed, rank):
    K, linear, lower, upper, beta = program(seed, 20, rank)
    total, slack = beta.sum(), linear - K @ beta
    pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-2, 10_000)
    newton_steps(K, beta, slack, lower, upper)
    pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-9, 100_000)
    np.testing.assert_allclose(slack, linear - K @ beta, atol=1e-9)
    assert beta.sum() == pytest.approx(total, abs=1e-10)
    assert ((lower <= beta) & (beta <= upper)).all()
    x = cp.Variable(20)
    value = linear @ x - 0.5 * cp.quad_form(x, cp.psd_wrap(K))
    problem = cp.Problem(cp.Maximize(value), [x >= lower, x <= upper, cp.sum(x) == total])
    problem.solve(solver=cp.CLARABEL)
    assert linear @ beta - 0.5 * beta @ K @ beta >= problem.value - 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("rank", quick([5, 400]))
@pytest.mark.parametrize("copies", quick([2, 1]))
def test_steps_of_many_variables_reach_the_optimum(monkeypatch, rank, copies):
    factorised = []
    own = FreeSystem._factorised
    monkeypatch.setattr(
        FreeSystem, "_factorised", lambda s, free: factorised.append(free) or own(s, free)
    )
    n = MANY_ROWS + 40
    K, linear, lower, upper, beta = (np.repeat(part, copies, 0) for part in program(1, n, rank))
    K = np.repeat(K, copies, axis=1)
    total, slack = beta.sum(), linear - K @ beta
    steps = updates = 1
    while updates:
        steps += newton_steps(K, beta, slack, lower, upper)
        updates = pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-7, 400)
    np.testing.assert_allclose(slack, linear - K @ beta, atol=1e-7)
    assert beta.sum() == pytest.approx(total, abs=1e-8)
    assert 0 < len(factorised) < steps / 4
    x = cp.Variable(n * copies)
    root, values, _ = np.linalg.svd(K[::copies, ::copies])
    half = np.repeat(root * np.sqrt(values), copies, axis=0)[:, :rank]
    value = linear @ x - 0.5 * cp.sum_squares(half.T @ x)
    problem = cp.Problem(cp.Maximize(value), [x >= lower, x <= upper, cp.sum(x) == total])
    problem.solve(solver=cp.CLARABEL)
    assert linear @ beta - 0.5 * beta @ K @ beta >= problem.value - 1e-5 * abs(problem.value)


def test_newton_steps_solve_a_program_without_active_bounds_at_once():
    K, linear, _, _, beta = program(0, 8, 20)
    none, total = np.full(8, np.inf), beta.sum()
    slack = linear - K @ beta
    assert newton_steps(K, beta, slack, -none, none) == 1
    system = np.ones((9, 9))
    system[:8, :8], system[8, 8] = K, 0.0
    np.testing.assert_allclose(beta, np.linalg.solve(system, np.append(linear, total))[:8])


def test_a_pair_that_meets_its_bound_stops_exactly_there():
    beta, slack = np.array([0.25, 0.75]), np.array([5.0, -5.0])
    lower, upper = np.zeros(2), np.array([0.9, 1.0])
    assert pair_updates(np.eye(2), np.ones(2), beta, slack, lower, upper, 1e-9, 100) == 1
    assert beta[0] == 0.9
    assert beta[1] == pytest.approx(0.1)


def test_the_limit_on_updates_holds():
    K, linear, lower, upper, beta = program(5, 20, 40)
    slack = linear - K @ beta
    assert pair_updates(K, np.diagonal(K).copy(), beta, slack, lower, upper, 1e-12, 3) == 3


def matrix_of(size: int, rank: int | None = None) -> np.ndarray:
    """Return a positive semi-definite matrix of some rank; of full rank if None."""
    half = np.random.default_rng(size).normal(size=(size, rank or size))
    return half @ half.T + (0.1 * np.eye(size) if rank is None else 0.0)


def by_numpy(K: np.ndarray, free: np.ndarray, residual: np.ndarray) -> np.ndarray:
    system = np.ones((len(free) + 1, len(free) + 1))
    system[:-1, :-1], system[-1, -1] = K[np.ix_(free, free)], 0.0
    return np.linalg.solve(system, np.append(residual, 0.0))[:-1]


@pytest.mark.parametrize("size", [5, FEW_ROWS + 1, MANY_ROWS, MANY_ROWS + 60])
def test_directions_as_variables_leave(size):
    K, draw = matrix_of(size), np.random.default_rng(0)
    system, free = FreeSystem(K), np.arange(size)
    while len(free) > 0.7 * size:
        residual = draw.normal(size=len(free))
        found = system.direction(free, residual)
        np.testing.assert_allclose(found, by_numpy(K, free, residual), rtol=1e-7, atol=1e-8)
        assert not system.renew(found, K[np.ix_(free, free)] @ found, residual)
        free = np.delete(free, draw.choice(len(free), 2, replace=False))


def test_one_factorisation_serves_while_few_have_left(monkeypatch):
    K, counts = matrix_of(MANY_ROWS + 60), []
    own = FreeSystem._factorised
    monkeypatch.setattr(
        FreeSystem, "_factorised", lambda s, free: counts.append(len(free)) or own(s, free)
    )
    system = FreeSystem(K)
    for n_free in range(len(K), MANY_ROWS, -1):
        system.direction(np.arange(n_free), np.ones(n_free) + np.arange(n_free))
    assert counts == [len(K), 207]


def test_few_variables_have_systems_of_their_own():
    K, draw = matrix_of(MANY_ROWS + 2), np.random.default_rng(0)
    system = FreeSystem(K)
    for n_free in (MANY_ROWS + 2, MANY_ROWS + 1, MANY_ROWS - 1):
        free, residual = np.arange(n_free), draw.normal(size=n_free)
        found = system.direction(free, residual)
        np.testing.assert_allclose(found, by_numpy(K, free, residual), rtol=1e-7, atol=1e-8)
    wrong = 2.0 * found  # as no factor has given it, none is to blame
    assert not system.renew(wrong, K[np.ix_(free, free)] @ wrong, residual)


def test_a_direction_that_is_not_accurate_is_made_anew():
    size = MANY_ROWS + 20
    K = matrix_of(size, size // 2)
    K[1], K[:, 1] = K[0], K[:, 0]  # twice the same point, one of which leaves
    K[1, 1] = K[0, 0]
    system, free, draw = FreeSystem(K), np.arange(size), np.random.default_rng(3)
    system.direction(free, draw.normal(size=size))
    free = np.delete(free, [1, 5, 9])
    residual = K[np.ix_(free, free)] @ draw.normal(size=len(free))
    found = system.direction(free, residual)
    if system.renew(found, K[np.ix_(free, free)] @ found, residual):
        found = system.direction(free, residual)
        assert not system.renew(found, K[np.ix_(free, free)] @ found, residual)
    left = residual - K[np.ix_(free, free)] @ found
    assert np.ptp(left) <= 1e-4 * np.ptp(residual)


def test_there_is_no_direction_where_a_matrix_is_not_definite():
    for size in (FEW_ROWS + 5, MANY_ROWS + 5):
        K = np.eye(size)
        K[-1, -1] = -1.0
        assert FreeSystem(K).direction(np.arange(size), np.arange(size, dtype=float)) is None


@pytest.mark.parametrize("size", [2, 7, FEW_ROWS, FEW_ROWS + 1, 60])
def test_systems_are_solved_by_loops_and_by_lapack(size):
    rng = np.random.default_rng(size)
    half, rights = rng.normal(size=(size, size)), rng.normal(size=(size, 2))
    matrix = half @ half.T + 0.1 * np.eye(size)
    solved = free_system._solved(matrix.copy(), rights)
    np.testing.assert_allclose(solved, np.linalg.solve(matrix, rights), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("size", [FEW_ROWS, FEW_ROWS + 1])
def test_systems_that_are_not_positive_definite_have_no_solution(size):
    matrix = np.eye(size)
    matrix[-1, -1] = -1e-9
    assert free_system._solved(matrix, np.ones((size, 2))) is None


N = 200
RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(N, 5))
Y = np.where(POINTS[:, 0] * POINTS[:, 1] + 0.3 * RNG.normal(size=N) > 0, 1.0, -1.0)
FACTORS = [np.tanh(POINTS @ RNG.normal(size=(5, 20))), RNG.normal(size=(N, 40)) / 6]


def operator(factors):
    weights = np.linspace(1.0, 0.5, len(factors)) / len(factors)
    diagonals = np.array([(G**2).sum(axis=1) for G in factors])
    return FactoredMatrix(weights, factors, diagonals, N)


@pytest.fixture(params=[20, 80, 1500])
def block(request, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", request.param)
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("factors", [FACTORS, FACTORS[:1], [0.0 * FACTORS[0]]],
                         ids=["full", "low rank", "zero"])  # fmt: skip
def test_blocks_of_any_size_reach_the_dense_optimum(block, factors, C):
    K = operator(factors)
    expected = solve_svm(K.block(np.arange(N)), Y, C, tol=1e-9)
    found = solve_svm(K, Y, C, tol=1e-9)
    assert found.gap <= 1e-9
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
    assert found.signed.sum() == pytest.approx(0.0, abs=1e-9 * C * N)
    assert (found.alpha >= 0.0).all()
    assert (found.alpha <= C).all()


def test_bounds_of_each_point_and_a_start_are_kept(block):
    K, C = operator(FACTORS), np.exp(RNG.normal(size=N))
    expected = solve_svm(K.block(np.arange(N)), Y, C, tol=1e-9)
    found = solve_svm(K, Y, C, tol=1e-9, start=RNG.random(N))
    assert found.objective == pytest.approx(expected.objective, rel=1e-8)
    again = solve_svm(K, Y, C, tol=1e-8, start=found.alpha)
    assert (again.iterations, again.newton_steps) == (0, 0)


def test_every_block_raises_the_dual_and_the_gradient_stays_true(block):
    K, beta = operator(FACTORS), np.zeros(N)
    slack, duals = Y.copy(), [0.0]

    def enough(beta, slack):
        duals.append(float(Y @ beta - 0.5 * beta @ (K @ beta)))
        np.testing.assert_allclose(slack, Y - K @ beta, atol=1e-10)
        return len(duals) > 6

    lower, upper = np.minimum(Y, 0.0), np.maximum(Y, 0.0)
    block_ascent(K, beta, slack, lower, upper, 1e-10, enough)
    assert (np.diff(duals[1:]) > -1e-12).all()
    assert duals[-1] > 0.0


@pytest.mark.slow
def test_no_block_is_multiplied_out_beyond_its_limit(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 20)
    monkeypatch.setattr(module, "LARGEST", 50)
    sizes = []
    multiplied = FactoredMatrix.block

    def counted(self, points):
        sizes.append(len(points))
        return multiplied(self, points)

    monkeypatch.setattr(FactoredMatrix, "block", counted)
    solve_svm(operator(FACTORS), Y, 100.0, tol=1e-3, max_rounds=2)
    assert 20 <= max(sizes) <= 50


def blas_threads() -> dict[str, int]:
    """Return the threads of each library of linear algebra of this process."""
    libraries = [one for one in threadpool_info() if one["user_api"] == "blas"]
    return {one["filepath"]: one["num_threads"] for one in libraries}


@pytest.mark.parametrize(("many", "threads"), [(N + 1, 1), (0, 2)])
def test_systems_of_few_free_variables_are_solved_by_one_thread(monkeypatch, many, threads):
    solve_svm(operator(FACTORS), Y, 1.0, tol=1e-6)  # loads what there is to load
    found, steps = [], module.newton_steps

    def noted(*arguments):
        found.append(blas_threads())
        return steps(*arguments)

    monkeypatch.setattr(module, "newton_steps", noted)
    monkeypatch.setattr(module, "MANY_FREE", many)
    with threadpool_limits(2, "blas"):
        several = {path for path, number in blas_threads().items() if number == 2}
        assert several  # a library of one thread, as some solvers of references have, has no more
        solve_svm(operator(FACTORS), Y, 1.0, tol=1e-6)
        after = blas_threads()
    assert found
    assert {now[path] for now in found for path in several} == {threads}
    assert {after[path] for path in several} == {2}


def test_a_large_bound_takes_few_more_blocks_and_steps(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 80)
    K, blocks, block = operator(FACTORS), [], FactoredMatrix.block

    def noted(self, points):
        blocks.append(len(points))
        return block(self, points)

    monkeypatch.setattr(FactoredMatrix, "block", noted)
    work = []
    for C in (N / 4, N):
        blocks.clear()
        solution = solve_svm(K, Y, C / N, tol=1e-3)
        work.append((len(blocks), solution.newton_steps))
    (few_blocks, few_steps), (more_blocks, more_steps) = work
    assert more_blocks <= 2 * few_blocks
    assert more_steps <= 6 * few_steps


# Quadratic programmes over the simplex and the orthant against a conic solver and their KKT.


NONE = np.empty(0, dtype=np.intp)
RIDGE = 1e-3


def low_rank(k: int, size: int, seed: int, coarse: bool, ridge: float = RIDGE) -> Model:
    rng = np.random.default_rng(seed)
    root, linear = rng.normal(size=(k, size)), rng.normal(size=size)
    if coarse:  # ties, duplicates, zero columns
        root, linear = np.round(root), np.round(linear)
    return Model(root, linear, ridge)


def conic_value(objective: Model, *, simplex: bool) -> float:
    x = cp.Variable(len(objective.linear), nonneg=True)
    value = 0.5 * cp.sum_squares(objective.root @ x) + objective.linear @ x
    value += 0.5 * objective.ridge * cp.sum_squares(x)
    problem = cp.Problem(cp.Minimize(value), [cp.sum(x) == 1] if simplex else [])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


programs = st.builds(
    low_rank, st.integers(0, 6), st.integers(1, 25), st.integers(0, 10_000), st.booleans()
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(programs, st.integers(0, 10_000))
def test_simplex_minimiser(objective, seed):
    size = len(objective.linear)
    guess = np.flatnonzero(np.random.default_rng(seed).random(size) < 0.5)
    x = minimise_over_simplex(objective, guess)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1.0, abs=1e-13)
    gradient = objective.root.T @ (objective.root @ x) + objective.ridge * x + objective.linear
    # The distance to optimality of a convex function on the simplex.
    scale = 1 + np.abs(gradient).max()
    assert gradient @ x - gradient.min() <= 1e-10 * scale
    expected = conic_value(objective, simplex=True)
    assert objective.value(x) == pytest.approx(expected, abs=1e-7 * scale)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(programs, st.integers(0, 10_000))
def test_orthant_minimiser(objective, seed):
    size = len(objective.linear)
    guess = np.flatnonzero(np.random.default_rng(seed).random(size) < 0.5)
    x = minimise_over_orthant(objective, guess)
    gradient = objective.root.T @ (objective.root @ x) + objective.ridge * x + objective.linear
    scale = (1 + np.abs(objective.linear).max()) * (1 + x.max())
    assert (x >= 0).all()
    assert (gradient >= -1e-9 * scale).all()
    assert np.abs(gradient * x).max() <= 1e-9 * scale * (1 + x.max())
    expected = conic_value(objective, simplex=False)
    assert objective.value(x) == pytest.approx(expected, abs=1e-6 * scale)


def test_more_variables_than_rank_and_no_ridge():
    objective = low_rank(3, 200, 5, coarse=False, ridge=0.0)
    x = minimise_over_simplex(objective, NONE)
    gradient = objective.gradient(x)
    assert gradient @ x - gradient.min() <= 1e-8
    assert (x > 0).sum() <= 4


def test_alike_variables_share_alike():
    root = np.array([[1.0, 1.0, 2.0]])
    x = minimise_over_simplex(Model(root, np.zeros(3), 1e-6), NONE)
    assert x[0] == pytest.approx(x[1], rel=1e-6)
    assert x[2] == 0.0


def test_flat_objective_goes_to_the_least_vertex():
    linear = np.array([3.0, -1.0, 2.0])
    x = minimise_over_simplex(Model(np.empty((0, 3)), linear), NONE)
    assert x.tolist() == [0.0, 1.0, 0.0]


def test_a_model_touches_its_function():
    rng = np.random.default_rng(0)
    point, gradient, root = rng.random(7), rng.normal(size=7), rng.normal(size=(4, 7))
    model = Model.around(point, gradient, root, 0.3)
    np.testing.assert_allclose(model.gradient(point), gradient, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.1, 100.0])
def test_thousands_of_variables_enter_and_leave_in_few_systems(ridge, monkeypatch):
    objective = low_rank(20, 2000, 0, coarse=False, ridge=ridge)
    systems, solve = [], weight_newton._newton_step
    monkeypatch.setattr(
        weight_newton, "_newton_step", lambda *a, **k: systems.append(1) or solve(*a, **k)
    )
    for guess in (NONE, np.arange(2000)):
        systems.clear()
        x = minimise_over_simplex(objective, guess)
        assert len(systems) < 200
        gradient = objective.root.T @ (objective.root @ x) + ridge * x + objective.linear
        assert gradient @ x - gradient.min() <= 1e-9 * (1 + np.abs(gradient).max())
        assert x.sum() == pytest.approx(1.0, abs=1e-13)
