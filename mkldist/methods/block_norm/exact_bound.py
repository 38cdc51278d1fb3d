"""Lower bound with the kernels themselves, for a block-norm solution on factors of them.

A dual point keeps to the domain of h and sums to zero whatever the kernels are.  With its exact
norms ``||rho||_{K_m}``, each at least that of the factor, the dual value of any multiple bounds the
optimum with the kernels from below.  Where psi* is finite the best multiple is searched for; else
it is mostly the largest for which psi* is finite.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import scipy

from mkldist.gram.requests import Request
from mkldist.methods.block_norm.bounds import dual_value
from mkldist.methods.block_norm.inner_objective import roots
from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.solvers.base import Problem, Solution
from mkldist.solvers.bounds import DualBound
from mkldist.solvers.exact_forms import largest_forms


def exact_bound(
    problem: Problem, params: BlockNormParams, solution: Solution
) -> Generator[Request, Any, DualBound]:
    """Ask for the forms of all kernels at the dual point of the solution, by one pass.

    Parameters, requests and result are those of every bound of :mod:`mkldist.solvers.exact_forms`.
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
