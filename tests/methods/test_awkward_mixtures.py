"""Random mixtures of kernels of any rank and size: certificates must close all the same.

The seeds named are those at which an earlier version failed: cuts that differ by more digits than
a float has, kinks of the value where weights vanish, no kernel at all at the optimum.
"""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.optim.accuracy import relative_gap
from tests.methods import plain_bank
from tests.variants import quick

TOL = 1e-7
ROUNDING = 1e-4


def kernel(rng: np.random.Generator, y: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    n, kind, columns = len(y), rng.integers(0, 7), rng.integers(1, 5)
    x = rng.normal(size=(n, columns))
    if rng.random() < 0.3:
        x = np.round(x)
    if rng.random() < 0.3:
        x[:, 0] += y
    match kind:
        case 0:
            return x @ x.T
        case 1:
            return np.exp(-((x[:, None] - x[None]) ** 2).sum(-1))
        case 2:
            return np.zeros((n, n))
        case 4:
            return (1 + x @ x.T) ** 3
        case 5 if others:
            return others[rng.integers(len(others))].copy()
        case 6:
            return np.ones((n, n))
        case _:
            return np.eye(n)


def mixture(seed: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return kernels, labels, C and sigma."""
    rng = np.random.default_rng(seed)
    n, n_kernels = rng.integers(2, 50), rng.integers(1, 25)
    y = np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1.0, -1.0)
    y[0], y[1] = 1.0, -1.0
    grams: list[np.ndarray] = []
    for _ in range(n_kernels):
        grams.append(kernel(rng, y, grams))
    stack = np.array(grams)
    if rng.random() < 0.5:
        traces = np.trace(stack, axis1=1, axis2=2)
        stack /= np.where(traces > 0, traces, 1)[:, None, None]
    stack *= 10.0 ** rng.choice([0, 0, 0, -8, 6])
    return stack, y, 10.0 ** rng.uniform(-3, 4), 10.0 ** rng.uniform(-3, 3)


@pytest.mark.parametrize(
    "seed", quick([0, 1, 133, 134, 144, 196, 285, 318, 17, 73, 136, 292, 501, 886, *range(2, 6)], 8)
)
def test_bounds_meet_and_methods_agree(seed):
    grams, y, C, sigma = mixture(seed)
    solutions = {}
    for name in ("silp", "hessianmkl", "gmkl"):
        method = METHODS[name]
        price = {"sigma": sigma} if name == "gmkl" else {}
        params = method.params(C=C, tol=TOL, **price)
        steps = method.solve(plain_bank.problem(grams, y), params)
        solutions[name] = plain_bank.run(steps, grams)
        # Kernels of 1e6 times a large C leave rounding of this size in the sum of slacks.
        assert solutions[name].converged or solutions[name].gap <= ROUNDING
    tol = max(TOL, *(2 * solution.gap for solution in solutions.values()))
    cuts, newton = solutions["silp"], solutions["hessianmkl"]
    assert relative_gap(cuts.objective, newton.dual_objective) <= tol
    assert relative_gap(newton.objective, cuts.dual_objective) <= tol
    # gmkl of total weight s is the simplex problem at s C: any s bounds its optimum from above.
    priced = solutions["gmkl"]
    assert priced.dual_objective <= (newton.objective + sigma) * (1 + tol)
