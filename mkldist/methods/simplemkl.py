"""SimpleMKL, reduced gradient descent (Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1).

Minimises over kernel weights d in the simplex the optimal value of the support vector machine,

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

with gradient ``dJ/dd_m = -1/2 q_m``, ``q_m = (alpha*y)' K_m (alpha*y)``.  Of several classes that
share d, J and q are sums over the classes.  Any alpha met is feasible in the dual, whose value
``1'alpha - 1/2 max_m q_m`` bounds the optimum from below; so does that of a mixture of them, after
a kink of J.  The solution's ``dual_variables`` are the alpha of the greatest bound.

Xu et al. 2008 call the method subgradient descent (SD).  ``curvature=False`` is the paper's
algorithm, :func:`_plain`.  It stalls at kinks of J, where the machine is not unique.  The paper
leaves the line search open; ``line_search="golden-section"`` is that of its authors' toolbox.  The
default is :mod:`.reduced_gradient`, which says what differs.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Quadratic
from mkldist.methods.cut_bundle import Binding, WrapperBounds, exact_bound
from mkldist.methods.reduced_gradient import (
    ReducedGradientParams,
    descend,
    memory_of_descent,
    normalised,
    steepest_direction,
)
from mkldist.methods.weight_newton import Iterate, Segment
from mkldist.solvers.base import Counters, Method, Problem, Renewal, Steps
from mkldist.solvers.solver_params import Effects, HingeParams
from mkldist.solvers.svm import InnerSvm, sum_over_classes


class SimpleMKLParams(HingeParams, ReducedGradientParams):
    """Parameters of SimpleMKL."""

    steers: ClassVar[tuple[str, ...]] = ("line_search",)
    effective_with: ClassVar[Effects] = {
        **ReducedGradientParams.effective_with,
        "line_search": ("curvature", (False,)),
    }

    line_search: Literal["slope", "golden-section"] = Field(
        "slope", description="root of the slope, or least value as in the authors' toolbox"
    )


def solve(problem: Problem, params: SimpleMKLParams) -> Steps:
    """Run SimpleMKL.

    ``objective`` is the least primal value met, ``dual_objective`` the greatest lower bound.
    """
    counters = Counters()
    svm_at = InnerSvm(problem.y, problem.bound(params.C), params.tol, counters)
    bounds = WrapperBounds(problem, params, counters)
    if isinstance(problem.start, Binding):  # a solution on shorter factors
        svm_at.begin_at(problem.start.alpha)
    if not params.curvature:
        return (yield from _plain(problem, params, svm_at, bounds))
    no_ridges = np.zeros(problem.n_kernels)
    stop = yield from descend(
        problem, params, lambda kernel: svm_at(kernel.matrix), no_ridges, bounds
    )
    return bounds.solution(stop)


def _plain(
    problem: Problem, params: SimpleMKLParams, svm_at: InnerSvm, bounds: WrapperBounds
) -> Steps:
    """Run Algorithm 1: drop kernels along the direction while J falls, then search the line."""
    if params.line_search == "golden-section":
        svm_at.sharpen()  # it compares values, which may differ by less than a machine's gap
    # Set d_m = 1/M, and compute J(d) by a machine on sum_m d_m K_m.
    d = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    if isinstance(problem.start, Binding):
        d = problem.start.weights
    at = Iterate.solved(d, (yield Combine(d, thin=True)), svm_at)
    moved = True
    for _ in range(params.max_iter):
        # Compute dJ/dd_m = -1/2 q_m, and stop by the duality gap.
        q = sum_over_classes((yield Quadratic(at.svm.signed)))
        dual = at.svm.dual_value(float(q.max()))
        bounds.update(at.d, at.svm, at.svm.objective, dual)
        stop = bounds.reason_to_stop(stalled=not moved)
        if stop is not None:
            break
        # Compute the descent direction D (12), where mu = argmax_m d_m keeps the sum of weights.
        mu, moved = int(at.d.argmax()), False
        D = steepest_direction(at.d, -0.5 * q, mu)
        while (D < 0.0).any():
            # Set nu = argmin over D_m < 0 of -d_m / D_m, gamma_max = -d_nu / D_nu, and compute J
            # at d + gamma_max D, where the weight of kernel nu vanishes.
            shrinking = np.flatnonzero(D < 0.0)
            nu = int(shrinking[np.argmin(-at.d[shrinking] / D[shrinking])])
            d_end = at.d - at.d[nu] / D[nu] * D
            d_end[nu] = 0.0
            d_end = normalised(d_end, at.d)
            end = Iterate.solved(d_end, (yield Combine(d_end, thin=True)), svm_at)
            if not end.svm.objective < at.svm.objective or problem.clock.past(params.time_limit):
                # Search the line along D for gamma in [0, gamma_max]: d <- d + gamma D.
                segment = Segment(svm_at, at, end.d, end.K, end_svm=end.svm)
                if params.line_search == "golden-section":
                    found = segment.golden_section()
                    at, moved = found, moved or found.step > 0.0
                elif segment.slope < 0.0:
                    at, moved = segment.search(), True
                break
            # J falls: d <- d + gamma_max D, and kernel mu takes up what D_nu took.
            at, moved = end, True
            D[mu] += D[nu]
            D[nu] = 0.0
            if nu == mu:  # there is nothing left to take up
                break
    return bounds.solution(stop)


METHOD = Method(
    name="simplemkl",
    solve=solve,
    params=SimpleMKLParams,
    title="SimpleMKL, reduced gradient (SD)",
    problem="simplex-weighted MKL",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||)^2",
    reference="Rakotomamonjy, Bach, Canu & Grandvalet 2008, Algorithm 1",
    joint_classes=True,
    weighs_points=True,
    memory=memory_of_descent,
    exact_bound=exact_bound,
    hinge_machines=True,
    renewal=Renewal(),
)
