"""GMKL with l1 penalty by spectral projected gradient (Varma & Babu 2009; Jain et al. 2012).

Minimises over kernel weights d >= 0

    F(d) = J(d) + sigma sum_m d_m,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + sqrt(2 sigma) sum_m ||f_m||`` with
``d_m = ||f_m|| / sqrt(2 sigma)``.  Its dual is

    max_alpha { 1'alpha : q_m(alpha*y) <= 2 sigma for all m, 0 <= alpha <= C, y'alpha = 0 },

so that the alpha of any machine, or a mean of several, shrunk or stretched to the feasible set,
gives a lower bound.

An iteration goes from d towards the projection of ``d - lambda grad F``; ``lambda`` is Barzilai &
Borwein's, and the step is halved until F falls below the largest of the last values by a share of
what the gradient promises.  The combined kernel is linear in the step, so that only the machine
is solved again.  What differs from the paper, neither the problem nor its optimum:

* Gradient steps are slow near the optimum, where q changes with d by orders of magnitude faster
  along one direction than along another.  Once the relative gap is below ``newton``, steps minimise
  the second-order model of F over d >= 0 (:mod:`.value_curvature`).  ``newton=0``
  is the paper's algorithm.
  Steps whose slope drowns in what the inner machines leave are full and untested.
* The paper loosens the inner machine while the projected gradient is large.  Here it is solved
  to a share of the tolerance throughout, and warm starts keep it cheap.

A solution d of total weight s is s times the solution of simplex-weighted MKL at s C, because
``J(s p)`` at C is ``1/s`` times ``J(p)`` at s C.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from typing import Any

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.gram.requests import Combine, Quadratic, Request
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.damped_newton import ORTHANT, NewtonIterate
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

MEMORY = 10  # values of F among which the largest must be undercut
SUFFICIENT = 1e-4  # share of the promised decrease
HALVINGS = 40


class GmklParams(SolverParams):
    """Parameters of GMKL."""

    C: float = Field(100.0, gt=0, allow_inf_nan=False, description="bound of the dual variables")
    sigma: float = Field(1.0, gt=0, allow_inf_nan=False, description="price of kernel weight")
    max_iter: int = Field(2000, ge=1, description="limit on outer iterations")
    newton: float = Field(
        0.5, ge=0, description="relative gap below which to take Newton steps; 0: the paper's"
    )


def solve(problem: Problem, params: GmklParams) -> Steps:
    """Run GMKL.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : GmklParams
        Regularisation and stopping rule.

    Yields
    ------
    Combine, Quadratic, Matvec

    Returns
    -------
    Solution
        ``objective`` is the least F met, ``dual_objective`` the greatest dual value of alpha, or
        means of alpha, scaled to be feasible; weights are not normalised.
    """
    state = _Spectral(problem, params)
    state.start((yield Combine(state.d)))
    for _ in range(params.max_iter):
        q = yield Quadratic(state.svm.signed)
        state.bound(q)
        stop = reason_to_stop(problem, params, state.gap, stalled=state.stuck)
        if stop is not None:
            break
        gradient = params.sigma - 0.5 * q
        if state.gap <= params.newton:
            yield from state.newton_step(gradient)
        else:
            yield from state.spectral_step(gradient)
    return state.solution(stop or StopReason.MAX_ITER)


class _Spectral(NewtonIterate):
    """The iterate, and the bounds."""

    def __init__(self, problem: Problem, params: GmklParams) -> None:
        super().__init__(problem, params.C, params.tol, ORTHANT)
        self.upper, self.lower = math.inf, -math.inf
        self._params = params
        self._recent: deque[float] = deque(maxlen=MEMORY)
        self._last: tuple[Floats, Floats] | None = None
        self._alphas: list[Floats] = []
        self._forms = CuttingPlanes(problem.n_kernels)
        self._size = float(self.d.max())
        self._trace = Trace(params.trace, problem.clock)

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def bound(self, q: Floats) -> None:
        """Take the primal value at d and the dual value of its machine."""
        value = self._value(self.svm, self.d)
        self._recent.append(value)
        if value < self.upper:
            self.upper, self._best_d, self._best = value, self.d, self.svm
        self.lower = max(
            self.lower, self._dual(self.svm.alpha, float(q.max())), self._mixed_dual(q)
        )
        self.counters.outer_iterations += 1
        self.counters.passes += 1
        self._trace.record(self.upper, self.lower, self.d)

    def _value(self, svm: SvmSolution, d: Floats) -> float:
        """Return F."""
        return svm.objective + self._params.sigma * float(d.sum())

    def _dual(self, alpha: Floats, largest: float) -> float:
        """Return the dual value of `alpha` times the largest factor that is feasible."""
        tiny = float(np.finfo(np.float64).tiny)
        in_box = self._params.C / max(float(alpha.max()), tiny)
        in_balls = math.sqrt(2.0 * self._params.sigma / max(largest, tiny))
        return min(in_box, in_balls) * float(alpha.sum())

    def _mixed_dual(self, q: Floats) -> float:
        """Return the dual value of the best mean of all alpha met, each scaled to sum to 1.

        Its quadratic forms are at most the same mean of theirs, whose largest is the value of
        a matrix game.
        """
        height = float(self.svm.alpha.sum())
        if height <= 0.0:
            return -math.inf
        self._alphas.append(self.svm.alpha / height)
        self._forms.add(0.0, -q / height**2)
        game = self._forms.minimum()
        shares = np.flatnonzero(game.rows)
        mean = np.sum([game.rows[j] * self._alphas[j] for j in shares], axis=0)
        return self._dual(mean, -game.bound)

    def spectral_step(self, gradient: Floats) -> Generator[Request, Any, None]:
        """Go towards the projection of a gradient step until F falls enough."""
        length = self._spectral_length(gradient)
        self._last = self.d, gradient
        end = np.maximum(self.d - length * gradient, 0.0)
        segment = yield from self._segment(end)
        ceiling, step = max(self._recent), 1.0
        for _ in range(HALVINGS):
            segment.go(step)
            value = self._value(segment.svm, self.d + step * (end - self.d))
            if value <= ceiling + SUFFICIENT * step * segment.slope:
                break
            step *= 0.5
        self._move(segment, end, step)

    def _spectral_length(self, gradient: Floats) -> float:
        """Return Barzilai & Borwein's length of a gradient step."""
        if self._last is not None:
            moved, changed = self.d - self._last[0], gradient - self._last[1]
            curvature = float(moved @ changed)
            if curvature > 0.0:
                return float(moved @ moved) / curvature
        return self._size / max(float(np.abs(gradient).max()), np.finfo(float).tiny)

    def newton_step(self, gradient: Floats) -> Generator[Request, Any, None]:
        """Go towards the minimiser of the second-order model of F."""
        working = np.flatnonzero((self.d > 0.0) | (gradient < 0.0))
        end = yield from self.model_minimiser(working, gradient[working], self._size)
        segment = yield from self._segment(end)
        self._last = None
        self._move(segment, end, self.search(segment, self.upper))

    def _segment(self, end: Floats) -> Generator[Request, Any, Segment]:
        """Return the segment from d to `end`."""
        K_end = yield Combine(end)
        self.counters.combines += 1
        tilt = self._params.sigma * float((end - self.d).sum())
        return Segment(self.svm_at, self.svm, self.K, K_end, tilt)

    def _move(self, segment: Segment, end: Floats, step: float) -> None:
        """Take the place on the segment that was tried last, and the size of the weights there."""
        self.move(segment, end, step)
        self._size = float(self.d.max()) or self._size

    def solution(self, stop: StopReason) -> Solution:
        """Return the best weights met and their certificate."""
        bounds = self.upper, self.lower
        return svm_solution(self._best_d, self._best, bounds, stop, self.counters, self._trace)


METHOD = Method(
    name="gmkl",
    solve=solve,
    params=GmklParams,
    title="GMKL with l1 penalty, spectral projected gradient",
    problem="MKL with a price on kernel weights",
    loss="hinge",
    regularizer="sqrt(2 sigma) sum_m ||f_m||",
    reference="Varma & Babu 2009; Jain, Vishwanathan & Varma 2012, SPG-GMKL",
    hyperparameters=("C", "sigma"),
)
