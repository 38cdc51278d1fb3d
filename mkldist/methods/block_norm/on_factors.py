"""Block-norm solutions on factors: states, and a lower bound with the kernels themselves.

A state goes on where factors have grown, so that kernels have changed since.

A dual point keeps to the domain of h and sums to zero whatever the kernels are.  With its exact
norms ``||rho||_{K_m}``, each at least that of the factor, the dual value of any multiple bounds the
optimum with the kernels from below.  Where psi* is finite the best multiple is searched for; else
it is mostly the largest for which psi* is finite.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from mkldist.bank.requests import Diagonal, Matvec, Quadratic, Request
from mkldist.methods.block_norm.bounds import dual_value, largest_norms
from mkldist.methods.block_norm.inner_objective import Iterate, roots
from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.methods.block_norm.working_set_iteration import BlockNormState
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.progress import DualBound
from mkldist.solvers.queries import largest_forms
from mkldist.solvers.working_set import Candidates


def exact_bound(
    problem: Problem, params: BlockNormParams, solution: Solution
) -> Generator[Request, Any, DualBound]:
    """Ask for the forms of all kernels at the dual point of the solution, by one pass.

    Parameters, requests and result are those of every bound of :mod:`mkldist.solvers.queries`.
    """
    loss = params.make_loss(problem.y, problem.weights)
    psi = params.make_regularizer()
    rho = solution.dual_variables
    norms = roots((yield from largest_forms(rho[:, None]))[:, 0])

    def bound(multiple: float) -> DualBound:
        found = dual_value(loss, psi, multiple * rho, multiple * norms)
        return DualBound(found.value, found.scale * multiple * rho)

    best = scipy.optimize.minimize_scalar(
        lambda t: -bound(t).value, bounds=(0.0, 1.0), method="bounded"
    )
    tried = [bound(1.0), bound(float(best.x)), DualBound(0.0, np.zeros_like(rho))]
    return max(tried, key=lambda one: one.value)


def renewed(problem: Problem, state: Any) -> Generator[Request, Any, Any]:
    """Ask changed kernels for what a state holds of them.

    Parameters
    ----------
    problem : Problem
        The problem.
    state : BlockNormState or PlainState
        State of a solution with the kernels as they were.
    """
    iterate = yield from _renewed_iterate(state.iterate)
    if not isinstance(state, BlockNormState):
        return replace(state, iterate=iterate)
    centre = state.candidates.centre
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    squared = yield Quadratic(centre)
    candidates = Candidates(problem.n_kernels)
    candidates.visited(centre, largest_norms(traces[:, 0], squared, centre))
    return replace(state, iterate=iterate, candidates=candidates)


def _renewed_iterate(iterate: Iterate) -> Generator[Request, Any, Iterate]:
    """Return an iterate with the components that it has at the optimum.

    There ``alpha_m = w_m rho``, so that the weights w_m and rho tell all about them.
    """
    lengths = roots(iterate.products @ iterate.rho)
    w = np.divide(iterate.norms, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    products = yield Matvec(iterate.kernels, iterate.rho)
    return replace(
        iterate.given(products),
        images=w[:, None] * products,
        norms=w * roots(products @ iterate.rho),
    )
