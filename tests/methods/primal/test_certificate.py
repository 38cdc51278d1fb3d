"""Primal and dual values in spite of rounding, against values of extended precision."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.primalmkl import PrimalMKLParams, dual_value, energy, machine_of, primal_value
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import Problem

N, LAM = 40, 1e-8


def cancelling(seed):
    """Return a Gram matrix, targets, and coefficients near its null space."""
    rng = np.random.default_rng(seed)
    half = 1e4 * (1.0 + 1e-6 * rng.normal(size=(N, 2)))
    v = rng.normal(size=N)
    v -= half @ np.linalg.lstsq(half, v, rcond=None)[0]
    return half @ half.T, rng.normal(size=N), 1e3 * v


def form(K, v):
    """Return ``v'K v`` with the digits of a long double."""
    wide = v.astype(np.longdouble)
    return wide @ (K.astype(np.longdouble) @ wide)


@pytest.mark.parametrize("seed", range(30))
def test_values_bound_those_without_rounding(seed):
    K, y, alpha = cancelling(seed)
    machine = machine_of(PrimalMKLParams(C=1 / LAM, loss="squared"), Problem(y, 1), Counters())
    z = machine.point(K, alpha, K @ alpha, 0.0)
    # What the machine knows of f is rounded too: the form alone is compared.
    exact = z.value + 0.5 * LAM * (form(K, alpha) - np.longdouble(alpha @ z.f))
    assert exact <= primal_value(machine, K, z) <= exact + LAM * 1e-12 * energy(K, alpha)
    r = machine.loss.feasible(LAM * alpha)
    a = r / LAM
    q = np.array([a @ (K @ a)])
    value = dual_value(machine, WeightSet(1.0), r, 0.0, q, energy(K, a))
    unrounded = machine.loss.dual_value(r, 0.0) - 0.5 * LAM * form(K, a)
    assert unrounded - LAM * 1e-12 * energy(K, a) <= value <= unrounded
