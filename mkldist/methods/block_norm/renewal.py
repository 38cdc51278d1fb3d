"""States of block-norm solutions on kernels that have changed since, as factors that grow do."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from mkldist.gram.requests import Diagonal, Matvec, Quadratic, Request
from mkldist.methods.block_norm.bounds import largest_norms
from mkldist.methods.block_norm.inner_objective import Iterate, roots
from mkldist.methods.block_norm.working_set_iteration import BlockNormState
from mkldist.solvers.base import Problem
from mkldist.solvers.screening import Candidates


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
