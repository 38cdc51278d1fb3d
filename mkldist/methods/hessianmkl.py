"""HessianMKL, Newton's method on the kernel weights (Chapelle & Rakotomamonjy 2008).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||)^2``.  An iteration

1. takes the gradient g, ``g_m = -1/2 q_m(alpha*y)``, and the Hessian H of J, which the free
   alpha give (:func:`.weight_newton.hessian_root`),
2. minimises ``g's + 1/2 s'Hs`` over the steps s that keep d in the simplex,
3. searches the segment from d to d + s, where the combined kernel is linear in the step.

Of several classes that share d, J, its gradient and its Hessian are sums over the classes.

The problem and its optimum are the paper's.  Four things differ:

* Only kernels of positive weight and kernels of ``q_m > sum_k d_k q_k`` may take part in a step.
  Once the weights are sparse, the products that the Hessian needs so visit few kernels.
* J is only piecewise smooth, and a step may leave the piece whose Hessian it knows.  A proximal
  term in the model keeps the step short (:mod:`.weight_newton`).  Where no alpha is free the
  Hessian is zero, and the proximal term turns the step into one of projected gradient.
* J has kinks where weights vanish: the machine there is not unique, and the machines at small
  positive weights tend to another one.  Kernels of low rank have kinks everywhere.  Newton steps
  are short there.  Steps of the Level method follow one of less than half of its segment: as many
  as the search of the segment took trials, and twice as many after each further short step.
* The lower bound is the minimum of the cutting planes of all machines met.  It costs no kernel,
  and but for rounding it is at least the bound ``1'alpha - 1/2 max_m q_m`` of any single machine.
  The solution's ``dual_variables`` are the mixture of their alpha, whose own bound is no less.

``acceleration="none"`` takes all kernels in every step and no step of the Level method.  The
proximal term and the lower bound stay.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Matvec, Quadratic
from mkldist.methods.cut_bundle import (
    Binding,
    MachineCuts,
    WrapperBounds,
    best_for_functions,
    exact_bound,
)
from mkldist.methods.weight_newton import (
    INNER_TOLERANCE,
    SIMPLEX,
    DampedNewton,
    Iterate,
    Segment,
    hessian_root,
)
from mkldist.solvers.base import Counters, Method, Problem, Renewal, Steps
from mkldist.solvers.progress import DualBound
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import InnerSvm, sum_over_classes

SHORT = 0.5  # length of a Newton step, below which the model was wrong
MOST_TURNS = 16  # steps of the Level method in a row


class HessianMKLParams(HingeParams):
    """Parameters of HessianMKL."""

    steers: ClassVar[tuple[str, ...]] = ("acceleration",)

    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every step takes all kernels and is a damped Newton step"
    )


def solve(problem: Problem, params: HessianMKLParams) -> Steps:
    """Run HessianMKL.

    ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound by the
    cutting planes of the machines met.
    """
    M, counters = problem.n_kernels, Counters()
    n_classes = problem.y.size // problem.n_points  # machines of a trial
    C = problem.bound(params.C)
    svm_at = InnerSvm(problem.y, C, INNER_TOLERANCE * params.tol, counters)
    newton = DampedNewton(SIMPLEX, M, params.tol, svm_at)
    bounds, cuts = WrapperBounds(problem, params, counters), MachineCuts(M)
    plain, turns, turns_left = params.acceleration == "none", 0, 0
    d = np.full(M, 1.0 / M)
    if isinstance(problem.start, Binding):  # a solution on shorter factors
        d = problem.start.weights
        svm_at.begin_at(problem.start.alpha)
    at = Iterate.solved(d, (yield Combine(d, thin=True)), svm_at)
    for _ in range(params.max_iter):
        # 1. Gradient of J, and the minimum of all cuts 1'alpha - 1/2 sum_m d_m q_m.
        # Their rounding, the same for all kernels, makes bounds hold and changes no step.
        q = sum_over_classes((yield Quadratic(at.svm.signed))) + at.svm.rounding.of_form
        gradient, dual = -0.5 * q, at.svm.height - 0.5 * float(q.max())
        found = cuts.add(at.svm, q)
        of_cuts = DualBound(found.value, found.mixture.alpha)
        bounds.update(at.d, at.svm, at.svm.objective, dual, of_cuts, found.points)
        stop = bounds.reason_to_stop(stalled=newton.stuck)
        if stop is not None:
            break
        if turns_left:
            turns_left -= 1
            centre = best_for_functions(at.d, q)
            d = cuts.planes.level_step(centre, bounds.upper, bounds.lower)
            at = Iterate.solved(d, (yield Combine(d, thin=True)), svm_at)
        else:
            # 1. Hessian of J, in the kernels that may take part.
            working = np.flatnonzero(plain | (at.d > 0.0) | (q > at.d @ q))
            products = yield Matvec(working, at.svm.signed)
            root = hessian_root(at.K, at.svm.alpha, C, products)
            # 2. Minimise g's + 1/2 s'Hs over the steps s that keep d in the simplex.
            d_end = newton.minimiser(at.d, working, gradient[working], root, size=1.0)
            # 3. Search the segment from d to d + s.
            segment = Segment(svm_at, at, d_end, (yield Combine(d_end, thin=True)))
            before = counters.svm_solves
            at = newton.search(segment, abs(at.svm.objective))
            if at.step >= SHORT:
                turns = 0
            elif not plain:  # the model was wrong
                trials = (counters.svm_solves - before) // n_classes
                turns = turns_left = min(max(2 * turns, trials), MOST_TURNS)
            del segment  # its matrices would stay in memory while the bank answers
    return bounds.solution(stop)


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
    weighs_points=True,
    memory=lambda size, _: size.memory(vectors=40 + 2 * size.n_points),  # cuts, K_m alpha
    exact_bound=exact_bound,
    hinge_machines=True,
    renewal=Renewal(),
)
