"""HessianMKL, Newton's method on the kernel weights (Chapelle & Rakotomamonjy 2008).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  An iteration

1. takes the gradient g, ``g_m = -1/2 q_m(alpha*y)``, and the Hessian H of J, which the free
   alpha give (:mod:`.value_curvature`),
2. minimises ``g's + 1/2 s'Hs`` over the steps s that keep d in the simplex,
3. searches the segment from d to d + s, where the combined kernel is linear in the step.

Of several classes that share d, J, its gradient and its Hessian are sums over their machines.

What differs from the paper, neither the problem nor its optimum:

* The step is sought among the kernels that can take part in it, those of positive weight and
  those of ``q_m > sum_k d_k q_k``, so that the Hessian's products visit few kernels once the
  weights are sparse.
* J is only piecewise smooth, and a step may leave the piece whose Hessian it knows.  A proximal
  term in the model keeps the step short: it grows after a short step, shrinks after a full one,
  and bounds what the slopes alone may cause.  Where no alpha is free J is linear to second order,
  and that term alone makes the step, which is then one of projected gradient.
* J has kinks where weights vanish: the machine there is not unique, and that of the smallest
  positive weights is another.  Newton steps jam at a kink.  When four iterations have not halved
  the distance of the bounds, Newton steps take turns with steps of the Level method.
* The lower bound is that of all machines met, the minimum of their cutting planes, which costs
  no kernel and is, but for rounding, at least the bound ``1'alpha - 1/2 max_m q_m`` of any one.

Close to the optimum the slope drowns in what the inner machines leave; steps are then full and
untested, machines as exact as rounding permits, and only the certificate tells what it helped.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from typing import Any

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.gram.requests import Combine, Request
from mkldist.machines.inner_svm import norms
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.damped_newton import SIMPLEX, NewtonIterate
from mkldist.methods.wrapper.segment import Segment
from mkldist.optim.cutting_planes import CuttingPlanes
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
from mkldist.solvers.svm_solution import svm_solution
from mkldist.solvers.trace import Trace

PATIENCE = 4  # iterations in which the distance of the bounds should halve


class HessianMKLParams(SolverParams):
    """Parameters of HessianMKL."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")


def solve(problem: Problem, params: HessianMKLParams) -> Steps:
    """Run HessianMKL.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : HessianMKLParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound
        that the machines gave.
    """
    state = _Newton(problem, params)
    state.start((yield Combine(state.d)))
    for _ in range(params.max_iter):
        q = yield from norms(state.svm)
        state.bound(q)
        stop = reason_to_stop(problem, params, state.gap, stalled=state.stuck)
        if stop is not None:
            break
        if state.jammed:
            yield from state.level_step()
        else:
            yield from state.newton_step(q)
    return state.solution(stop or StopReason.MAX_ITER)


class _Newton(NewtonIterate):
    """The iterate, and the bounds."""

    def __init__(self, problem: Problem, params: HessianMKLParams) -> None:
        super().__init__(problem, params.C, params.tol, SIMPLEX)
        self.best, self.lower = SvmSolution.none(), -math.inf
        self._cuts = CuttingPlanes(problem.n_kernels)
        self._trace = Trace(params.trace, problem.clock)
        self._widths: deque[float] = deque(maxlen=PATIENCE + 1)
        self._by_newton = False

    def bound(self, q: Floats) -> None:
        """Take the primal value of the machine at d and the lower bound of its cut."""
        if self.svm.objective < self.best.objective:
            self._best_d, self.best = self.d, self.svm
        height = float(self.svm.alpha.sum())
        self._cuts.add(height, -0.5 * q)
        cuts = self._cuts.minimum().bound
        self.lower = max(self.lower, height - 0.5 * float(q.max()), cuts)
        self._widths.append(self.best.objective - self.lower)
        self.counters.outer_iterations += 1
        self.counters.passes += 1
        self._trace.record(self.best.objective, self.lower, self.d)

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.best.objective, self.lower)

    @property
    def jammed(self) -> bool:
        """Whether Newton steps have not halved the distance of the bounds of late."""
        full = len(self._widths) > PATIENCE and self._by_newton
        return full and self._widths[-1] > 0.5 * self._widths[0]

    def level_step(self) -> Generator[Request, Any, None]:
        """Move d to the nearest point of a level set of the cuts."""
        self.d = self._cuts.level_step(self.d, self.best.objective, self.lower)
        self.start((yield Combine(self.d)))
        self._by_newton = False

    def newton_step(self, q: Floats) -> Generator[Request, Any, None]:
        """Move d, its combined kernel and its machine."""
        self._by_newton = True
        working = np.flatnonzero((self.d > 0.0) | (q > self.d @ q))
        end = yield from self.model_minimiser(working, -0.5 * q[working], size=1.0)
        K_end = yield Combine(end)
        self.counters.combines += 1
        segment = Segment(self.svm_at, self.svm, self.K, K_end)
        self.move(segment, end, self.search(segment, abs(self.svm.objective)))

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        bounds = self.best.objective, self.lower
        return svm_solution(self._best_d, self.best, bounds, stop, self.counters, self._trace)


METHOD = Method(
    name="hessianmkl",
    solve=solve,
    params=HessianMKLParams,
    title="HessianMKL, Newton's method",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Chapelle & Rakotomamonjy 2008, the HessianMKL step",
    joint_classes=True,
)
