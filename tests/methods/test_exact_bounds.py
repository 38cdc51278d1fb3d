"""Bounds against exact arithmetic, on kernels of integers where rounding decides.

Kernels ``A A'`` of integers are exactly positive semi-definite.  With a large C, dual variables are
large along their null spaces, and the quadratic forms there are rounding errors alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution
from tests.methods import plain_bank

pytestmark = pytest.mark.slow

DRAWS = 132  # earlier versions failed at 18, 43, 46, 68, 70, 116 and 129, among others
METHODS_AND_PARAMS = {
    "uniform": {},
    "level": {},
    "level-none": {"acceleration": "none"},
    "silp": {},
    "silp-none": {"acceleration": "none"},
    "simplemkl": {},
    "hessianmkl": {},
    "skm": {},
    "l0_mkl": {"k": 2},
}


def exact_value(grams: np.ndarray, y: np.ndarray, C: float, solution: Solution) -> Fraction:
    """Return the value of the machine's problem at the returned weights and coefficients.

    The bias is the best of the one returned and all kinks of the loss.
    """
    exact = np.vectorize(lambda number: Fraction(float(number)), otypes=[object])
    d, beta, kernels = exact(solution.kernel_weights), exact(solution.coefficients), exact(grams)
    f = list(np.tensordot(d, kernels, axes=1) @ beta / d.sum())
    labels = [int(label) for label in y]
    biases = [Fraction(float(solution.bias))]
    biases += [label - at for label, at in zip(labels, f, strict=True)]

    def loss(b: Fraction) -> Fraction:
        return sum(max(Fraction(0), 1 - one * (at + b)) for one, at in zip(labels, f, strict=True))

    norm = sum(b * at for b, at in zip(beta, f, strict=True))
    return norm / 2 + Fraction(C) * min(map(loss, biases))


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return kernels of integers, labels, C and a tolerance."""
    rng = np.random.default_rng(seed)
    n, n_kernels = int(rng.integers(3, 6)), int(rng.integers(1, 3))
    grams = []
    for _ in range(n_kernels):
        A = rng.integers(-4, 5, (n, int(rng.integers(1, 3))))
        grams.append((A @ A.T).astype(float) * float(rng.choice([1, 10, 100])))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.array(grams), y, float(10.0 ** rng.integers(2, 7)), float(10.0 ** -rng.integers(2, 9))


@pytest.mark.parametrize("case", METHODS_AND_PARAMS)
def test_no_lower_bound_exceeds_an_exact_value(case):
    method, crossed = METHODS[case.split("-")[0]], []
    for seed in range(DRAWS):
        grams, y, C, tol = drawn(seed)
        params = method.params(C=C, tol=tol, time_limit=1.0, **METHODS_AND_PARAMS[case])
        solution = plain_bank.run(method.solve(plain_bank.problem(grams, y), params), grams)
        if Fraction(solution.dual_objective) > exact_value(grams, y, C, solution):
            crossed.append(seed)
    assert crossed == []
