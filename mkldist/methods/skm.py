"""Support kernel machine by SMO (Bach, Lanckriet & Jordan 2004).

Minimises over components f_m and bias b

    C sum_i hinge(y_i (sum_m f_m(x_i) + b)) + 1/2 (sum_m ||f_m||)^2,

which is the value of the support vector machine at the best kernel weights of the simplex.  With
``q_m = (alpha*y)' K_m (alpha*y)`` its dual is not differentiable,

    max_alpha 1'alpha - 1/2 max_m q_m   s.t.  0 <= alpha <= C,  y'alpha = 0,

and pair updates would get stuck on its kinks.  The paper adds ``1/2 sum_m a_m^2 ||f_m||^2`` to the
primal, which makes the dual smooth (Moreau-Yosida regularisation), so that sequential minimal
optimisation can climb it.  Here all a_m equal one a, as fits kernels of a common normalisation.
The regularised optimum is within about a^2, relatively, of the true one.  So ``a^2`` falls by a
factor of ten each time the regularised problem is solved to a share of it: one *stage*.

The norms ``t_m = ||f_m||`` of the regularised problem satisfy ``a^2 t_m = (sqrt(q_m) - T)_+`` with
``T = sum_m t_m``, and its components are ``f_m = e_m K_m (alpha*y)``, ``e_m = t_m / sqrt(q_m)``.
Their sum is the predictor of weights ``d = e / sum(e)`` in the simplex and of coefficients
``sum(e) alpha*y``.  Both bounds are those of the problem without a: the machine's primal value of
that predictor, and the dual above, at the alpha that the solution holds as ``dual_variables``.

Pair updates bring the regularised gap below one per cent; Newton steps on the free variables
finish each stage (:mod:`.smooth_dual`).  Where rounding ends a stage early, one support vector
machine at its weights gives the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Diagonal, Quadratic
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.methods.smooth_dual import (
    MOREAU_YOSIDA,
    MklDual,
    Penalty,
    Predictor,
    first_bounds,
    memory_of_rows,
    solution_of,
)
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Method, Problem, Requesting, Steps, reason_to_stop
from mkldist.solvers.progress import Bounds, StopReason, Trace
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import InnerSvm

FIRST_A_SQUARED = 0.1
SHRINKAGE = 0.1  # of a^2 from stage to stage
STAGE_SHARE = 0.2  # of a^2, the regularised gap at which a stage ends
STAGE_PATIENCE = 8  # Newton rounds in which its gap does not halve, after which a stage ends
LEAST_SHARE = 0.1  # of the tolerance, below which a^2 does not go
PATIENCE = 4 * STAGE_PATIENCE  # rounds without a better bound after which only rounding is left


class SkmParams(HingeParams):
    """Parameters of the support kernel machine."""

    steers: ClassVar[tuple[str, ...]] = ("cache_mib",)

    cache_mib: float = Field(256.0, gt=0, description="memory for rows of the kernels, MiB")


def solve(problem: Problem, params: SkmParams) -> Steps:
    """Climb one regularised dual after the other.

    ``objective`` is the least primal value met at weights of the simplex, ``dual_objective`` the
    greatest value met of ``1'alpha - 1/2 max_m q_m``.
    """
    counters, trace = Counters(), Trace(params.trace, problem.clock)
    bounds = first_bounds(problem.y, np.full(problem.n_kernels, 1.0 / problem.n_kernels), params.C)
    traces = yield Diagonal(np.ones((problem.n_points, 1)))
    dual = MklDual(problem, params.C, params.cache_mib, counters, traces[:, 0])
    svm_at = InnerSvm(problem.y, params.C, params.tol, counters)
    stage = _Stage(FIRST_A_SQUARED)
    for _ in range(params.max_iter):
        # Climb the regularised dual 1'alpha - Psi(q).
        penalty = Penalty(MOREAU_YOSIDA, stage.a_squared)
        # SMO: the rows of the points that violate optimality most; then pair after pair, by the
        # second-order gain, to the maximum on its line.  Beyond the paper, near the optimum: the
        # second-order model over the box.
        yield from dual.climb(penalty, stage.gap)
        q = dual.q
        # f_m = e_m K_m (alpha*y) has the energy 1/2 (sum_m ||f_m||)^2 at weights e / sum(e).
        e, psi = penalty.weights(q), penalty.value(q)
        energy = 0.5 * float(e.sum()) * float(e @ q)
        predictor = dual.predictor(e, energy)
        loss, square = predictor.loss, predictor.scale**2
        # The gap of the regularised problem, and both bounds of the problem without a.
        height = float(dual.alpha.sum())
        stage.judge(relative_gap(loss + square * psi, height - psi), newton=dual.newton)
        lower = dual.height(predictor.bias) - 0.5 * float(dual.largest_q.max())
        predictor = predictor.on_simplex()
        bounds.take(predictor, loss + square * energy, lower, dual.alpha)
        if stage.stuck:  # the weights are good, but e magnifies errors of q by 1/a^2
            yield from _bounds_by_svm(predictor.d, svm_at, bounds, counters)
        counters.outer_iterations += 1
        trace.record(bounds.upper, bounds.lower, predictor.d, bounds.own)
        stop = reason_to_stop(problem, params, bounds.gap, stalled=bounds.idle >= PATIENCE)
        if stop is not None:
            break
        if stage.stuck or stage.gap <= STAGE_SHARE * stage.a_squared:
            stage = _Stage(max(SHRINKAGE * stage.a_squared, LEAST_SHARE * params.tol))
    return solution_of(bounds, stop or StopReason.MAX_ITER, counters, trace)


@dataclass
class _Stage:
    """One value of a^2, and the relative duality gap of its regularised problem so far."""

    a_squared: float
    gap: float = 1.0
    _least_gap: float = np.inf
    _idle: int = 0  # Newton rounds in a row that did not halve the least gap

    def judge(self, gap: float, *, newton: bool) -> None:
        """Take the gap after a round, which was of Newton's method or not."""
        self.gap = gap
        self._idle += newton
        if gap < 0.5 * self._least_gap:
            self._least_gap, self._idle = gap, 0

    @property
    def stuck(self) -> bool:
        """True if rounding has kept the gap from falling for `STAGE_PATIENCE` Newton rounds."""
        return self._idle >= STAGE_PATIENCE


def _bounds_by_svm(
    d: Floats, svm_at: InnerSvm, bounds: Bounds[Predictor], counters: Counters
) -> Requesting[None]:
    """Bound the optimum from both sides by the machine at weights `d` (M,)."""
    svm = svm_at((yield Combine(d)))
    q = yield Quadratic(svm.signed)
    lower = svm.dual_value(float(q.max()))
    predictor = Predictor(d, svm.coefficients, float(svm.bias))
    bounds.take(predictor, svm.objective, lower, svm.alpha)


METHOD = Method(
    name="skm",
    solve=solve,
    params=SkmParams,
    title="Support kernel machine, SMO on the Moreau-Yosida regularised dual",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Bach, Lanckriet & Jordan 2004, SMO on the Moreau-Yosida regularised dual",
    memory=lambda size, params: memory_of_rows(size, params.cache_mib),
)
