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
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field

from mkldist import regularizers
from mkldist.gram.requests import Quadratic, Request
from mkldist.losses import EpsilonInsensitive, Hinge, Logistic, Loss, Squared
from mkldist.regularizers import Regularizer
from mkldist.solvers.base import (
    Counters,
    Effects,
    Problem,
    Solution,
    SolverParams,
    StopReason,
    Target,
    relative_gap,
)
from mkldist.solvers.dual_newton import ProximalDual
from mkldist.solvers.trace import Trace

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

INNER_SHARE = 0.1  # of the present gap, that a minimisation may leave at first
SLOW = 0.5  # ratio of gaps above which the minimisations are made more accurate
EASY, HARD = 20, 40  # Newton steps of a minimisation
HURRY = 2  # power of the penalty's growth after an easy minimisation that gained little
STANDSTILL = 0.99  # ratio of gaps above which nothing was gained
PATIENCE = 20  # iterations without gain after which rounding forbids more
GAMMA_LIMIT = 1e6  # on gamma max_i |rho_i|: beyond, rounding of rho moves the multipliers
FAR = 1e4  # times more than that is allowed where the gap is one
FIRST_KERNELS = 20  # of the working set
SOLVED = 0.5  # of the gap of the last pass, to which the working set is solved before the next
SOLVED_TOL = 0.5  # of the tolerance, to which it need not be solved any better
ACTIVE_SLACK = 1e-10  # relative excess of a dual norm over the threshold that rounding explains

_LOSSES: dict[str, type[Loss]] = {
    "logistic": Logistic,
    "hinge": Hinge,
    "squared": Squared,
    "epsilon": EpsilonInsensitive,
}


class BlockNormParams(SolverParams):
    """Parameters of block-norm MKL."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    effective_with: ClassVar[Effects] = {
        "epsilon": ("loss", ("epsilon",)),
        "mix": ("regularizer", ("elastic-net",)),
        "q": ("regularizer", ("block-q",)),
        "C": ("regularizer", ("block1", "elastic-net", "block-q", "uniform")),
    }

    C: float = Field(0.05, gt=0, allow_inf_nan=False, description="strength of the regulariser")
    loss: Literal["logistic", "hinge", "squared", "epsilon"] = Field(
        "logistic", description="logistic and hinge for classes, squared and epsilon for values"
    )
    epsilon: float = Field(
        0.1, ge=0, allow_inf_nan=False, description="half width of the tube of loss epsilon"
    )
    regularizer: Literal["block1", "elastic-net", "block-q", "uniform"] | Regularizer = Field(
        "block1", description="block1, elastic-net, block-q, uniform, or a Regularizer"
    )
    mix: float = Field(
        0.5, ge=0, le=1, description="share of the squared norm in elastic-net (lambda)"
    )
    q: float = Field(1.5, gt=1, le=2, description="exponent of block-q")
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )

    @property
    def target(self) -> Target:
        """What the labels may be, which the loss decides."""
        return _LOSSES[self.loss].target

    def make_loss(self, y: Floats) -> Loss:
        """Return the loss on labels `y`."""
        if self.loss == "epsilon":
            return EpsilonInsensitive(y, self.epsilon)
        return _LOSSES[self.loss](y)

    def make_regularizer(self) -> Regularizer:
        """Return the regulariser of strength C; a user's own is returned as it is."""
        match self.regularizer:
            case "block1":
                return regularizers.block1(self.C)
            case "elastic-net":
                return regularizers.ElasticNet(self.C, self.mix)
            case "block-q":
                return regularizers.BlockQ(self.C, self.q)
            case "uniform":
                return regularizers.uniform(self.C)
            case _:
                return self.regularizer


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
        self.dual = ProximalDual(self.loss, self.regularizer, problem.n_kernels, self.counters)
        # Losses and regularisers are not negative, nor is then the optimum.
        self.lower, self._share = 0.0, INNER_SHARE
        self._restricted_lower = self._last_lower = 0.0
        self._gap_of_pass = self._last_gap = math.inf
        self.pace, self._idle, self._last_steps = 1, 0, 0
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

    @property
    def accuracy(self) -> float:
        """How far from its minimum an inner objective may be left."""
        gap = self.gap if math.isinf(self._last_gap) else self._last_gap
        return self._share * max(min(gap, 1.0), self.params.tol) * abs(self.upper)

    def start(self) -> Generator[Request, Any, float]:
        """Choose the first working set; return the largest ``rho' K_m rho / ||rho||^2``."""
        norms = yield from self._pass()
        plain = self.params.acceleration == "none"
        yield from self.dual.enlarge(np.arange(len(norms)) if plain else self._violators(norms))
        square = float(self.dual.rho @ self.dual.rho)
        largest = float(norms.max()) ** 2 / square if square > 0.0 else 0.0
        return largest if largest > 0.0 else 1.0

    def look_outside(self) -> Generator[Request, Any, None]:
        """Bound the optimum from below and enlarge the working set, once that is solved.

        What is left to gain in the working set is told by the dual value of rho on its kernels
        alone, which costs nothing.  A pass comes when that is little against the gap of all.
        """
        norms: Floats = np.sqrt(np.maximum(self.dual.products @ self.dual.rho, 0.0))
        self._restricted_lower = self._dual_value(norms)[0]
        solved = max(SOLVED_TOL * self.params.tol, SOLVED * self._gap_of_pass)
        if self.params.acceleration == "working-set" and self._restricted_gap > solved:
            return
        norms = yield from self._pass()
        if self.gap > self.params.tol:
            violators = self._violators(norms)
            if len(violators):
                self._last_gap = math.inf  # of another problem
                self._drop(norms)
                yield from self.dual.enlarge(violators)

    def _pass(self) -> Generator[Request, Any, Floats]:
        """Take the dual value of rho as a lower bound; return ``||rho||_{K_m}``, (M,)."""
        q = yield Quadratic(self.loss.feasible(self.dual.rho))
        self.counters.passes += 1
        norms: Floats = np.sqrt(np.maximum(q, 0.0))
        value, rho = self._dual_value(norms)
        if value > self.lower:
            self.lower, self._dual_variables = value, rho
        self._gap_of_pass = self.gap
        return norms

    def _dual_value(self, norms: Floats) -> tuple[float, Floats]:
        """Return the dual value of rho, made feasible, and that point.

        Where psi* is infinite beyond a largest slope, rho is scaled down to it.

        Parameters
        ----------
        norms : (S,) float64
            Dual norms ``||rho||_{K_m}`` of all kernels, or of those that are to count.
        """
        rho = self.loss.feasible(self.dual.rho)
        largest, bound = float(norms.max(initial=0.0)), self.regularizer.largest_slope
        scale = bound / largest if largest > bound else 1.0
        value = -self.loss.conjugate(scale * rho)
        value -= float(self.regularizer.conjugate(scale * norms).sum())
        return value, scale * rho

    @property
    def _restricted_gap(self) -> float:
        """Relative duality gap if there were no kernels but those of the working set."""
        return relative_gap(self.upper, max(self.lower, self._restricted_lower))

    def bound_above(self, norms: Floats) -> None:
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
        return candidates[order[: max(FIRST_KERNELS, len(self.dual.kernels))]]

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

    def finished(self) -> StopReason | None:
        """Count and record an outer iteration; say whether to stop."""
        self.counters.outer_iterations += 1
        self._trace.record(self.upper, self.lower, self._normalised()[0])
        self._judge()
        if self.gap <= self.params.tol:
            return StopReason.CONVERGED
        if self._problem.clock.elapsed >= self.params.time_limit:
            return StopReason.TIME_LIMIT
        return StopReason.STALLED if self._idle >= PATIENCE else None

    def limited(self, gamma: float) -> float:
        """Return a penalty of at most what rounding allows, which is less as the gap closes."""
        limit = GAMMA_LIMIT * (1.0 + FAR * min(self.gap, 1.0))
        return min(gamma, limit / self.dual.size)

    def _judge(self) -> None:
        """Compare the gap on the working set with the last one, to set the pace of what follows.

        A larger penalty means fewer outer iterations and harder minimisations: it grows with
        ``pace``, not at all after a hard one.
        """
        gap, lower = self._restricted_gap, max(self.lower, self._restricted_lower)
        slow = gap > SLOW * self._last_gap
        steps = self.counters.newton_steps - self._last_steps
        self.pace = 0 if steps > HARD else HURRY if slow and steps <= EASY else 1
        gained = lower - self._last_lower > (1.0 - STANDSTILL) * abs(lower)
        still = gap > STANDSTILL * self._last_gap and not gained
        self._idle = self._idle + 1 if still else 0
        if slow:
            self._share *= INNER_SHARE
        self._last_gap, self._last_lower = gap, lower
        self._last_steps = self.counters.newton_steps

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
        )

    def _normalised(self) -> tuple[Floats, float]:
        """Return kernel weights that sum to one, unless all are zero, and their former sum."""
        total = float(self._weights.sum())
        return (self._weights / total, total) if total > 0 else (self._weights, 1.0)
