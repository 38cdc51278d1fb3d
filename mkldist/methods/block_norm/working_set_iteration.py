"""Block-norm MKL by proximal steps: what SpicyMKL and its one-step variant have in common.

Primal, Eqs. (4), (42) and (43) of Suzuki & Tomioka 2011, over functions f_m and a bias b:

    min  sum_i l(y_i, sum_m f_m(x_i) + b) + sum_m psi(||f_m||)

Dual, with ``h(rho) = l*(-rho)``:

    max  -h(rho) - sum_m psi*(||rho||_{K_m})   s.t.  1'rho = 0

At the optimum every f_m is a multiple of ``K_m rho``, so that a predictor of one coefficient
vector and M weights, ``f_m = w_m K_m rho``, is read off any rho; its primal value and the dual
value of rho, made feasible, enclose the optimum.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Request
from mkldist.methods.block_norm.dual_newton import DualState, ProximalDual
from mkldist.methods.block_norm.losses import Smoothing
from mkldist.methods.block_norm.pace import Pace
from mkldist.methods.block_norm.params import BlockNormParams
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Problem, Solution, StopReason, reason_to_stop
from mkldist.solvers.screening import Candidates, distance_to_optimum
from mkldist.solvers.trace import Trace
from mkldist.solvers.working_set import most_newcomers

FIRST_KERNELS = 40
SOLVED = 0.2  # of the gap of the last pass, to which the working set is solved before the next
SOLVED_TOL = 0.5  # of the tolerance, to which it need not be solved any better
ACTIVE_SLACK = 1e-10  # relative excess of a dual norm over the threshold that rounding explains


@dataclass(frozen=True, eq=False)
class BlockNormState:
    """Where the next point of a path may start.

    Parameters
    ----------
    strength : float
        The regulariser's C.
    kernel_scale : float
        What :meth:`BlockNorm.start` returned.
    dual : DualState
        The point reached.
    candidates : Candidates
        What is known of dual norms at a point of the last pass.
    """

    strength: float
    kernel_scale: float
    dual: DualState
    candidates: Candidates


class BlockNorm:
    """Bounds of one problem, and the predictor that attains the upper one.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : BlockNormParams
        Loss, regulariser and stopping rule.
    """

    def __init__(self, problem: Problem, params: BlockNormParams) -> None:
        self.params, self._problem = params, problem
        self.loss = params.make_loss(problem.y)
        self.regularizer = params.make_regularizer()
        self.counters = Counters()
        self.dual = ProximalDual(self.loss, self.regularizer, self.counters)
        self._kernel_wise = params.acceleration == "working-set"
        self._candidates = Candidates(problem.n_kernels)
        self._kernel_scale, self._centre_value, self._inherited = 1.0, 0.0, False
        # Losses and regularisers are not negative, nor is then the optimum.
        self.lower = self._restricted_lower = 0.0
        self._gap_of_pass, self._pace = math.inf, Pace(params.tol)
        self._trace = Trace(params.trace, problem.clock)
        self._dropped = np.zeros(problem.n_kernels, dtype=bool)
        self._weights = np.zeros(problem.n_kernels)
        self._coefficients = self._dual_variables = np.zeros(problem.n_points)
        self._bias = self.loss.best_bias(self._coefficients)
        self.upper = self.loss.value(self._coefficients + self._bias)

    @property
    def gap(self) -> float:
        """Relative duality gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def start(self) -> Generator[Request, Any, float]:
        """Go on from a start, or choose the first working set.

        Returns
        -------
        float
            The largest ``rho' K_m rho / ||rho||^2``.
        """
        start = self._problem.start
        if isinstance(start, BlockNormState) and self._kernel_wise:
            yield from self._go_on(start)
        else:
            yield from self._choose_kernels()
        return self._kernel_scale

    def _go_on(self, start: BlockNormState) -> Generator[Request, Any, None]:
        """Take over kernels, components and rho, scaled down as the regulariser is weakened."""
        scale = min(1.0, self.params.C / start.strength)
        yield from self.dual.go_on(start.dual, scale)
        self._candidates.go_on(start.candidates)
        self._candidates.shrink(scale)
        self._kernel_scale = start.kernel_scale
        self._bound_below()
        self._gap_of_pass, self._inherited = self.params.tol, True

    def _choose_kernels(self) -> Generator[Request, Any, None]:
        norms = yield from self._pass()
        chosen = self._violators(norms) if self._kernel_wise else np.arange(len(norms))
        yield from self.dual.enlarge(chosen)
        square = float(self.dual.rho @ self.dual.rho)
        largest = float(norms.max()) ** 2 / square if square > 0.0 else 0.0
        self._kernel_scale = largest if largest > 0.0 else 1.0

    def step(
        self, gamma: float, damping: float = 0.0
    ) -> Generator[Request, Any, StopReason | None]:
        """Do one outer iteration: minimise the dual, advance, and take the bounds.

        Parameters
        ----------
        gamma : float
            Penalty of the loss's multipliers.
        damping : float
            Weight of the proximal term of the components; 0 for none.

        Returns
        -------
        StopReason or None
            Why to end now, if so.
        """
        self._pace.cool(self._restricted_gap, self.upper, self.loss.entropy(self.dual.rho))
        self.dual.damping = damping
        self.dual.smoothing = Smoothing(gamma, self._pace.temperature)
        yield from self.dual.minimise(self._pace.accuracy(self.gap, self.upper))
        self._bound_above(self.dual.advance())
        yield from self._look_outside()
        return self._finished()

    def _look_outside(self) -> Generator[Request, Any, None]:
        """Bound the optimum from below and enlarge the working set, once that is solved.

        What is left to gain in the working set is told by the dual value of rho on its kernels
        alone, which costs nothing.  A pass comes when that is little against the gap of all.
        """
        if self._inherited:
            self._inherited = False
            yield from self._screen()
        norms: Floats = np.sqrt(np.maximum(self.dual.products @ self.dual.rho, 0.0))
        self._restricted_lower = self._dual_value(self.loss.feasible(self.dual.rho), norms)[0]
        if self._kernel_wise and self._restricted_gap > self._gap_for_pass:
            return
        norms = yield from self._pass()
        if self.gap > self.params.tol:
            violators = self._violators(norms)
            if len(violators):
                self._pace.begin_anew()
                self._drop(norms)
                yield from self.dual.enlarge(violators)

    @property
    def _gap_for_pass(self) -> float:
        """Relative gap on the working set at which a pass is due.

        Where no kernel is left to be found, a pass has only the tolerance to confirm.
        """
        if len(self.dual.kernels) == self._problem.n_kernels:
            return self.params.tol
        return max(SOLVED_TOL * self.params.tol, SOLVED * self._gap_of_pass)

    def _pass(self) -> Generator[Request, Any, Floats]:
        """Take the dual value of rho as a lower bound; return ``||rho||_{K_m}``, (M,)."""
        rho = self.loss.feasible(self.dual.rho)
        q = yield from self._candidates.quadratic(rho[:, None])
        norms: Floats = np.sqrt(np.maximum(q[:, 0], 0.0))
        self._candidates.visited(rho, norms)
        self._bound_below()
        self._gap_of_pass = self.gap
        if self._kernel_wise and self.gap > self.params.tol:
            yield from self._screen()
        self.counters.passes = self._candidates.passes
        return norms

    def _bound_below(self) -> None:
        """Take the dual value of the candidates' centre, which is made feasible, as a bound."""
        candidates = self._candidates
        norms = candidates.bounds[candidates.may_be_active]
        self._centre_value, factor = self._dual_value(candidates.centre, norms)
        candidates.shrink(factor)
        if self._centre_value > self.lower:
            self.lower, self._dual_variables = self._centre_value, candidates.centre

    def _screen(self) -> Generator[Request, Any, None]:
        """Leave out the kernels that the ball around the candidates' centre proves inactive."""
        curvature = self.loss.dual_curvature
        distance = distance_to_optimum(self.upper, self._centre_value, curvature)
        left = self.gap / self.params.tol
        yield from self._candidates.screen(distance, self.regularizer.threshold, left=left)

    def _dual_value(self, rho: Floats, norms: Floats) -> tuple[float, float]:
        """Return the dual value of a point, and the factor that it was made feasible by.

        Where psi* is infinite beyond a largest slope, rho is scaled down to it.

        Parameters
        ----------
        rho : (n,) float64
            Point of the loss's domain with sum zero.
        norms : (S,) float64
            Dual norms ``||rho||_{K_m}`` of all kernels, or of those that are to count; or upper
            bounds of them.
        """
        largest, bound = float(norms.max(initial=0.0)), self.regularizer.largest_slope
        scale = bound / largest if largest > bound else 1.0
        value = -self.loss.conjugate(scale * rho)
        value -= float(self.regularizer.conjugate(scale * norms).sum())
        return value, scale

    @property
    def _restricted_gap(self) -> float:
        """Relative duality gap if there were no kernels but those of the working set."""
        return relative_gap(self.upper, max(self.lower, self._restricted_lower))

    def _bound_above(self, norms: Floats) -> None:
        """Take the primal value of ``f_m = w_m K_m rho`` as an upper bound.

        Parameters
        ----------
        norms : (S,) float64
            The norms ``||f_m||`` of the working set's components, which decide w.
        """
        dual = self.dual
        lengths = np.sqrt(np.maximum(dual.products @ dual.rho, 0.0))
        w = np.divide(norms, lengths, out=np.zeros_like(norms), where=lengths > 0.0)
        f = w @ dual.products
        bias = self.loss.best_bias(f)
        value = self.loss.value(f + bias) + float(self.regularizer.value(w * lengths).sum())
        if value < self.upper:
            self.upper, self._bias, self._coefficients = value, bias, dual.rho
            self._weights = np.zeros(self._problem.n_kernels)
            self._weights[dual.kernels] = w

    def _violators(self, norms: Floats) -> Ints:
        """Return kernels outside the working set whose dual norm exceeds the threshold.

        Those of largest norm, and not so many that the working set more than doubles.

        Parameters
        ----------
        norms : (M,) float64
            Dual norms.
        """
        outside = norms > self.regularizer.threshold * (1.0 + ACTIVE_SLACK)
        outside[self.dual.kernels] = False
        candidates = np.flatnonzero(outside)
        if self.regularizer.threshold == 0.0:  # every kernel is active in the end
            return candidates
        order = np.argsort(-norms[candidates], kind="stable")
        most = most_newcomers(self._problem.n_kernels, len(self.dual.kernels), FIRST_KERNELS)
        return candidates[order[:most]]

    def _drop(self, norms: Floats) -> None:
        """Take kernels below the threshold out of the working set, each once at most.

        Parameters
        ----------
        norms : (M,) float64
            Dual norms.
        """
        kernels = self.dual.kernels
        self.dual.drop((norms[kernels] < self.regularizer.threshold) & ~self._dropped[kernels])
        self._dropped[np.setdiff1d(kernels, self.dual.kernels)] = True

    def _finished(self) -> StopReason | None:
        """Count and record an outer iteration; say whether to stop."""
        self.counters.outer_iterations += 1
        self._trace.record(self.upper, self.lower, self._normalised()[0])
        lower = max(self.lower, self._restricted_lower)
        self._pace.judge(self._restricted_gap, lower, self.counters.newton_steps)
        return reason_to_stop(self._problem, self.params, self.gap, stalled=self._pace.stalled)

    def confirmed(self, stop: StopReason) -> Generator[Request, Any, StopReason]:
        """Bound the optimum from below where the end came before a pass did; return why to end."""
        if self.gap > self.params.tol:
            yield from self._pass()
        return StopReason.CONVERGED if self.gap <= self.params.tol else stop

    def grown(self, gamma: float, growth: float) -> float:
        """Return the penalty that follows `gamma`, whose usual factor is `growth`."""
        return self._pace.grown(gamma, growth, self._restricted_gap, self.dual.size)

    def solution(self, stop: StopReason) -> Solution:
        """Return the best predictor met and its certificate."""
        weights, total = self._normalised()
        return Solution(
            kernel_weights=weights,
            coefficients=total * self._coefficients,
            bias=self._bias + self.loss.offset,
            dual_variables=self._dual_variables,
            objective=self.upper,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=self.counters,
            trace=self._trace.arrays(),
            extra=self._candidates.report,
            state=BlockNormState(
                self.params.C, self._kernel_scale, self.dual.state, self._candidates
            ),
        )

    def _normalised(self) -> tuple[Floats, float]:
        """Return kernel weights that sum to one, unless all are zero, and their former sum."""
        total = float(self._weights.sum())
        return (self._weights / total, total) if total > 0 else (self._weights, 1.0)
