"""HessianMKL, Newton's method on the kernel weights (Chapelle & Rakotomamonjy 2008).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  An iteration

1. takes the gradient g, ``g_m = -1/2 q_m(alpha*y)``, and the Hessian H of J, which the free
   alpha give (:mod:`mkldist.machines.value_curvature`),
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
import numpy.typing as npt
from pydantic import Field

from mkldist.gram.requests import Combine, Matvec, Request
from mkldist.machines.counters import Counters
from mkldist.machines.inner_svm import InnerSvm, norms
from mkldist.machines.segment import Segment
from mkldist.machines.svm import SvmSolution
from mkldist.machines.value_curvature import Damping, hessian_root
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.optim.duality_gap import relative_gap
from mkldist.optim.simplex_qp import Quadratic as Model
from mkldist.optim.simplex_qp import minimise_over_simplex
from mkldist.solvers.base import Floats, Method, Problem, Solution, SolverParams, Steps, StopReason
from mkldist.solvers.trace import Trace

Ints = npt.NDArray[np.intp]

INNER_TOLERANCE = 0.1  # of tol: the Hessian is that of the optimal alpha
SLOPE_FLOOR = 1e-3  # of tol * J: a slope below says nothing
UNTESTED_LIMIT = 5  # steps below that floor in a row
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
    stop = StopReason.MAX_ITER
    state.start((yield Combine(state.d)))
    for _ in range(params.max_iter):
        q = yield from norms(state.svm)
        state.bound(q)
        if relative_gap(state.best.objective, state.lower) <= params.tol:
            stop = StopReason.CONVERGED
            break
        if problem.clock.elapsed >= params.time_limit:
            stop = StopReason.TIME_LIMIT
            break
        if state.untested >= UNTESTED_LIMIT:
            stop = StopReason.STALLED
            break
        if state.jammed:
            yield from state.level_step()
        else:
            yield from state.newton_step(q)
    return state.solution(stop)


class _Newton:
    """The iterate, its machine, and the bounds."""

    def __init__(self, problem: Problem, params: HessianMKLParams) -> None:
        self.d: Floats = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
        self.best, self.lower, self.untested = SvmSolution.none(), -math.inf, 0
        self._C, self._tol = params.C, params.tol
        self._counters = Counters()
        self._svm_at = InnerSvm(problem.y, params.C, INNER_TOLERANCE * params.tol, self._counters)
        self._cuts = CuttingPlanes(problem.n_kernels)
        self._damping = Damping()
        self._support = np.zeros(problem.n_kernels, dtype=bool)
        self._trace = Trace(params.trace, problem.clock)
        self._widths: deque[float] = deque(maxlen=PATIENCE + 1)
        self._by_newton = False

    def start(self, K: Floats) -> None:
        """Solve the machine at weights whose combined kernel is `K`."""
        self.K, self.svm = K, self._svm_at(K)
        self._counters.combines += 1

    def bound(self, q: Floats) -> None:
        """Take the primal value of the machine at d and the lower bound of its cut."""
        if self.svm.objective < self.best.objective:
            self._best_d, self.best = self.d, self.svm
        height = float(self.svm.alpha.sum())
        self._cuts.add(height, -0.5 * q)
        cuts = self._cuts.minimum().bound
        self.lower = max(self.lower, height - 0.5 * float(q.max()), cuts)
        self._widths.append(self.best.objective - self.lower)
        self._counters.outer_iterations += 1
        self._counters.passes += 1
        self._trace.record(self.best.objective, self.lower, self.d)

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
        products = yield Matvec(working, self.svm.signed)
        self._counters.passes += len(working) == len(q)
        end = self._model_minimiser(working, -0.5 * q[working], products)
        K_end = yield Combine(end)
        self._counters.combines += 1
        segment = Segment(self._svm_at, self.svm, self.K, K_end)
        if segment.slope > -SLOPE_FLOOR * self._tol * abs(self.svm.objective):
            self._svm_at.sharpen()
            segment.go(1.0)
            self.untested, length = self.untested + 1, 1.0
        else:
            self.untested, length = 0, segment.search()
        self._damping.adapt(length)
        self.d = end if length == 1.0 else (1.0 - length) * self.d + length * end
        self.K, self.svm = segment.kernel, segment.svm

    def _model_minimiser(self, working: Ints, gradient: Floats, products: Floats) -> Floats:
        """Return the weights that minimise the second-order model of J over the simplex."""
        root = hessian_root(self.K, self.svm.alpha, self._C, products)
        point = self.d[working]
        ridge = self._damping.ridge(root, gradient - point @ gradient, size=1.0)
        model = Model.around(point, gradient, root, ridge)
        end = np.zeros_like(self.d)
        end[working] = minimise_over_simplex(model, np.flatnonzero(self._support[working]))
        self._support = end > 0.0
        return end

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        svm = self.best
        return Solution(
            kernel_weights=self._best_d,
            coefficients=svm.signed,
            bias=svm.bias,
            dual_variables=svm.alpha,
            objective=svm.objective,
            dual_objective=self.lower,
            stop_reason=stop,
            counters=self._counters,
            trace=self._trace.arrays(),
        )


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
