"""Laplacian support vector machine in the dual, on the mean of all kernels.

Minimises over coefficients alpha, on all n points, and bias b (Belkin, Niyogi & Sindhwani 2006,
section 4.3)

    F = 1/l sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))
        + gamma_a alpha'K alpha + gamma_i / n^2 alpha'K L K alpha,

K = 1/M sum_m K_m, l the number of labelled points.  This is the objective of :mod:`.mklsvm` at
fixed weights, less the penalty of the weights.  :mod:`.manifold_svm` solves the dual on the
labelled points and states the certificate, the dual value at beta, or 0 if that is more; the
solution holds beta as ``dual_variables``.  The objective of :mod:`.lapsvm` differs: its slacks are
squared and summed over the points, and its norms are halved.

Each column of labels has its own machine; one factorisation serves all columns.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine
from mkldist.core.counters import Counters
from mkldist.methods.manifold.deformed import LARGEST, LEAST, ManifoldParams, memory_on_graph
from mkldist.methods.manifold.manifold_svm import ManifoldSvm
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Method, Problem, Solution, Steps
from mkldist.solvers.progress import StopReason, Trace


class LSVMParams(ManifoldParams):
    """Parameters of the Laplacian support vector machine; defaults are for unit traces."""

    gamma_a: float = Field(1e-5, ge=LEAST, le=LARGEST, description="weight of the ambient norm")
    gamma_i: float = Field(1e4, ge=0, le=LARGEST, description="weight of the intrinsic norm")


def solve(problem: Problem, params: LSVMParams) -> Steps:
    """Solve the machine, or one machine a class.

    Parameters
    ----------
    problem : Problem
        Labels (n,) or (n, k), 0 for none, number of kernels, and graph Laplacian.
    params : LSVMParams
        Weights of the two norms and stopping rule.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
    """
    weights = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    K = yield Combine(weights)
    counters = Counters(outer_iterations=1)
    machines = ManifoldSvm(problem, params.gamma_a, params.gamma_i, params.tol, counters)
    found = machines(K)
    ambient = params.gamma_a * float((found.a * (K @ found.a)).sum())
    lower = max(found.gain - found.roughness - ambient, 0.0)
    met = relative_gap(found.value, lower) <= params.tol
    coefficients, bias, beta = found.by_class(single=problem.y.ndim == 1)
    return Solution(
        kernel_weights=weights,
        coefficients=coefficients,
        bias=bias,
        dual_variables=beta,
        objective=found.value,
        dual_objective=lower,
        stop_reason=StopReason.CONVERGED if met else StopReason.STALLED,
        counters=counters,
        trace=Trace.of_one(params.trace, problem.clock, found.value, lower, weights),
    )


METHOD = Method(
    name="lsvm",
    solve=solve,
    params=LSVMParams,
    title="Laplacian support vector machine in the dual",
    problem="semi-supervised SVM on the mean kernel",
    loss="hinge",
    regularizer="gamma_a ||f||^2 + gamma_i/n^2 f'L f",
    reference="Belkin, Niyogi & Sindhwani 2006, section 4.3",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    joint_classes=True,
    typical_passes=lambda n_kernels: 1,
    memory=memory_on_graph,
)
