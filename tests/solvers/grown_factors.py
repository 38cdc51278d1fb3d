"""A problem of few points, and its solutions on factors that grow."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.sources import ArraySource
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem
from mkldist.solvers.on_factors import solve_on_factors

N = 90
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=N) > 0, 1.0, -1.0)
GRAMS = np.array([rbf_kernel(X, gamma=g) for g in (0.02, 0.2, 2.0, 20.0)]
                 + [rbf_kernel(X[:, [i]], gamma=1.0) for i in range(3)])  # fmt: skip
NARROW = np.array([rbf_kernel(X, gamma=g) for g in (0.05, 1.0, 30.0, 300.0)])


def kernels_of(grams, **limits):
    return begin_factors(ArraySource(grams), FactorLimits(**limits))


def solved(kernels, name="level", y=Y, **params):
    method = METHODS[name]
    problem = Problem(y, kernels.source.n_kernels)
    found = solve_on_factors(kernels, method, problem, method.params(**params))
    assert found.times.wall_seconds >= found.times.pass_seconds > 0.0
    return found.solution, found.limit


def ranks(kernels):
    return np.array([factor.rank for factor in kernels.factors.factors])
