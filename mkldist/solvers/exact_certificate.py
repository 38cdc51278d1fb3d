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
the factors are (:func:`.exact_machine.with_expansions`).  The lower bound never knew the factors.

Where even one pass is too dear, the pass visits the active kernels alone.  The forms of the others
are then upper limits by a sample, and the lower bound is a statistical one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.factor_bank import FactorBank
from mkldist.bank.factored_kernels import FactoredKernels, sampled_forms
from mkldist.bank.passes import driven
from mkldist.bank.requests import Quadratic, Request
from mkldist.bank.view import answer_views
from mkldist.core.arrays import Bools, Floats
from mkldist.solvers.base import Method, Problem, Solution
from mkldist.solvers.exact_machine import estimated_value, with_expansions, with_kernels

ROWS = 4000  # points of an estimate of the objective


class Sample(NamedTuple):
    """A sample by which forms are estimated.

    Parameters
    ----------
    n_drawn : int
        Points to draw for each group.
    margin : float
        Standard errors to be added to estimates.
    active_exactly : bool
        True to compute the forms of active kernels.
    seed : int
        Seed of the draws.
    """

    n_drawn: int
    margin: float
    active_exactly: bool
    seed: int = 0


@dataclass(frozen=True, eq=False)
class ExactForms:
    """Quadratic forms at the dual points of a certificate.

    Parameters
    ----------
    exact : (M, R) float64
        Those of the kernels, or estimates of them.
    found : (M, R) float64
        Those of their factors, which are no larger unless diagonals are added to them.
    of_rests : (M, R) float64
        What is due to these diagonals.
    """

    exact: Floats
    found: Floats
    of_rests: Floats


def certified_exactly(
    kernels: FactoredKernels,
    method: Method,
    problem: Problem,
    params: Any,
    solution: Solution,
    sample: Sample | None = None,
) -> tuple[Solution, ExactForms]:
    """Return a solution on factors as one of the kernels, with a lower bound of their optimum.

    Parameters
    ----------
    kernels : FactoredKernels
        The kernels and their factors.
    method : Method
        A method with an :attr:`~mkldist.solvers.base.Method.exact_bound`.
    problem : Problem
        The problem that was solved.
    params : SolverParams
        The method's parameters.
    solution : Solution
        The solution on the factors.
    sample : Sample, optional
        How to estimate the forms of kernels that are not active; None to compute them.

    Returns
    -------
    solution : Solution
        The solution with its certificate and the coefficients of each kernel.
    forms : ExactForms
        The forms that the bound asked for.
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
