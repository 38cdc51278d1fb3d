"""Paths over the simplex against plain steps from knot to knot, and the cost of a search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mkldist.methods.reduced_gradient import CombinedKernel, LineSearch, SimplexPath
from mkldist.solvers.svm import solve_svm
from mkldist.solvers.working_set import WorkingSet
from tests.methods import plain_bank
from tests.variants import quick


def walked(d: np.ndarray, D: np.ndarray, reference: int) -> list[tuple[float, np.ndarray]]:
    """Return steps and weights at the knots, one kernel after the other as in the paper."""
    d, D, step = d.copy(), D.copy(), 0.0
    places = [(step, d.copy())]
    while (D < 0).any():
        shrinking = np.flatnonzero(D < 0)
        nu = shrinking[np.argmin(d[shrinking] / -D[shrinking])]
        reach = d[nu] / -D[nu]
        d, step = d + reach * D, step + reach
        d[nu] = 0.0
        places.append((step, d.copy()))
        if nu == reference:
            break
        D[nu] = D[reference] = 0.0
        D[reference] = -D.sum()
    return places


@pytest.mark.parametrize("seed", range(40))
def test_knots_and_weights_are_those_of_steps_from_knot_to_knot(seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 12)
    d, D = rng.dirichlet(np.ones(size)), rng.normal(size=size)
    zero = rng.random(size) < 0.2
    zero[reference := int(d.argmax())] = False
    d = np.where(zero, 0.0, d) / d[~zero].sum()
    D = np.where(zero, np.abs(D), D)
    if seed % 3 == 0:
        D = np.where(zero, 0.0, -np.abs(D))  # all but the reference leave
    D[reference] = 0.0
    D[reference] = -D.sum()
    path, places = SimplexPath(d, D, reference), walked(d, D, reference)
    np.testing.assert_allclose(path.knots, [step for step, _ in places], rtol=1e-9)
    for knot, (_, weights) in enumerate(places):
        np.testing.assert_allclose(path.weights(knot), weights, atol=1e-12)
        assert path.weights(knot).min() >= 0.0
        if knot + 1 < len(places):
            following = path.knots[knot + 1] - path.knots[knot]
            moved = weights + following * path.direction(knot)
            np.testing.assert_allclose(moved, places[knot + 1][1], atol=1e-12)
    assert not path.direction(len(places) - 1).any()


def noisy_bank(n_kernels: int) -> tuple[np.ndarray, np.ndarray]:
    """One kernel of the labels' cause and many of noise, which all leave along one direction."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, n_kernels))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    grams = np.exp(-((x[:, None] - x[None]) ** 2) / 2).transpose(2, 0, 1)
    grams[0] = np.outer(y, y) + 0.1 * grams[0]
    return np.ascontiguousarray(grams), y


@pytest.mark.parametrize("n_kernels", [4, 64, 512])
def test_kernels_that_leave_together_cost_few_machines(n_kernels):
    grams, y = noisy_bank(n_kernels)
    d = np.full(n_kernels, 1.0 / n_kernels)
    solved: list[float] = []

    def machine(kernel: CombinedKernel):
        svm = solve_svm(kernel.matrix, y, 10.0, tol=1e-6)
        solved.append(svm.objective)
        return svm

    kernel = CombinedKernel(np.einsum("m,mij->ij", d, grams), 0.0)
    svm = machine(kernel)
    q = np.einsum("i,mij,j->m", svm.signed, grams, svm.signed)
    D = 0.5 * (q - q[0])
    D[0] = -D[1:].sum()
    kernels = WorkingSet(n_kernels, everything=True)
    lines = LineSearch(machine, kernels, np.zeros(n_kernels), lambda: False)
    steps = lines.search(SimplexPath(d, D, 0), kernel, svm)
    moved = plain_bank.run(steps, grams)
    left = int((moved == 0.0).sum())
    assert left > 0.5 * n_kernels
    assert len(solved) <= 2 * math.log2(left) + 10
    assert solve_svm(np.einsum("m,mij->ij", moved, grams), y, 10.0).objective < 0.9 * solved[0]


def test_a_kernel_that_grows_by_next_to_nothing_ends_no_path_at_infinity():
    d, D = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.0, 5e-324])
    path = SimplexPath(d, D, 0)
    assert np.isfinite(path.knots).all()
    for knot in range(len(path.knots)):
        assert path.weights(knot).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", quick(range(300), 100))
def test_weights_stay_on_the_simplex_along_directions_of_unlike_scales(seed):
    rng = np.random.default_rng(seed)
    size = rng.integers(2, 12)
    d = rng.dirichlet(np.ones(size)) * (rng.random(size) < 0.7)
    d[reference := int(d.argmax())] += 0.1
    d /= d.sum()
    D = rng.normal(size=size) * 10.0 ** rng.uniform(-10.0, 20.0, size)
    D[(d == 0.0) & (D < 0.0)] = 0.0
    D[reference] = 0.0
    D[reference] = -D.sum()
    path = SimplexPath(d, D, reference)
    for knot in range(len(path.knots)):
        weights = path.weights(knot)
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-14)
