"""Uniform kernel weights: one support vector machine on the mean of all kernels.

Maximises ``1'alpha - 1/2 (alpha*y)' (1/M sum_m K_m) (alpha*y)`` over ``0 <= alpha <= C``,
``y'alpha = 0``: the value J(d) of the simplex-weighted problem at d = 1/M.  The machine's own
duality gap certifies it, with ``dual_variables`` alpha.  Several classes share the combined kernel,
and their values add up.
"""

from __future__ import annotations

import numpy as np

from mkldist.bank.requests import Combine
from mkldist.solvers.base import Counters, Method, Problem, Steps
from mkldist.solvers.queries import fixed_weights_bound
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import fixed_weights_solution, train


class UniformParams(HingeParams):
    """Parameters of the machine with uniform weights."""


def solve(problem: Problem, params: UniformParams) -> Steps:
    """Solve the support vector machine on the mean kernel.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : UniformParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
    """
    weights = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    K = yield Combine(weights, thin=True)
    counters = Counters()
    svm = train(K, problem.y, problem.bound(params.C), params.tol, counters)
    return fixed_weights_solution(problem, params, weights, svm, counters)


METHOD = Method(
    name="uniform",
    solve=solve,
    params=UniformParams,
    title="Uniform weights",
    problem="SVM on the mean kernel",
    loss="hinge",
    regularizer="1/2 ||f||^2",
    reference="baseline of Cortes, Mohri & Rostamizadeh 2009",
    joint_classes=True,
    weighs_points=True,
    typical_passes=lambda n_kernels: 1,
    exact_bound=fixed_weights_bound,
    hinge_machines=True,
    one_sum=True,
)
