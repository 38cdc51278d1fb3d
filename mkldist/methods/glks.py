"""GLKS, least squares with convex combinations of graph kernels (Argyriou, Herbster & Pontil 2005).

Minimises over kernel weights d in the simplex, components g_m on all n points, and bias b

    F = 1/2 { sum_m g_m'G_m^-1 g_m / d_m
              + sum over labelled i of w_i (y_i - sum_m g_m(x_i) - b)^2 },

where ``g'G^-1 g`` is infinite outside the range of G, and the weights w_i, the diagonal of W, are 1
in the paper.  For fixed d this is least squares with the
kernel ``sum_m d_m G_m``, and F at its minimum is convex in d.

The paper's candidates G_m are kernels of graphs: the pseudo-inverses of their Laplacians, which
exist only on the given points.  Here they are the kernels of the bank, deformed by the data set's
graph (:mod:`.deformed`), which predict off the points as well,

    G_m = (gamma_a K_m^-1 + gamma_i L)^-1.

With ``gamma_i = 0`` they are the kernels of the bank themselves, ``K_m / gamma_a``.  On a bank of
pseudo-inverses of Laplacians, the `graphs` of a view, F is then the paper's problem, up to the
bias: the paper has none, ``bias=False``.  The published code of its authors divides each kernel by
the Frobenius norm of its block between the labelled points, ``unit_norm=True``:

    G_m = Kd_m / (gamma_a ||Kd_m||),   Kd_m = (K_m^-1 + gamma_i / gamma_a L)^-1,

where ||.|| is the norm of the block as it is computed.

Lower bound: the residuals r of the labelled points, of sum 0 if there is a bias, give at their best
multiple the dual value ``1/2 (y'r)^2 / (r'W^-1 r + max_m r'G_m r)``; the solution's
``dual_variables`` are the r of the greatest one.

The paper's algorithm lets one kernel at a time join a mixture.  It is :func:`_one_at_a_time`, for
``acceleration="none"`` and wherever there is no bias.  The problem is also that of ``lapmkl``, form
``deformed``, with the squared loss in place of the squared hinge; by default :mod:`.lapmkl` solves
both by PrimalMKL.  With one kernel the problem is that of :func:`.rls.laprls`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Diagonal, Quadratic
from mkldist.core.arrays import Floats
from mkldist.methods import primalmkl
from mkldist.methods.deformed import ManifoldParams
from mkldist.methods.lapmkl import memory_of_deformed_kernels, solve_deformed
from mkldist.methods.rls import closed_form
from mkldist.optim.accuracy import form_rounding
from mkldist.optim.descent import root_of_slope
from mkldist.solvers.base import Counters, Method, Problem, Search, Steps
from mkldist.solvers.solver_params import Effects, SolverParams
from mkldist.solvers.squared_losses import SquaredLoss, squared


class GlksParams(ManifoldParams):
    """Parameters of GLKS."""

    steers: ClassVar[tuple[str, ...]] = ("acceleration",)
    effective_with: ClassVar[Effects] = {"acceleration": ("bias", (True,))}

    acceleration: Literal["newton", "none"] = Field(
        "newton", description="none: one kernel at a time joins the mixture, as in the paper"
    )
    bias: bool = Field(
        True, description="false: none, as in the paper, one kernel at a time joining the mixture"
    )
    unit_norm: bool = Field(
        False, description="divide kernels by the Frobenius norm of their labelled block"
    )


def solve(problem: Problem, params: GlksParams) -> Steps:
    """Fit the labelled points by functions of the graph kernels.

    ``kernel_coefficients`` are on all points; ``coefficients`` are the residuals of the labelled
    points, 0 elsewhere, and so are ``dual_variables``, of the lower bound.
    """
    plain = params.acceleration == "none" or not params.bias
    solver = partial(_one_at_a_time, bias=params.bias) if plain else primalmkl.solve
    return (
        yield from solve_deformed(
            problem, params, "squared", bias=params.bias, unit_norm=params.unit_norm, solver=solver
        )
    )


def _one_at_a_time(problem: Problem, params: SolverParams, *, bias: bool = True) -> Steps:
    """Run the paper's algorithm on the deformed kernels G_m between the labelled points.

    Of a mixture ``G = sum_m d_m G_m``, ``c = (G + W^-1)^-1 (y - b 1)`` are the residuals, and a
    kernel lowers F only if its ``c'G_m c`` exceeds ``c'G c``.  Without a bias b is 0.
    """
    M, loss = problem.n_kernels, squared(problem.y, problem.weights)
    y = problem.y
    # Begin with a mixture, here that of equal weights.
    d = np.full(M, 1.0 / M)
    G = yield Combine(d)
    counters = Counters()
    c = _machine(G, loss, counters, bias=bias)
    bounds = Search(problem, params, (d, c, 0.0), counters=counters)
    for _ in range(params.max_iter):
        # F at c, and the dual y'c - 1/2 c'W^-1 c - 1/2 max_m c'G_m c at the best multiple of c.
        q = yield Quadratic(c)
        unsure = form_rounding(q, (yield Diagonal((c**2)[:, None]))[:, 0], len(c))
        f = G @ c
        b = loss.best_bias(f) if bias else 0.0
        F = 0.5 * (float(c @ f) + float(unsure.max())) + loss.value(loss.residual(f + b), b)
        squares = loss.squares(c) + float((q + unsure).max())
        dual = 0.5 * float(y @ c) ** 2 / squares if squares > 0.0 else 0.0
        bounds.take((d, c, b), F, dual, c)
        bounds.record(d)
        # Stop if no kernel has a larger form than the mixture: then the bounds meet.
        m = int(q.argmax())
        slope = -0.5 * float(q[m] - d @ q)
        stop = bounds.reason_to_stop(stalled=not slope < 0.0)
        if stop is not None:
            break
        # Kernel m of the largest form joins: G <- (1 - p) G + p G_m with the best p in (0, 1].
        joining = (yield Combine(np.ones(1), np.array([m]))) - G
        p = root_of_slope(_slope_along(G, joining, loss, counters, bias=bias), slope, 1.0)
        d, G = (1.0 - p) * d, G + p * joining
        d[m] += p
        c = _machine(G, loss, counters, bias=bias)
    d, c, b = bounds.best
    return bounds.finish(stop, kernel_weights=d, coefficients=c, bias=b)


def _machine(G: Floats, loss: SquaredLoss, counters: Counters, *, bias: bool) -> Floats:
    """Return the residuals c of least squares with the kernel G."""
    counters.count_svm(iterations=0, newton_steps=1)
    c = closed_form(G, loss.lower, bias, loss.weights)
    return c - c.mean() if bias else c


def _slope_along(
    G: Floats, joining: Floats, loss: SquaredLoss, counters: Counters, *, bias: bool
) -> Callable[[float], float]:
    """Return the function that maps p to dF/dp at the mixture ``G + p joining``."""

    def slope_at(p: float) -> float:
        c = _machine(G + p * joining, loss, counters, bias=bias)
        return -0.5 * float(c @ joining @ c)

    return slope_at


METHOD = Method(
    name="glks",
    solve=solve,
    params=GlksParams,
    title="GLKS, convex combinations of graph kernels",
    problem="semi-supervised least squares, weights in the simplex",
    loss="squared",
    regularizer="gamma_a and gamma_i norms of the components",
    reference="Argyriou, Herbster & Pontil 2005",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    weighs_points=True,
    typical_passes=lambda n_kernels: 2,
    memory=memory_of_deformed_kernels,
)
