"""Lp-norm MKL by the closed-form update of the weights (Kloft, Brefeld, Sonnenburg & Zien 2011).

Minimises over kernel weights ``d >= 0, ||d||_p <= 1``, p > 1, the value of the machine

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||^r)^(2/r)`` with
``r = 2p/(p+1)``.  With ``q_m = (alpha*y)' K_m (alpha*y)`` and ``||f_m||^2 = d_m^2 q_m``,
Algorithm 1 alternates the machine at d with the minimiser over d at fixed norms,

    d_m  proportional to  ||f_m||^(2/(p+1)) = (d_m^2 q_m)^(1/(p+1)),    ||d||_p = 1.

Every feasible alpha bounds the optimum from below by ``1'alpha - 1/2 ||q||_{p*}``,
``p* = p/(p-1)``; the gap of an iterate is ``1/2 (||q||_{p*} - sum_m d_m q_m)`` and that of its
machine.

The update converges linearly, at a factor that tends to 1 with p.  Its logarithm is
therefore mixed with the last iterates by Anderson's method; a mixed point of greater J than the
best is thrown away, and the plain update of the best point taken, which always descends.
``accelerate=False`` is the paper's algorithm.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Quadratic
from mkldist.machines.inner_svm import InnerSvm
from mkldist.machines.svm import SvmSolution
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import (
    Method,
    Problem,
    Solution,
    SolverParams,
    Steps,
    StopReason,
    reason_to_stop,
)
from mkldist.solvers.log_weights import ASCENT, LogWeights
from mkldist.solvers.svm_solution import svm_solution
from mkldist.solvers.trace import Trace

PATIENCE = 25  # iterations without a better bound after which rounding is what is left


class LpMklParams(SolverParams):
    """Parameters of lp-norm MKL."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    p: float = Field(2.0, gt=1, allow_inf_nan=False, description="norm of the kernel weights")
    accelerate: bool = Field(
        True, description="mix the last iterates by Anderson's method; false: the paper's"
    )


def solve(problem: Problem, params: LpMklParams) -> Steps:
    """Alternate between the machine and the closed-form weights.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : LpMklParams
        Regularisation, norm and stopping rule.

    Yields
    ------
    Combine, Quadratic

    Returns
    -------
    Solution
        ``objective`` is the least J(d) met, ``dual_objective`` the greatest value met of
        ``1'alpha - 1/2 ||q||_{p*}``.
    """
    state = _LpMkl(problem, params)
    for _ in range(params.max_iter):
        K = yield Combine(state.d)
        svm = state.solve_svm(K)
        q = yield Quadratic(svm.signed)
        state.bound(svm, np.maximum(q, 0.0))
        gap = relative_gap(state.upper, state.lower)
        stop = reason_to_stop(problem, params, gap, stalled=state.idle >= PATIENCE)
        if stop is not None:
            break
        state.move(svm, np.maximum(q, 0.0))
    return state.solution(stop or StopReason.MAX_ITER)


class _LpMkl:
    """The weights, by their logarithms, and the bounds."""

    def __init__(self, problem: Problem, params: LpMklParams) -> None:
        self.params = params
        uniform = normalised(np.zeros(problem.n_kernels), params.p)
        self._weights = LogWeights(uniform, lambda mixed, _: normalised(mixed, params.p))
        self.upper, self.lower, self.idle = np.inf, -np.inf, 0
        self._counters = Counters()
        self._svm = InnerSvm(problem.y, params.C, params.tol, self._counters)
        self._trace = Trace(params.trace, problem.clock)

    @property
    def d(self) -> Floats:
        """Kernel weights of the iterate."""
        return self._weights.d

    def solve_svm(self, K: Floats) -> SvmSolution:
        """Solve the machine at d."""
        self._counters.combines += 1
        return self._svm(K)

    def bound(self, svm: SvmSolution, q: Floats) -> None:
        """Take the bounds that the machine and its q give."""
        norm, _ = dual_norm(q, self.params.p)
        lower = float(svm.alpha.sum()) - 0.5 * norm
        self.idle += 1
        if lower > self.lower:
            self.lower, self.idle = lower, 0
        if svm.objective < self.upper:
            self.upper, self._best_d, self._best_svm, self.idle = svm.objective, self.d, svm, 0
        self._counters.outer_iterations += 1
        self._counters.passes += 1
        self._trace.record(self.upper, self.lower, self.d)

    def move(self, svm: SvmSolution, q: Floats) -> None:
        """Take the update, mixed with the last ones where that has not led uphill."""
        weights = self._weights
        if weights.mixed and svm.objective > self.upper * (1.0 + ASCENT):
            weights.replace(weights.plain)
            return
        plain = updated(weights.log, q, self.params.p)
        if self.params.accelerate:
            weights.update(plain, q)
        else:
            weights.replace(plain)

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        bounds = self.upper, self.lower
        return svm_solution(self._best_d, self._best_svm, bounds, stop, self._counters, self._trace)


def normalised(log_d: Floats, p: float) -> Floats:
    """Return the logarithms of d / ||d||_p, from those of d; -inf stands for a weight of zero."""
    largest = log_d.max()
    unit: Floats = log_d - (largest + np.log(np.exp(p * (log_d - largest)).sum()) / p)
    return unit


def updated(log_d: Floats, q: Floats, p: float) -> Floats:
    """Return the logarithms of the closed-form weights.

    A kernel with ``q_m = 0`` gets weight zero.  One that had weight zero and has q_m > 0 gets the
    weight of the update's fixed points, ``(q_m / ||q||_{p*})^(1/(p-1))``, for the update itself
    would never let it return.
    """
    norm, _ = dual_norm(q, p)
    if norm == 0.0:
        return log_d
    with np.errstate(divide="ignore"):
        log_q = np.log(q / norm)
    returning = np.isneginf(log_d)
    steps = np.where(returning, log_q / (p - 1.0), (2.0 * log_d + log_q) / (p + 1.0))
    return normalised(steps, p)


def dual_norm(q: Floats, p: float) -> tuple[float, Floats]:
    """Return ``||q||_{p*}`` and its gradient, the weights of unit p-norm that attain it.

    Parameters
    ----------
    q : (M,) float64
        Non-negative.
    p : float
        Above 1; ``p* = p/(p-1)``.
    """
    largest = float(q.max())
    if largest == 0.0:
        return 0.0, np.zeros_like(q)
    shares = q / largest
    powers = shares ** (p / (p - 1.0))
    total = float(powers.sum())
    weights: Floats = (powers / total) ** (1.0 / p)
    return largest * total ** (1.0 - 1.0 / p), weights


METHOD = Method(
    name="lp_mkl",
    solve=solve,
    params=LpMklParams,
    title="lp-norm MKL, closed-form weights",
    problem="MKL with weights in the unit ball of the p-norm",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||^r)^(2/r), r = 2p/(p+1)",
    reference="Kloft, Brefeld, Sonnenburg & Zien 2011, Algorithm 1",
    hyperparameters=("C", "p"),
)
