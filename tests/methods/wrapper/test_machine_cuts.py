"""Cuts of machines against linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from mkldist.methods.machine_bounds import MachineCuts
from mkldist.solvers.svm import SvmSolution


def machine(alpha: np.ndarray) -> SvmSolution:
    return SvmSolution(alpha, alpha, 0.0, np.inf, -np.inf, 0, 0)


def test_the_bound_is_the_minimum_of_the_cuts_and_its_points_alone_give_it():
    rng = np.random.default_rng(0)
    alphas, q = list(rng.uniform(size=(7, 5))), rng.uniform(1, 5, size=(7, 4))
    cuts = MachineCuts(4)
    for alpha, forms in zip(alphas, q, strict=True):
        found = cuts.add(machine(alpha), forms)

    def minimum(chosen: list[int]) -> float:
        rows = np.array([alphas[j].sum() - 0.5 * q[j] for j in chosen])
        A = np.column_stack([rows, -np.ones(len(rows))])
        simplex, free = np.append(np.ones(4), 0.0)[None], [(0, None)] * 4 + [(None, None)]
        c = np.append(np.zeros(4), 1.0)
        return linprog(c, A, np.zeros(len(rows)), simplex, [1.0], bounds=free).fun

    binding = [j for j, alpha in enumerate(alphas) if any(p.alpha is alpha for p in found.points)]
    assert found.value == pytest.approx(minimum(list(range(7))), rel=1e-9)
    assert found.value == pytest.approx(minimum(binding), rel=1e-9)
    assert [point.height for point in found.points] == [alphas[j].sum() for j in binding]


def test_the_mixture_alone_gives_the_bound_and_wider_cuts_are_those_of_all_kernels():
    rng = np.random.default_rng(1)
    halves = rng.normal(size=(6, 5, 5))
    grams = halves @ halves.transpose(0, 2, 1)
    alphas = rng.uniform(size=(4, 5))
    q = np.einsum("ji,mik,jk->jm", alphas, grams, alphas)
    some, every = MachineCuts(4), MachineCuts(6)
    for alpha, forms in zip(alphas, q, strict=True):
        found = some.add(machine(alpha), forms[:4])
        every.add(machine(alpha), forms)
    mixed = found.mixture
    of_mixture = np.einsum("i,mij,j->m", mixed.alpha, grams[:4], mixed.alpha)
    assert mixed.height == pytest.approx(mixed.alpha.sum())
    assert mixed.height - 0.5 * of_mixture.max() >= found.value - 1e-9
    some.widen(q[:, 4:])
    np.testing.assert_allclose(some.planes.payoff, every.planes.payoff)
    assert some.planes.minimum().bound == pytest.approx(every.planes.minimum().bound, rel=1e-9)
