"""Certificates of solutions on thin factors with the kernels themselves.

Every factor lies below its kernel, ``G G' <= K``.  A solution on the factors therefore bounds the
optimum with the kernels from above: its function is an expansion on the pivots with the kernels, of
the same values at the training points and the same norm.  A lower bound takes one pass over the
kernels at the dual points of the solution.

Where even one pass is too dear, the pass visits the active kernels alone.  The forms of the others
are then upper limits by a sample, and the lower bound is a statistical one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mkldist.arrays import Bools, Floats
from mkldist.gram.factor_bank import FactorBank
from mkldist.gram.factored_kernels import FactoredKernels
from mkldist.gram.passes import driven
from mkldist.gram.requests import Quadratic, Request
from mkldist.gram.sampled_forms import sampled_forms
from mkldist.gram.view import answer_views
from mkldist.solvers.base import ExactBound, Problem, Solution
from mkldist.solvers.solver_params import SolverParams


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
        Those of their factors, which are no larger.
    """

    exact: Floats
    found: Floats


def certified_exactly(
    kernels: FactoredKernels,
    bound: ExactBound,
    problem: Problem,
    params: SolverParams,
    solution: Solution,
    sample: Sample | None = None,
) -> tuple[Solution, ExactForms]:
    """Return a solution on factors as one of the kernels, with a lower bound of their optimum.

    Parameters
    ----------
    kernels : FactoredKernels
        The kernels and their factors.
    bound : callable
        The method's :attr:`~mkldist.solvers.base.Method.exact_bound`.
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
    asked: list[tuple[Floats, Floats]] = []
    active = solution.kernel_weights > 0.0

    def answer(request: Request) -> Floats:
        if not (isinstance(request, Quadratic) and request.kernels is None):
            return kernels.exactly(request)
        [found] = answer_views([(kernels.view, request)])
        if sample is None:
            exact = kernels.exactly(request)
        else:
            exact = _estimated(kernels, request.vectors, found, active, sample)
        asked.append((exact, found))
        return exact

    lower = driven(bound(problem, params, solution), answer)
    certified = replace(
        solution,
        exact_dual_objective=lower,
        kernel_coefficients=_on_pivots(solution, kernels.factors),
    )
    none = np.zeros((problem.n_kernels, 0))
    exact, found = ([none, *(pair[i].reshape(len(none), -1) for pair in asked)] for i in (0, 1))
    return certified, ExactForms(np.concatenate(exact, axis=1), np.concatenate(found, axis=1))


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


def _on_pivots(solution: Solution, factors: FactorBank) -> Floats:
    """Return the coefficients of each kernel of non-zero weight, (S, n) or (S, n, k)."""
    kernels = np.flatnonzero(solution.kernel_weights).tolist()
    shape = (len(kernels), *solution.coefficients.shape)
    given = solution.kernel_coefficients
    coefficients = np.broadcast_to(solution.coefficients, shape) if given is None else given
    found = np.empty(shape)
    for own, kernel, c in zip(found, kernels, coefficients, strict=True):
        own[...] = factors.factors[kernel].on_pivots(c)
    return found
