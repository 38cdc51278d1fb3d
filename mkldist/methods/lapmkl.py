"""LapMKL: semi-supervised multiple kernel learning in the primal.

Hao, Yuan, Yang & Chen 2012, section 4.  On n points, of which those with ``y_i = 0`` have no label,
with the graph Laplacian L and kernel weights d in the simplex, two forms:

``shared``
    The paper's (18), one vector alpha of coefficients for all kernels,

        F = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'N alpha
                  + sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))^2 },

    ``K = sum_m d_m K_m``, ``N = sum_m d_m K_m L K_m``.  It is convex in (alpha, b) and in d, not in
    both: a run has converged at a stationary point, to ``stationarity <= tol`` whatever its gap,
    since ``dual_objective`` is a lower bound that is loose unless gamma_i is small.  Which of
    several stationary points it meets depends on its steps.  See
    :mod:`mkldist.solvers.lapmkl_shared`.
``deformed``
    The paper's (16), from which (18) follows by sharing alpha: a function per kernel, convex, with
    a duality gap.  See :mod:`mkldist.solvers.deformed_mkl`.

Its optimum is at most that of ``shared``.  Both equal PrimalMKL with ``lam = gamma_a`` on the
labelled points where ``gamma_i = 0``, F for F, and LapSVM where there is one kernel.

Erratum: (18) sums the loss over all n points; the labelled ones of (16) are meant.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mkldist.solvers.base import Method, Problem, Steps
from mkldist.solvers.deformed import ManifoldParams
from mkldist.solvers.deformed_mkl import solve_deformed
from mkldist.solvers.lapmkl_shared import solve_shared


class LapMKLParams(ManifoldParams):
    """Parameters of LapMKL."""

    form: Literal["shared", "deformed"] = Field(
        "deformed",
        description="coefficients of each kernel's own, (16), certified; or shared by all, (18), "
        "which is not convex: tol is then on stationarity, and the gap may stay large",
    )
    coupled: bool = Field(
        True, description="let the coefficients follow in the weight step; false: the paper's step"
    )


def solve(problem: Problem, params: LapMKLParams) -> Steps:
    """Run LapMKL in the form that the parameters name.

    Parameters
    ----------
    problem : Problem
        Labels, 0 for none, number of kernels, and graph Laplacian.
    params : LapMKLParams
        Weights of the two norms, form and stopping rule.

    Yields
    ------
    Combine, Matvec

    Returns
    -------
    Solution
    """
    if params.form == "shared":
        return (yield from solve_shared(problem, params))
    return (yield from solve_deformed(problem, params, "squared-hinge", coupled=params.coupled))


METHOD = Method(
    name="lapmkl",
    solve=solve,
    params=LapMKLParams,
    title="LapMKL, manifold regularisation with many kernels",
    problem="semi-supervised MKL in the primal, weights in the simplex",
    loss="squared hinge",
    regularizer="gamma_a and gamma_i norms of the components, (16) or (18)",
    reference="Hao, Yuan, Yang & Chen 2012, section 4, (16) and (18)",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
)
