"""Machines of the hinge loss that the kernels themselves make of coefficients found on factors.

The coefficients v of a machine and the kernel weights d expand ``f = sum_m d_m K_m v``.  Its value
with the kernels,

    1/2 v'f + sum_i C_i max(0, 1 - y_i (f_i + b)),

at the best b bounds their optimum from above, wherever v comes from.

Each kernel may have coefficients a_m of its own.  Then ``f = sum_m d_m K_m a_m``, and the value is

    1/2 sum_m d_m a_m'K_m a_m + sum_i C_i max(0, 1 - y_i (f_i + b)).

It is the objective at the functions ``d_m K_m a_m``, of squared norms ``d_m^2 a_m'K_m a_m`` and
with the weights d, in

    min_{f, b}  1/2 sum_m ||f_m||^2 / d_m + sum_i C_i max(0, 1 - y_i (sum_m f_m(x_i) + b)),

and so bounds the minimum over all functions, and over weights too where d is feasible, whatever the
a_m are.  Coefficients of pivots, of a factor that is rounded to float32, are such: they need no
``G G' <= K``, which the rounding breaks.  ``K_m a_m`` takes n values of the kernel for each pivot.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from mkldist.bank.factored_kernels import FactoredKernels
from mkldist.core.arrays import Floats, Ints
from mkldist.optim.form_rounding import LAST_PLACES, form_rounding
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.hinge import EPS, best_bias, hinge_terms


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


def with_expansions(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution, own: Floats
) -> Solution:
    """Return a solution as the machine with the kernels and coefficients of each, and its value.

    Parameters
    ----------
    kernels, problem, C, solution
        As for :func:`with_kernels`; the solution has weights.
    own : (S, n) or (S, n, k) float64
        Coefficients of the kernels of non-zero weight.
    """
    n, y = len(problem.y), problem.y.reshape(len(problem.y), -1)
    f, norms, energies, reach = np.zeros_like(y), *np.zeros((2, y.shape[1])), np.zeros(n)
    for kernel, a in zip(np.flatnonzero(solution.kernel_weights).tolist(), own, strict=True):
        part, columns = kernels.select(np.array([kernel])), a.reshape(n, -1)
        values = part.expansion(solution.kernel_weights[[kernel]], columns)
        own_reach = solution.kernel_weights[kernel] * part.scale[0] * _diagonals(part)[0]
        norms += np.einsum("nk,nk->k", columns, values)
        energies += own_reach @ columns**2
        reach, f = reach + own_reach, f + values
    value, biases = _value(problem, C, y, f, (norms, energies, np.sqrt(np.maximum(reach, 0.0))))
    single = problem.y.ndim == 1
    values = (f + biases).reshape(problem.y.shape)
    return replace(
        solution,
        objective=value,
        bias=float(biases[0]) if single else biases,
        training_values=values,
        kernel_coefficients=own,
    )


def _value(
    problem: Problem, C: float, y: Floats, f: Floats, of_norms: tuple[Floats, Floats, Floats]
) -> tuple[float, Floats]:
    """Return an upper bound of the value of machines, in spite of rounding, and their biases (k,).

    Rounding adds up as :mod:`mkldist.solvers.hinge` and :mod:`mkldist.optim.form_rounding` say:
    with ``r = sum_m d_m K_m,ii`` and the energy ``e = sum_m d_m sum_j K_m,jj a_mj^2``, terms of f_i
    are as large as ``sqrt(r_i e)``, by the inequality of Cauchy over m.  `f` are decision values
    (n, k) without bias; `of_norms` are squared norms (k,), energies e (k,), and roots of r (n,).
    """
    n, (norms, energies, reach) = len(y), of_norms
    weights, equal = np.broadcast_to(problem.bound(C), n).copy(), problem.weights is None
    value, biases = 0.0, np.zeros(y.shape[1])
    for k, (norm, energy) in enumerate(zip(norms.tolist(), energies.tolist(), strict=True)):
        biases[k] = best_bias(f[:, k], y[:, k], None if equal else weights)
        slack = 1.0 - y[:, k] * (f[:, k] + biases[k])
        unsure = EPS * (reach * math.sqrt(energy) + 1.0)
        rounding = float(weights.max()) * float(unsure[slack > -unsure].sum())
        loss = (1.0 + LAST_PLACES * EPS) * float(weights @ np.maximum(slack, 0.0))
        value += 0.5 * (norm + form_rounding(norm, energy, n)) + loss + rounding
    return value, biases


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
