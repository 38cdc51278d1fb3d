"""Cuts of machines against linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.machine_cuts import MachineCuts


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
