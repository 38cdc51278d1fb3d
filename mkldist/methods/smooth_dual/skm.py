"""Support kernel machine by SMO (Bach, Lanckriet & Jordan 2004).

Minimises over components f_m and bias b

    C sum_i hinge(y_i (sum_m f_m(x_i) + b)) + 1/2 (sum_m ||f_m||)^2,

which is the value of the support vector machine at the best kernel weights of the simplex.  With
``q_m = (alpha*y)' K_m (alpha*y)`` its dual is not differentiable,

    max_alpha 1'alpha - 1/2 max_m q_m   s.t.  0 <= alpha <= C,  y'alpha = 0,

and pair updates would get stuck on its kinks.  The paper adds ``1/2 sum_m a_m^2 ||f_m||^2`` to the
primal, which makes the dual smooth (Moreau-Yosida regularisation) and lets sequential minimal
optimisation climb it.  Here all a_m equal one a, as fits kernels of a common normalisation, and
``a^2`` falls by a factor of ten each time the regularised problem is solved to a share of it: the
regularised optimum is within about a^2, relatively, of the true one.

The norms ``t_m = ||f_m||`` of the regularised problem satisfy ``a^2 t_m = (sqrt(q_m) - T)_+`` with
``T = sum_m t_m``, and its components are ``f_m = e_m K_m (alpha*y)``, ``e_m = t_m / sqrt(q_m)``.
Their sum is the predictor of weights ``d = e / sum(e)`` in the simplex and of coefficients
``sum(e) alpha*y``.  Both bounds are those of the problem without a: the machine's primal value of
that predictor, and the dual above.

Pair updates bring the regularised gap below one per cent; Newton steps on the free variables
finish each stage.  Where rounding ends a stage early, one machine at its weights gives the bounds.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import Field

from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Quadratic, Request
from mkldist.machines.inner_svm import InnerSvm
from mkldist.methods.smooth_dual.dual_penalties import MOREAU_YOSIDA, Penalty
from mkldist.methods.smooth_dual.mkl_dual import Bounds, MklDual, Predictor
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Method, Problem, SolverParams, Steps, StopReason, reason_to_stop
from mkldist.solvers.trace import Trace

FIRST_A_SQUARED = 0.1
SHRINKAGE = 0.1  # of a^2 from stage to stage
STAGE_SHARE = 0.2  # of a^2, the regularised gap at which a stage ends
STAGE_PATIENCE = 8  # Newton rounds in which its gap does not halve, after which a stage ends
LEAST_SHARE = 0.1  # of the tolerance, below which a^2 does not go
PATIENCE = 4 * STAGE_PATIENCE  # rounds without a better bound after which rounding is what is left


class SkmParams(SolverParams):
    """Parameters of the support kernel machine."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    cache_mib: float = Field(256.0, gt=0, description="memory for rows of the kernels, MiB")


def solve(problem: Problem, params: SkmParams) -> Steps:
    """Climb one regularised dual after the other.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SkmParams
        Regularisation, memory and stopping rule.

    Yields
    ------
    Matvec, Combine

    Returns
    -------
    Solution
        ``objective`` is the least primal value met at weights of the simplex,
        ``dual_objective`` the greatest value met of ``1'alpha - 1/2 max_m q_m``.
    """
    machine = _SupportKernelMachine(problem, params)
    for _ in range(params.max_iter):
        yield from machine.round()
        if machine.stage_is_stuck:
            yield from machine.solve_svm()
        machine.record()
        stalled = machine.bounds.idle >= PATIENCE
        stop = reason_to_stop(problem, params, machine.bounds.gap, stalled=stalled)
        if stop is not None:
            break
        machine.end_stage_when_solved()
    return machine.bounds.solution(stop or StopReason.MAX_ITER, machine.counters, machine.trace)


class _SupportKernelMachine:
    """The regularised dual, its stage and the bounds of the problem without a."""

    def __init__(self, problem: Problem, params: SkmParams) -> None:
        self.counters, self.bounds = Counters(), Bounds()
        self._svm_at = InnerSvm(problem.y, params.C, params.tol, self.counters)
        self.trace = Trace(params.trace, problem.clock)
        self._least = LEAST_SHARE * params.tol
        self._dual = MklDual(
            problem.y, params.C, problem.n_kernels, params.cache_mib, self.counters
        )
        self._begin_stage(FIRST_A_SQUARED)

    def _begin_stage(self, a_squared: float) -> None:
        self._a_squared = a_squared
        self._stage_gap, self._least_gap, self._idle = 1.0, np.inf, 0

    def round(self) -> Generator[Request, Any, None]:
        """Climb the regularised dual for one round and bound the optimum."""
        penalty = Penalty(MOREAU_YOSIDA, self._a_squared)
        yield from self._dual.climb(penalty, self._stage_gap)
        q, height = self._dual.q, float(self._dual.alpha.sum())
        e, psi = penalty.response(q)[0], penalty.value(q)
        energy = 0.5 * float(e.sum()) * float(e @ q)
        predictor = self._dual.predictor(e, energy)
        loss, square = predictor.loss, predictor.scale**2
        self._stage_gap = relative_gap(loss + square * psi, height - psi)
        self._idle += self._dual.newton
        if self._stage_gap < 0.5 * self._least_gap:
            self._least_gap, self._idle = self._stage_gap, 0
        value, predictor = loss + square * energy, on_simplex(predictor)
        self._d = predictor.d
        self.bounds.update(value, predictor, height - 0.5 * float(q.max()))

    @property
    def stage_is_stuck(self) -> bool:
        """Whether the regularised gap has long stopped to fall, as rounding makes it for small a.

        The weights are good by then, but e magnifies errors of q by 1/a^2.
        """
        return self._idle >= STAGE_PATIENCE

    def solve_svm(self) -> Generator[Request, Any, None]:
        """Bound the optimum by the machine at the weights reached."""
        K = yield Combine(self._d)
        svm = self._svm_at(K)
        q = yield Quadratic(svm.signed)
        self.counters.combines += 1
        self.counters.passes += 1
        predictor = Predictor(self._d, svm.signed, float(svm.bias), svm.alpha)
        self.bounds.update(svm.objective, predictor, float(svm.alpha.sum()) - 0.5 * float(q.max()))

    def record(self) -> None:
        """Count a round and record it."""
        self.counters.outer_iterations += 1
        self.trace.record(self.bounds.upper, self.bounds.lower, self._d)

    def end_stage_when_solved(self) -> None:
        """Lower a^2 once the regularised problem is solved to a share of it."""
        if self.stage_is_stuck or self._stage_gap <= STAGE_SHARE * self._a_squared:
            self._begin_stage(max(SHRINKAGE * self._a_squared, self._least))


def on_simplex(predictor: Predictor) -> Predictor:
    """Return the same predictor with weights in the simplex; uniform ones for no weight at all."""
    e = predictor.d
    total = float(e.sum())
    d = e / total if total > 0.0 else np.full(len(e), 1.0 / len(e))
    return replace(predictor, d=d, coefficients=total * predictor.coefficients)


METHOD = Method(
    name="skm",
    solve=solve,
    params=SkmParams,
    title="Support kernel machine, SMO on the Moreau-Yosida regularised dual",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Bach, Lanckriet & Jordan 2004, SMO on the Moreau-Yosida regularised dual",
)
