"""GMKL with l1 penalty by spectral projected gradient (Varma & Babu 2009; Jain et al. 2012).

Minimises over kernel weights d >= 0

    F(d) = J(d) + sigma sum_m d_m,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + sqrt(2 sigma) sum_m ||f_m||`` with
``d_m = ||f_m|| / sqrt(2 sigma)``.  Its dual is

    max_alpha { 1'alpha : q_m(alpha*y) <= 2 sigma for all m, 0 <= alpha <= C, y'alpha = 0 }.

The alpha of any machine, or a mean of several, is feasible once it is scaled, and so gives a lower
bound.  The solution's ``dual_variables`` are the scaled alpha of the greatest one, ``1'alpha``
less what ``y'alpha`` costs that rounding leaves.

An iteration

1. goes from d towards the projection of ``d - lambda grad F`` on d >= 0, with the length
   ``lambda`` of Barzilai & Borwein,
2. halves the step until F falls below the largest of its last values by a share of the decrease
   that the gradient promises.  The combined kernel is linear in the step, so that only the machine
   is solved again.

The problem and its optimum are the paper's.  Two things differ:

* Gradient steps are slow near the optimum, where q changes with d by orders of magnitude faster
  along one direction than along another.  Once the relative gap is at most ``newton``, steps
  minimise the second-order model of F over d >= 0 (:mod:`.weight_newton`).  With ``newton=0`` all
  steps are the paper's.
* The paper loosens the inner machine while the projected gradient is large.  Here it is solved
  to a share of the tolerance throughout, and warm starts keep it cheap.

If a solution d has the total weight s, then d / s solves simplex-weighted MKL at s C, because
``J(s p)`` at C is ``1/s`` times ``J(p)`` at s C.
"""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.core.arrays import Floats
from mkldist.methods.cut_bundle import WrapperBounds
from mkldist.methods.weight_newton import (
    INNER_TOLERANCE,
    ORTHANT,
    DampedNewton,
    Iterate,
    Segment,
    hessian_root,
)
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.solvers.base import Counters, Method, Problem, Steps
from mkldist.solvers.progress import DualBound
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import InnerSvm

TINY = float(np.finfo(np.float64).tiny)
MEMORY = 10  # last values of F, below the largest of which a step must lead
SUFFICIENT = 1e-4  # share of the promised decrease by which it must
HALVINGS = 40  # trials of a step


class GmklParams(HingeParams):
    """Parameters of GMKL."""

    steers: ClassVar[tuple[str, ...]] = ("newton",)

    sigma: float = Field(1.0, gt=0, allow_inf_nan=False, description="price of kernel weight")
    max_iter: int = Field(2000, ge=1, description="limit on outer iterations")
    newton: float = Field(
        0.5, ge=0, description="relative gap below which to take Newton steps; 0: the paper's"
    )


def solve(problem: Problem, params: GmklParams) -> Steps:
    """Run GMKL.

    ``objective`` is the least F met, ``dual_objective`` the greatest dual value met of an alpha, or
    of a mean of several, scaled to be feasible.  Weights are not normalised.
    """
    M, sigma, counters = problem.n_kernels, params.sigma, Counters()
    svm_at = InnerSvm(problem.y, params.C, INNER_TOLERANCE * params.tol, counters)
    newton = DampedNewton(ORTHANT, M, params.tol, svm_at)
    bounds, duals = WrapperBounds(problem, params, counters), MeanDuals(M, params.C, sigma)
    recent: deque[float] = deque(maxlen=MEMORY)
    last: Gradient | None = None
    d, size = np.full(M, 1.0 / M), 1.0 / M
    at = Iterate.solved(d, (yield Combine(d)), svm_at)
    for _ in range(params.max_iter):
        # F(d) and its gradient, by the machine on sum_m d_m K_m.
        q = yield Quadratic(at.svm.signed)
        F = at.svm.objective + sigma * float(at.d.sum())
        gradient = sigma - 0.5 * q
        rounding = at.svm.rounding.of_form / max(float(at.d.sum()), TINY)  # of the mean kernel
        scaled = duals.lower_bound(at.svm.alpha, at.svm.height, q + rounding)
        bounds.update(at.d, at.svm, F, scaled.value, scaled)
        stop = bounds.reason_to_stop(stalled=newton.stuck)
        if stop is not None:
            break
        recent.append(F)
        if bounds.gap > params.newton:
            # 1. Go towards the projection of d - lambda grad F on d >= 0, with lambda of Barzilai
            # and Borwein.  2. Halve the step until F falls below the largest of its last values.
            here = Gradient(at.d, gradient)
            d_end = np.maximum(at.d - spectral_length(here, last, size) * gradient, 0.0)
            segment = Segment(svm_at, at, d_end, (yield Combine(d_end)), multiplier=sigma)
            at, last = backtrack(segment, max(recent)), here
        else:
            # In place of both: go towards the minimiser of the second-order model of F over d >= 0.
            working = np.flatnonzero((at.d > 0.0) | (gradient < 0.0))
            products = yield Matvec(working, at.svm.signed)
            root = hessian_root(at.K, at.svm.alpha, params.C, products)
            d_end = newton.minimiser(at.d, working, gradient[working], root, size)
            segment = Segment(svm_at, at, d_end, (yield Combine(d_end)), multiplier=sigma)
            at, last = newton.search(segment, bounds.upper), None
        del segment  # its matrices would stay in memory while the bank answers
        size = float(at.d.max()) or size
    return bounds.solution(stop)


class Gradient(NamedTuple):
    """Kernel weights d (M,) and the derivatives of F by them (M,)."""

    d: Floats
    gradient: Floats


def spectral_length(here: Gradient, last: Gradient | None, size: float) -> float:
    """Return the length lambda of a gradient step by Barzilai & Borwein.

    Without a gradient step before, or with no positive curvature along it, no weight moves by more
    than the size of the weights.
    """
    if last is not None:
        moved, changed = here.d - last.d, here.gradient - last.gradient
        curvature = float(moved @ changed)
        if curvature > 0.0:
            return float(moved @ moved) / curvature
    return size / max(float(np.abs(here.gradient).max()), TINY)


def backtrack(segment: Segment, ceiling: float) -> Iterate:
    """Halve the step until F falls below a ceiling by a share of the promised decrease."""
    step = 1.0
    for _ in range(HALVINGS):
        trial = segment.at(step)
        if segment.objective(trial) <= ceiling + SUFFICIENT * step * segment.slope:
            break
        step *= 0.5
    return trial


class MeanDuals:
    """Lower bounds of F, from the alpha of the machines met and from means of them."""

    def __init__(self, n_kernels: int, C: float, sigma: float) -> None:
        self._C, self._sigma = C, sigma
        self._alphas: list[Floats] = []
        self._forms = CuttingPlanes(n_kernels)

    def lower_bound(self, alpha: Floats, height: float, q: Floats) -> DualBound:
        """Return the dual value of a machine's alpha, or that of the best mean if it is greater.

        The alpha (n,) of which means are taken are scaled to height 1.  By convexity the quadratic
        forms of a mean are at most the means of their forms.  A matrix game finds the mean whose
        largest form is least by that bound.  `height` is ``1'alpha`` less what a rest of
        ``y'alpha`` costs, or less; q (M,) are upper bounds of ``q_m(alpha*y)``.
        """
        own = self._scaled(alpha, height, float(q.max()))
        if height <= 0.0:
            return own
        self._alphas.append(alpha / height)
        self._forms.add(0.0, -q / height**2)
        game = self._forms.minimum()
        parts = np.flatnonzero(game.rows)
        mean = np.sum([game.rows[j] * self._alphas[j] for j in parts], axis=0)
        of_mean = self._scaled(mean, 1.0, -game.bound)
        return of_mean if of_mean.value > own.value else own

    def _scaled(self, alpha: Floats, height: float, largest: float) -> DualBound:
        """Return `alpha` times the largest factor that is feasible, and the dual value there.

        `largest` bounds their quadratic forms from above; `height` is as for :meth:`lower_bound`.
        """
        in_box = self._C / max(float(alpha.max()), TINY)
        in_balls = math.sqrt(2.0 * self._sigma / max(largest, TINY))
        factor = min(in_box, in_balls)
        return DualBound(factor * max(height, 0.0), factor * alpha)


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
    memory=lambda size, _: size.memory(vectors=40 + 2 * size.n_points),  # cuts, K_m alpha
)
