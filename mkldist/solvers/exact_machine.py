"""Machines of the hinge loss that the kernels themselves make of coefficients found on factors.

The coefficients v of a machine and the kernel weights d expand ``f = sum_m d_m K_m v``.  Its value
with the kernels,

    1/2 v'f + sum_i C_i max(0, 1 - y_i (f_i + b)),

at the best b bounds their optimum from above, wherever v comes from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.factored_kernels import FactoredKernels
from mkldist.machines.hinge import best_bias, hinge_terms
from mkldist.optim.form_rounding import form_rounding
from mkldist.solvers.base import Problem, Solution


def with_kernels(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution
) -> Solution:
    """Return a solution as the machine with the kernels themselves, and its value.

    Parameters
    ----------
    kernels : FactoredKernels
        The kernels.
    problem : Problem
        The problem.
    C : float
        Bound of the dual variables.
    solution : Solution
        Weights and coefficients, of one class or of several.
    """
    d, v = solution.kernel_weights, solution.coefficients
    f = kernels.expansion(d, v.reshape(len(v), -1)).reshape(v.shape)
    reach = np.sqrt(np.maximum((d * kernels.scale) @ _diagonals(kernels), 0.0))
    weights, equal = np.broadcast_to(problem.bound(C), len(v)).copy(), problem.weights is None
    columns = [one.reshape(len(v), -1).T for one in (v, f, problem.y)]
    biases: list[float] = []
    value = 0.0
    for beta, values, y in zip(*map(np.ascontiguousarray, columns), strict=True):
        biases.append(best_bias(values, y, None if equal else weights))
        sums = hinge_terms(beta, values, y, weights, biases[-1], reach)
        rounding = form_rounding(sums.norm, sums.energy, len(beta))
        value += 0.5 * (sums.norm + rounding) + sums.loss + sums.loss_rounding
    bias: float | Floats = biases[0] if v.ndim == 1 else np.array(biases)
    return replace(solution, objective=value, bias=bias, training_values=f + bias)


def estimated_value(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution, rows: Ints
) -> float:
    """Return the value of :func:`with_kernels` at the solution's b, by values of some points.

    Parameters
    ----------
    kernels, problem, C, solution
        As for :func:`with_kernels`; the solution has its decision values.
    rows : (r,) intp
        The points, drawn with equal probabilities.
    """
    if solution.training_values is None:
        raise ValueError("found no decision values; expected those of a machine")
    n = len(problem.y)
    v, before, y = (
        one.reshape(n, -1) for one in (solution.coefficients, solution.training_values, problem.y)
    )
    exact = kernels.expansion(solution.kernel_weights, v, rows) + solution.bias
    weights = np.broadcast_to(problem.bound(C), n)[rows, None]
    of_norm = 0.5 * v[rows] * (exact - before[rows])
    losses = [np.maximum(0.0, 1.0 - y[rows] * values) for values in (exact, before[rows])]
    change = float((of_norm + weights * (losses[0] - losses[1])).sum())
    return solution.objective + change * n / len(rows)


def _diagonals(kernels: FactoredKernels) -> Floats:
    """Return the diagonals of the kernels, (M, n)."""
    if kernels.factors.exact is not None:
        return kernels.factors.exact
    return kernels.source.diagonals(slice(0, kernels.source.n_kernels))
