"""Block-norm MKL on a working set: the fast path of SpicyMKL and ElastMKL.

Few kernels are active at the optimum.  The outer iterations of :mod:`.spicymkl` and
:mod:`.elastmkl` run here on some kernels, which costs only these.  A pass over the bank follows
when the working set is solved to a share of the gap of the last pass.  The pass gives the lower
bound of the whole problem, finds kernels whose dual norm exceeds the threshold psi'(0+), which
join the working set, and lets kernels that are proven inactive drop out of all later passes.

The dual value of rho on the working set alone costs nothing and tells how well it is solved.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkldist.bank.requests import Diagonal, Matvec, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.core.counters import Counters
from mkldist.methods.block_norm.bounds import BlockNormBounds, kernel_scale
from mkldist.methods.block_norm.dual_newton import DualNewton
from mkldist.methods.block_norm.inner_objective import (
    InnerObjective,
    Iterate,
    enlarged,
    reduced,
    roots,
)
from mkldist.methods.block_norm.losses import Loss, Smoothing
from mkldist.methods.block_norm.pace import Pace
from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.methods.block_norm.regularizers import Regularizer
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Problem, Steps, reason_to_stop
from mkldist.solvers.progress import StopReason, Trace
from mkldist.solvers.working_set import Candidates, distance_to_optimum, most_newcomers

FIRST_KERNELS = 40
LEAST_LEFT = 0.1  # of a pass's gap, on the working set when the next is due
MOST_LEFT, MOST_LEFT_POLYHEDRAL = 0.4, 0.6
POLYHEDRAL_EFFORT = 3.0  # of solving for a polyhedral loss, beside that of another
SOLVED_TOL = 0.5  # of the tolerance: the working set is never solved to a smaller gap
ACTIVE_SLACK = 1e-10  # excess of a dual norm over the threshold that may be rounding, relative


@dataclass(frozen=True, eq=False)
class BlockNormState:
    """Start of the next solver of a path.

    Parameters
    ----------
    strength : float
        Strength lam of the regulariser.
    kernel_scale : float
        Scale of the kernels, see :func:`.bounds.kernel_scale`.
    iterate : Iterate
        Iterate reached.
    candidates : Candidates
        Bounds of the dual norms at the point of the last pass.
    """

    strength: float
    kernel_scale: float
    iterate: Iterate
    candidates: Candidates


def solve_on_working_set(
    problem: Problem, params: BlockNormParams, gamma: float, growth: float, *, proximal: bool
) -> Steps:
    """Run the outer iterations of SpicyMKL or ElastMKL on a working set of kernels.

    Requests, ``Inner`` beside those of :func:`mkldist.methods.block_norm.spicymkl.solve`, and
    solution are as there.

    Parameters
    ----------
    problem : Problem
        Labels, number of kernels, and perhaps the state of another solution of the path.
    params : BlockNormParams
        Loss, regulariser and stopping rule.
    gamma, growth : float
        First penalty, and its usual factor from one outer iteration to the next.
    proximal : bool
        True for SpicyMKL's proximal term; False for the dual itself, as in ElastMKL.
    """
    loss = params.make_loss(problem.y, problem.weights)
    psi = params.make_regularizer()
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    newton, bounds = DualNewton(counters), BlockNormBounds(loss, psi, traces[:, 0])
    bank = _Bank(problem.n_kernels, params.tol, loss, psi, bounds)
    resumed = isinstance(start := problem.start, BlockNormState)
    iterate, scale = yield from bank.resume(start, params.lam) if resumed else bank.first_kernels()
    pace = Pace(params.tol, bounds.gap, polyhedral=loss.polyhedral)
    for _ in range(params.max_iter):
        # The outer iteration of the paper, on the kernels at hand.
        temperature = pace.cooled(bounds.upper, loss.entropy(iterate.rho))
        damping = scale / gamma if proximal else 0.0
        phi = InnerObjective(loss, psi, iterate, Smoothing(gamma, temperature), damping)
        accuracy = pace.accuracy(bounds.gap, bounds.upper)
        iterate = phi.proximal_step(*(yield from newton.minimise(phi, iterate, accuracy)))
        bounds.take_primal(iterate)
        if resumed and not counters.outer_iterations:
            yield from bank.screen()  # by inherited norms, now that an upper bound is known
        # A pass, once the kernels at hand are nearly solved; then more kernels.
        rho = loss.feasible(iterate.rho)
        restricted_lower = bounds.restricted_lower(iterate, rho)
        restricted_gap = relative_gap(bounds.upper, max(bounds.lower, restricted_lower))
        if restricted_gap <= bank.gap_for_pass(iterate):
            norms = yield from bank.visit(rho)
            if bounds.gap > params.tol and len(newcomers := bank.violators(iterate, norms)):
                pace.begin_anew()
                iterate = yield from enlarged(bank.without_idle(iterate, norms), newcomers)
        counters.outer_iterations += 1
        trace.record(bounds.upper, bounds.lower, bounds.at.kernel_weights, bounds.own)
        pace.judge(bounds.upper, max(bounds.lower, restricted_lower), counters.newton_steps)
        stop = reason_to_stop(problem, params, bounds.gap, stalled=pace.stalled)
        if stop is not None:
            break
        gamma = pace.grown(gamma, growth, iterate.size)
    if bounds.gap > params.tol:  # certify the last rho, which may not have had a pass
        yield from bank.visit(loss.feasible(iterate.rho))
    if bounds.gap <= params.tol:
        stop = StopReason.CONVERGED
    state = BlockNormState(params.lam, scale, iterate, bank.candidates)
    screening = state.candidates.report
    return bounds.solution(stop or StopReason.MAX_ITER, counters, trace, screening, state)


class _Bank:
    """Passes over all kernels that may be active, and the choice of the working set."""

    def __init__(
        self,
        n_kernels: int,
        tol: float,
        loss: Loss,
        regularizer: Regularizer,
        bounds: BlockNormBounds,
    ) -> None:
        self._n_kernels, self._tol = n_kernels, tol
        self._loss, self._threshold, self._bounds = loss, regularizer.threshold, bounds
        self.candidates = Candidates(n_kernels)
        self._centre_value = 0.0  # dual value at the candidates' centre
        self._gap_of_pass = math.inf
        self._dropped = np.zeros(n_kernels, dtype=bool)

    def first_kernels(self) -> Generator[Request, Any, tuple[Iterate, float]]:
        """Choose the first working set by a pass; return its iterate and the kernels' scale."""
        iterate = Iterate.without_kernels(self._loss.start())
        norms = yield from self.visit(self._loss.feasible(iterate.rho))
        chosen = self.violators(iterate, norms)
        return (yield from enlarged(iterate, chosen)), kernel_scale(iterate.rho, norms)

    def resume(
        self, start: BlockNormState, strength: float
    ) -> Generator[Request, Any, tuple[Iterate, float]]:
        """Take over a state at another strength; return its iterate and the kernels' scale.

        rho is scaled down with the strength of the regulariser.
        """
        scale = min(1.0, strength / start.strength)
        rho = scale * start.iterate.rho
        products = yield Matvec(start.iterate.kernels, rho)
        self.candidates.go_on(start.candidates)
        self.candidates.shrink(scale)
        self._bound_below()
        self._gap_of_pass = self._tol
        iterate = replace(start.iterate, rho=rho).given(products)
        return iterate, start.kernel_scale

    def gap_for_pass(self, iterate: Iterate) -> float:
        """Return the relative gap on the working set at which a pass is due.

        It is the smaller, the more kernels a pass visits beside those of a step on the working set.
        A polyhedral loss, which takes many steps, has passes sooner.  Where the working set holds
        all kernels that may be active, a pass has only the tolerance to confirm.
        """
        others = self.candidates.may_be_active.copy()
        others[iterate.kernels] = False
        if not others.any():
            return self._tol
        effort, most = 1.0, MOST_LEFT
        if self._loss.polyhedral:
            effort, most = POLYHEDRAL_EFFORT, MOST_LEFT_POLYHEDRAL
        share = math.sqrt(effort * len(iterate.kernels) / self.candidates.n_visited)
        share = min(max(share, LEAST_LEFT), most)
        return max(SOLVED_TOL * self._tol, share * self._gap_of_pass)

    def visit(self, rho: Floats) -> Generator[Request, Any, Floats]:
        """Take the dual value of a feasible rho; return ``||rho||_{K_m}``, (M,)."""
        q = yield from self.candidates.quadratic(rho[:, None])
        norms = roots(q[:, 0])
        everyone = slice(self._n_kernels)
        self.candidates.visited(rho, self._bounds.largest_norms(q[:, 0], rho, everyone))
        self._bound_below()
        self._gap_of_pass = self._bounds.gap
        if self._bounds.gap > self._tol:
            yield from self.screen()
        return norms

    def _bound_below(self) -> None:
        """Make the candidates' centre feasible and take its dual value as a lower bound."""
        may_be_active = self.candidates.bounds[self.candidates.may_be_active]
        found = self._bounds.take_dual(self.candidates.centre, may_be_active)
        self.candidates.shrink(found.scale)
        self._centre_value = found.value

    def screen(self) -> Generator[Request, Any, None]:
        """Leave out kernels proven inactive by the ball around the candidates' centre."""
        distance = distance_to_optimum(
            self._bounds.upper, self._centre_value, self._loss.dual_curvature
        )
        left = self._bounds.gap / self._tol
        yield from self.candidates.screen(distance, self._threshold, left=left)

    def violators(self, iterate: Iterate, norms: Floats) -> Ints:
        """Return kernels outside whose dual norm (M,) exceeds the threshold, largest first.

        They are not so many that the working set more than doubles.
        """
        outside = norms > self._threshold * (1.0 + ACTIVE_SLACK)
        outside[iterate.kernels] = False
        found = np.flatnonzero(outside)
        if self._threshold == 0.0:  # every kernel is active in the end
            return found
        order = np.argsort(-norms[found], kind="stable")
        return found[order[: most_newcomers(self._n_kernels, len(iterate.kernels), FIRST_KERNELS)]]

    def without_idle(self, iterate: Iterate, norms: Floats) -> Iterate:
        """Return the iterate without kernels below the threshold whose components are zero.

        A kernel leaves once at most, so that none comes and goes for ever.
        """
        kernels = iterate.kernels
        idle = (norms[kernels] < self._threshold) & ~self._dropped[kernels]
        idle &= iterate.norms == 0.0
        self._dropped[kernels[idle]] = True
        return reduced(iterate, ~idle) if idle.any() else iterate
