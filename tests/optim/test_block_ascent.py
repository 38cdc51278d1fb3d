"""Ascent by blocks on operators, against the dense quadratic program of the same matrix."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mkldist.optim import box_qp as module
from mkldist.optim.box_qp import block_ascent
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.solvers.svm import solve_svm

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
