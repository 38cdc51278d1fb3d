"""Certificates of solutions on thin factors with the kernels themselves.

Every factor lies below its kernel, ``G G' <= K``.  A solution on the factors therefore bounds the
optimum with the kernels from above: its function is an expansion on the pivots with the kernels, of
the same values at the training points and the same norm.  A lower bound takes one pass over the
kernels at the dual points of the solution.  Where the objective grows with the kernels, it is the
other way round.

Factors with the diagonals of the kernels lie neither below nor above.  The function is then that
which the coefficients expand with the kernels themselves, whose value is computed.  So it is where
factors are rounded to float32 and ``G G' <= K`` fails by the rounding: the function is an expansion
on the pivots still, and its value is computed with the kernels, which bounds the optimum whatever
the factors are (:func:`with_expansions`).  The lower bound never knew the factors.

Where even one pass is too dear, the pass visits the active kernels alone.  The forms of the others
are then upper limits by a sample, and the lower bound is a statistical one.

The value with the kernels of a machine of the hinge loss, of coefficients v and kernel weights d
that expand ``f = sum_m d_m K_m v``, is

    1/2 v'f + sum_i C_i max(0, 1 - y_i (f_i + b)),

at the best b; it bounds their optimum from above, wherever v comes from.  Each kernel may have
coefficients a_m of its own.  Then ``f = sum_m d_m K_m a_m``, and the value is

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
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.factored_kernels import FactoredKernels, sampled_forms
from mkldist.bank.passes import driven
from mkldist.bank.requests import Quadratic, Request
from mkldist.bank.view import answer_views
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.optim.accuracy import LAST_PLACES, form_rounding
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.svm import EPS, best_bias


def with_kernels(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution
) -> Solution:
    """Return a solution as the machine with the kernels themselves, and its value.

    C is the bound of the dual variables; the machine is of one class or of several.
    """
    d, shape = solution.kernel_weights, problem.y.shape
    y, v = (one.reshape(len(one), -1) for one in (problem.y, solution.coefficients))
    f = kernels.expansion(d, v)
    squared = np.maximum((d * kernels.scale) @ _diagonals(kernels), 0.0)
    of_norms = np.einsum("nk,nk->k", v, f), squared @ v**2, np.sqrt(squared)
    value, biases = _value(problem, C, y, f, of_norms)
    bias = float(biases[0]) if problem.y.ndim == 1 else biases
    values = (f + biases).reshape(shape)
    return replace(solution, objective=value, bias=bias, training_values=values)


def with_expansions(
    kernels: FactoredKernels, problem: Problem, C: float, solution: Solution, own: Floats
) -> Solution:
    """Return a solution as the machine with the kernels and coefficients of each, and its value.

    `own` (S, n) or (S, n, k) are coefficients of the kernels of non-zero weight.
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

    Rounding adds up as :mod:`mkldist.solvers.svm` and :mod:`mkldist.optim.accuracy` say:
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

    The `rows` (r,) are points drawn with equal probabilities; the solution has its decision values.
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


ROWS = 4000  # points of an estimate of the objective


class Sample(NamedTuple):
    """A sample by which forms are estimated."""

    n_drawn: int  # points to draw for each group
    margin: float  # standard errors to be added to estimates
    active_exactly: bool  # True to compute the forms of active kernels
    seed: int = 0  # seed of the draws


@dataclass(frozen=True, eq=False)
class ExactForms:
    """Quadratic forms at the dual points of a certificate."""

    exact: Floats  # (M, R), those of the kernels, or estimates of them
    # (M, R), those of their factors, which are no larger unless diagonals are added to them
    found: Floats
    of_rests: Floats  # (M, R), what is due to these diagonals


def certified_exactly(
    kernels: FactoredKernels,
    method: Method,
    problem: Problem,
    params: Any,
    solution: Solution,
    sample: Sample | None = None,
) -> tuple[Solution, ExactForms]:
    """Return a solution on factors as one of the kernels, with a lower bound of their optimum.

    The method has an :attr:`~mkldist.solvers.base.Method.exact_bound`, and `solution` is that on
    the factors.  `sample` says how to estimate the forms of kernels that are not active; None
    computes them.  Returned are the solution with its certificate and the coefficients of each
    kernel, and the forms that the bound asked for.
    """
    asked: list[tuple[Floats, Floats, Floats]] = []
    active = solution.kernel_weights > 0.0

    def answer(request: Request) -> Floats:
        if not (isinstance(request, Quadratic) and request.kernels is None):
            return kernels.exactly(request)
        [found] = answer_views([(kernels.view, request)])
        if sample is None:
            exact = kernels.exactly(request)
        else:
            exact = _estimated(kernels, request.vectors, found, active, sample)
        columns = request.vectors.reshape(problem.n_points, -1)
        of_rests = (kernels.scale * kernels.factors.forms_of_rests(columns).T).T
        asked.append((exact, found, of_rests))
        return exact

    if method.exact_bound is None:
        raise ValueError(f"{method.name} has no exact bound")
    lower, point = driven(method.exact_bound(problem, params, solution), answer)
    certified = solution
    own = _expansions(solution, kernels.factors)
    if not kernels.factors.lies_below:
        certified = _machine(kernels, problem, params.C, solution, own, sample)
        if sample is None or sample.active_exactly:
            certified = replace(certified, dual_objective=lower)
    elif method.exact_objective is not None:
        upper = driven(method.exact_objective(problem, params, solution), answer)
        certified = replace(solution, objective=upper)
    certified = replace(
        certified, dual_variables=point, exact_dual_objective=lower, kernel_coefficients=own
    )
    none = np.zeros((problem.n_kernels, 0))
    parts = ([none, *(one[i].reshape(len(none), -1) for one in asked)] for i in range(3))
    return certified, ExactForms(*(np.concatenate(part, axis=1) for part in parts))


def _machine(
    kernels: FactoredKernels,
    problem: Problem,
    C: float,
    solution: Solution,
    own: Floats,
    sample: Sample | None,
) -> Solution:
    """Return a solution as the machine with the kernels, or an estimate of its value.

    The value on factors that are rounded estimates that with the kernels.
    """
    diagonals = kernels.factors.exact is not None
    if sample is None or sample.active_exactly:
        if diagonals:
            return with_kernels(kernels, problem, C, solution)
        return with_expansions(kernels, problem, C, solution, own)
    if not diagonals:
        return solution
    rows = np.random.default_rng(sample.seed).integers(problem.n_points, size=ROWS)
    value = estimated_value(kernels, problem, C, solution, rows)
    return replace(solution, objective=value)


def _estimated(
    kernels: FactoredKernels, vectors: Floats, found: Floats, active: Bools, sample: Sample
) -> Floats:
    """Return forms of all kernels: of the active ones as the sample says, of others estimated."""
    columns = vectors.reshape(len(vectors), -1)
    forms = found.reshape(len(found), -1).copy()
    sampled = np.flatnonzero(~active if sample.active_exactly else np.ones_like(active))
    if len(sampled):
        of = sampled_forms(kernels, sampled, columns, sample.n_drawn, sample.seed)
        forms[sampled] += of.lacking + sample.margin * of.errors
    others = np.setdiff1d(np.arange(len(forms)), sampled)
    if len(others):
        forms[others] += np.maximum(kernels.lacking(others, columns), 0.0)
    return forms.reshape(found.shape)


def _expansions(solution: Solution, factors: FactorBank) -> Floats:
    """Return the coefficients of each kernel of non-zero weight, (S, n) or (S, n, k).

    They are on pivots alone where factors have no diagonals.
    """
    kernels = np.flatnonzero(solution.kernel_weights).tolist()
    shape = (len(kernels), *solution.coefficients.shape)
    given = solution.kernel_coefficients
    coefficients = np.broadcast_to(solution.coefficients, shape) if given is None else given
    if factors.exact is not None:
        return coefficients.copy()
    found = np.empty(shape)
    for own, kernel, c in zip(found, kernels, coefficients, strict=True):
        own[...] = factors.factors[kernel].on_pivots(c)
    return found
