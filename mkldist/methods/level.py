"""Extended Level method (Xu, Jin, King & Lyu 2008, Algorithm 2).

Minimises over kernel weights p in the simplex the optimal value of the support vector machine,

    J(p) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m p_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  J is convex, and
every feasible alpha gives a cut ``f(p, alpha) = 1'alpha - 1/2 sum_m p_m q_m(alpha*y) <= J(p)``,
where ``q_m(v) = v'K_m v``.  Of several classes the shared weights minimise ``sum_c J_c(p)``, and
cuts are sums over the classes.  The minimum over p of the largest cut, a mixture of cuts, bounds
the optimum from below; the dual value ``1'alpha - 1/2 max_m q_m(alpha*y)`` of the mixture of their
alpha, the solution's ``dual_variables``, is no less.

Erratum: the paper prints its stopping rule with an absolute 0.01.  J is in the thousands at its
C = 100, and only a gap relative to ``|J|`` gives its numbers of active kernels and iterations.

The paper states two stopping rules.  Algorithm 2 stops by the bounds.  The experiments stop by the
duality gap of the iterate, ``stop="point"``, which takes more iterations and leaves fewer kernels
with small weights.

The paper raises the level's share of the upper bound from 0.9 to 0.99 once the gap is below 1 %.
That is ``near=0.99``; at tolerances far below the paper's it takes about twice as many iterations
as the default.

With ``near=0.99`` and ``acceleration="none"`` this is Algorithm 2, but for four details.  The upper
bound in (6) is the least f(p^j, alpha^j), which at an inexact alpha may lie below J; the code takes
the machine's primal value.  The stop, step 8, comes before the projection, step 6, which the last
iterate does not need.  The projection may leave the level set by a thousandth of the distance of
the bounds.  Where the bounds stand still, machines are solved exactly and, if that does not help,
the run ends (:class:`Standstill`).

By default the problem and its optimum are the paper's, and four more things differ: the method
works on a working set of kernels; its cuts are those of all multiples of the dual points
(:class:`.cut_bundle.DualCuts`); it projects not p but the weights that are best for the functions
found at p; and where the gap of the iterate is to end it, bounds of a tenth of the tolerance do so
too.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from mkldist.methods.cut_bundle import (
    BundleParams,
    DualPoint,
    add_cut,
    begin,
    best_for_functions,
    bundle_solution,
    certify,
    exact_bound,
    memory_of_cuts,
    renewed,
    solve_machine,
)
from mkldist.optim.accuracy import relative_gap
from mkldist.optim.factored_matrix import Gram
from mkldist.solvers.base import Method, Problem, Renewal, Steps, reason_to_stop
from mkldist.solvers.svm import InnerSvm

PROGRESS = 1e-3  # share of the distance by which an iteration must narrow the bounds
SHARPEN_AFTER = 5  # iterations without progress, after which machines are solved exactly
PATIENCE = 25  # iterations without progress, after which only rounding is left
NEAR_RATIO = 0.01  # relative gap below which `near` takes the place of `far`
LEVEL_SLACK = 1e-3  # violation of the level that may remain, of the distance of the bounds


class LevelParams(BundleParams):
    """Parameters of the Level method."""

    steers: ClassVar[tuple[str, ...]] = ("far", "near")

    far: float = Field(0.9, gt=0, lt=1, description="level's share of the upper bound at first")
    near: float = Field(0.8, gt=0, lt=1, description="that share once the gap is below 1 %")


def solve(problem: Problem, params: LevelParams) -> Steps:
    """Run the Level method.

    ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound that
    the cuts gave.  If the gap of an iterate ended the search (``stop="point"``), that iterate is
    returned with its own primal value, which may exceed the least.
    """
    # Step 1: p^0 = e/m, or the weights of the path's last point.
    bundle, p = yield from begin(problem, params)
    kernels, bounds, standstill = bundle.kernels, bundle.bounds, Standstill(bundle.machine)
    K: Gram | None = None
    for _ in range(params.max_iter):
        # Step 3: train the machine on sum_m p^i_m K_m for alpha^i.
        weights = kernels.spread(p)
        K = yield kernels.combination(p, thin=True, former=K)
        svm = solve_machine(bundle, K, weights)
        q = yield from kernels.quadratic(svm.signed)
        # Step 4, (5): g^i(p) = max_j f(p, alpha^j).  Step 5, (6): the bounds min_p g^i(p) and the
        # least primal value, and their gap; on a working set, then those on all kernels.
        add_cut(bundle, DualPoint(svm.alpha, q, svm.rounding))
        gap = yield from certify(bundle, svm, q)
        bounds.record(weights)
        # Step 8: stop.
        lower, width = bundle.restricted_lower, bounds.upper - bundle.restricted_lower
        stop = reason_to_stop(problem, params, gap.value, stalled=standstill.after(width))
        if stop is not None:
            break
        # Step 6, (7) and (8): project p^i, or the best weights for the functions found there, onto
        # the level set {p : g^i(p) <= l^i}.
        centre = np.zeros(len(kernels))  # certify may have appended kernels
        centre[: len(p)] = p if params.acceleration == "none" else best_for_functions(p, q)
        level = level_between(lower, bounds.upper, params)
        nearest = bundle.cuts.project(centre, level, LEVEL_SLACK * width)
        p = bundle.model.weights if nearest is None else nearest  # rounding may hide the level set
    return bundle_solution(bundle, weights, svm, gap, stop)


class Standstill:
    """Count of iterations that did not narrow the bounds; the machine is sharpened after some."""

    def __init__(self, machine: InnerSvm) -> None:
        self._machine = machine
        self._least, self._idle = math.inf, 0

    def after(self, width: float) -> bool:
        """Return True if the last `PATIENCE` iterations did not narrow the bounds to below a width.

        The width, over the kernels at hand, grows only where kernels join, which begins a new
        count.
        """
        if width < (1.0 - PROGRESS) * self._least or width > self._least:
            self._least, self._idle = width, 0
        else:
            self._idle += 1
        if self._idle == SHARPEN_AFTER:
            self._machine.sharpen()
        return self._idle >= PATIENCE


def level_between(lower: float, upper: float, params: LevelParams) -> float:
    """Return the level ``l = lambda upper + (1 - lambda) lower`` of the level set (7)."""
    lam = params.near if relative_gap(upper, lower) < NEAR_RATIO else params.far
    return lam * upper + (1 - lam) * lower


METHOD = Method(
    name="level",
    solve=solve,
    params=LevelParams,
    title="Extended Level method",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Xu, Jin, King & Lyu 2008, Algorithm 2",
    has_path=True,
    joint_classes=True,
    weighs_points=True,
    memory=memory_of_cuts,
    exact_bound=exact_bound,
    hinge_machines=True,
    renewal=Renewal(renewed, by_points=True),
)
