"""ElastMKL (Suzuki & Tomioka 2011, Section 4.3): smooth duals are minimised in one step.

For elastic-net, block q-norm and uniform regularisation psi* is finite and once differentiable.
The dual needs no proximal term then, and Newton's method minimises it as it is, Eq. (48):

    h(rho) + sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0

For the elastic net ``psi*(r) = (r - C (1 - mix))_+^2 / (2 C mix)``.  The components follow from
rho; for the elastic net ``||f_m|| = (||rho||_{K_m} - C (1 - mix))_+ / (C mix)``.

One minimisation settles the kernels.  Further outer iterations follow where the pass that
certifies it asks for more accuracy or, on a working set, finds kernels that belong to it; and,
for all losses but the squared one, until the multipliers of the loss have settled.  By default the
iterations run on a working set (:mod:`.working_set_iteration`); with ``acceleration = "none"``
they visit all kernels, as :func:`solve` shows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field, model_validator

from mkldist.counters import Counters
from mkldist.gram.requests import Quadratic
from mkldist.methods.block_norm.bounds import BlockNormBounds, dual_value
from mkldist.methods.block_norm.dual_newton import DualNewton
from mkldist.methods.block_norm.inner_objective import InnerObjective, Iterate, enlarged, roots
from mkldist.methods.block_norm.losses import Smoothing
from mkldist.methods.block_norm.pace import Pace
from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.methods.block_norm.working_set_iteration import solve_on_working_set
from mkldist.solvers.base import Method, Path, Problem, Steps, StopReason, reason_to_stop
from mkldist.solvers.trace import Trace

FIRST_GAMMA = 10.0  # penalty of the loss's multipliers
GAMMA_GROWTH = 4.0


class ElastMKLParams(BlockNormParams):
    """Parameters of the one-step method."""

    regularizer: Literal["block1", "elastic-net", "block-q", "uniform"] | Regularizer = Field(
        "elastic-net", description="elastic-net, block-q, uniform, or a Regularizer, not block1"
    )

    @model_validator(mode="after")
    def _smooth_dual(self) -> ElastMKLParams:
        if not self.make_regularizer().smooth_dual:
            named = self.regularizer if isinstance(self.regularizer, str) else "regularizer"
            found = "elastic-net with mix = 0" if named == "elastic-net" else named
            raise ValueError(
                f"found {found}, whose dual is not smooth; expected elastic-net with mix above 0, "
                "block-q or uniform (or the method spicymkl)"
            )
        return self


def solve(problem: Problem, params: ElastMKLParams) -> Steps:
    """Minimise the dual.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : ElastMKLParams
        Loss, regulariser and stopping rule.

    Yields
    ------
    Quadratic, Matvec, Combine

    Returns
    -------
    Solution
        As :func:`mkldist.methods.block_norm.spicymkl.solve` returns it.
    """
    gamma = FIRST_GAMMA
    if params.acceleration == "working-set":
        fast = solve_on_working_set(problem, params, gamma, GAMMA_GROWTH, proximal=False)
        return (yield from fast)
    loss, psi = params.make_loss(problem.y), params.make_regularizer()
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    newton, bounds = DualNewton(counters), BlockNormBounds(loss, psi, problem.n_kernels)
    rho = loss.feasible(loss.start())
    bounds.take_dual(rho, roots((yield Quadratic(rho))))
    start = Iterate.without_kernels(loss.start())
    iterate = yield from enlarged(start, np.arange(problem.n_kernels))  # a Matvec
    pace = Pace(params.tol, bounds.gap)
    for _ in range(params.max_iter):
        # Eq. (48): rho <- argmin h(rho) + sum_m psi*(||rho||_{K_m}), by Newton steps on
        # Eqs. (49) and (50), each with a Combine for the Hessian and a Matvec for the line search.
        temperature = pace.cooled(bounds.upper, loss.entropy(iterate.rho))
        dual = InnerObjective(loss, psi, iterate, Smoothing(gamma, temperature), damping=0.0)
        accuracy = pace.accuracy(bounds.gap, bounds.upper)
        iterate = yield from newton.minimise(dual, iterate, accuracy)
        # ||f_m|| = psi*'(||rho||_{K_m}); multipliers of h by Eq. (40).
        iterate = dual.proximal_step(iterate)
        # Section 5: primal value with the best bias, dual value of rho made feasible.
        bounds.take_primal(iterate)
        rho = loss.feasible(iterate.rho)
        bounds.take_dual(rho, roots((yield Quadratic(rho))))
        counters.outer_iterations += 1
        trace.record(bounds.upper, bounds.lower, bounds.best.kernel_weights)
        # Stop, or let gamma grow: the multipliers of a loss that is not smooth have to settle.
        here = dual_value(loss, psi, rho, iterate.dual_norms).value
        pace.judge(bounds.upper, max(bounds.lower, here), counters.newton_steps)
        stop = reason_to_stop(problem, params, bounds.gap, stalled=pace.stalled)
        if stop is not None:
            break
        gamma = pace.grown(gamma, GAMMA_GROWTH, iterate.size)
    return bounds.solution(stop or StopReason.MAX_ITER, counters, trace)


METHOD = Method(
    name="elastmkl",
    solve=solve,
    params=ElastMKLParams,
    title="ElastMKL, one-step dual Newton",
    problem="block-norm MKL with a smooth dual",
    loss="logistic, hinge, squared or epsilon-insensitive",
    regularizer="C sum_m [(1 - mix) ||f_m|| + mix/2 ||f_m||^2], block q-norm, uniform, one's own",
    path=Path("C", rising=False),
    reference="Suzuki & Tomioka 2011, Section 4.3, Eqs. (43), (48)-(50)",
)
