"""PrimalMKL on deformed kernels: LapMKL with a function per kernel, (16), and GLKS.

Minimises over components g_m on all n points, kernel weights d in the simplex and bias b

    F = 1/2 { sum_m g_m'(gamma_a K_m^-1 + gamma_i L) g_m / d_m
              + sum over labelled i of loss(y_i, sum_m g_m(x_i) + b) },   g_m = d_m f_m,

of Hao, Yuan, Yang & Chen 2012, (16).  It is convex.  It is the problem of PrimalMKL with lam = 1
over the kernels ``K_m (gamma_a I + gamma_i L K_m)^-1`` restricted to the labelled points, see
:mod:`.deformed`, and so is its certificate.  In three steps:

1. The bank is asked for its Gram matrices, a few at a time, and each is deformed.
2. PrimalMKL runs on the deformed kernels, which form a bank of their own in memory.
3. The bank is asked for the Gram matrices in use once more, for coefficients on all points and for
   the value of F on the original kernels.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

import numpy as np

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.bank import MemoryBank
from mkldist.gram.layout import TileLayout
from mkldist.gram.passes import answered
from mkldist.gram.requests import Request
from mkldist.machines.squared_losses import SquaredLoss
from mkldist.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.methods.manifold.deformed import MATRICES, Deformation, ManifoldParams
from mkldist.methods.primal import primalmkl
from mkldist.methods.primal.params import PrimalMKLParams, squared_loss
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Problem, Solution, Steps, StopReason
from mkldist.solvers.single_kernels import AT_A_TIME, gram_matrices

INNER_SHARE = 0.9  # of tol; the rest is for rounding between the deformed kernels and the bank's


def memory_of_deformed_kernels(size: ProblemSize, params: ManifoldParams) -> SolverMemory:
    """Return the memory of a solver that keeps the deformed kernels between labelled points."""
    n_entries = TileLayout.for_points(size.n_labelled).n_entries
    columns = 2 * size.n_labelled  # of PrimalMKL's weight step
    return size.memory(matrices=MATRICES, vectors=VECTORS_PER_SOLVER + n_entries + columns)


def solve_deformed(
    problem: Problem,
    params: ManifoldParams,
    loss: Literal["squared-hinge", "squared"],
    *,
    coupled: bool = True,
) -> Steps:
    """Run PrimalMKL on the deformed kernels.

    Parameters
    ----------
    problem : Problem
        Labels, 0 for none, number of kernels, and graph Laplacian.
    params : ManifoldParams
        Weights of the two norms and stopping rule.
    loss : str
        Loss of the labelled points.
    coupled : bool
        True to let the coefficients follow in PrimalMKL's weight step.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``kernel_coefficients`` are on all points; ``coefficients`` are the shared coefficients of
        the deformed kernels, 0 at points without a label.
    """
    labelled = np.flatnonzero(problem.y)
    deformation = Deformation(problem.laplacian, params.gamma_a, params.gamma_i, labelled)
    bank = yield from _deformed_bank(problem, params, deformation)
    inner = PrimalMKLParams(
        lam=1.0,
        loss=loss,
        tol=INNER_SHARE * params.tol,
        max_iter=params.max_iter,
        time_limit=params.time_limit,
        trace=params.trace,
        coupled=coupled,
    )
    of_labels = squared_loss(inner, problem.y[labelled])
    if bank is None:
        return _constant(problem, deformation, of_labels)
    on_labelled = Problem(problem.y[labelled], problem.n_kernels, problem.clock)
    solution = answered(bank, primalmkl.solve(on_labelled, inner))
    r = solution.dual_variables
    r = r * on_labelled.y if loss == "squared-hinge" else r
    return (yield from _on_all_points(problem, params, deformation, of_labels, solution, r))


def _deformed_bank(
    problem: Problem, params: ManifoldParams, deformation: Deformation
) -> Generator[Request, Any, MemoryBank | None]:
    """Return the deformed kernels between the labelled points, or None when the time is up."""
    layout = TileLayout.for_points(len(deformation.labelled))
    values = np.empty((problem.n_kernels, layout.n_entries))
    for start in range(0, problem.n_kernels, AT_A_TIME):
        if problem.clock.past(params.time_limit):
            return None
        kernels = np.arange(start, min(start + AT_A_TIME, problem.n_kernels))
        matrices = yield from gram_matrices(kernels, problem.n_kernels)
        blocks = np.array([deformation(K).block() for K in matrices])
        values[kernels] = layout.pack(blocks)
    return MemoryBank(values, layout)


def _constant(problem: Problem, deformation: Deformation, loss: SquaredLoss) -> Solution:
    """Return the best constant, which needs no kernel, with the lower bound 0.

    It is the solution of a run whose time is up before the kernels are deformed.
    """
    labelled = deformation.labelled
    b = loss.best_bias(np.zeros(len(labelled)))
    r = loss.residual(np.full(len(labelled), b))
    weights = np.zeros(problem.n_kernels)
    weights[0] = 1.0
    return Solution(
        kernel_weights=weights,
        coefficients=np.zeros(problem.n_points),
        bias=b,
        dual_variables=deformation.spread(r * problem.y[labelled], problem.n_points),
        objective=loss.value(r, b),
        dual_objective=0.0,
        stop_reason=StopReason.TIME_LIMIT,
    )


def _on_all_points(
    problem: Problem,
    params: ManifoldParams,
    deformation: Deformation,
    loss: SquaredLoss,
    inner: Solution,
    r: Floats,
) -> Generator[Request, Any, Solution]:
    """Return the predictor on the bank's own kernels, and F there.

    The lower bound is reduced by the most that rounding in the deformed kernels in use may have
    added to it at the dual variables `r` (l,).
    """
    labelled, n = deformation.labelled, problem.n_points
    d, c = inner.kernel_weights, inner.coefficients
    active = np.flatnonzero(d)
    own = np.empty((len(active), n))
    f, norms, rounding, excess = np.zeros(n), 0.0, 0.0, 0.0
    for start in range(0, len(active), AT_A_TIME):
        kernels = active[start : start + AT_A_TIME]
        matrices = yield from gram_matrices(kernels, problem.n_kernels)
        for s, (m, K) in enumerate(zip(kernels, matrices, strict=True), start):
            kernel = deformation(K)
            own[s] = kernel.coefficients(c)
            f_m = K @ own[s]
            f += d[m] * f_m
            norms += float(d[m]) * deformation.penalty(own[s], f_m)
            reach = np.sqrt(K.diagonal())
            rounding += float(d[m]) * deformation.rounding(reach, own[s], f_m, np.abs(c))
            excess = max(excess, kernel.norm(r) - float(r @ kernel.block() @ r))
    b = loss.best_bias(f[labelled])
    objective = 0.5 * norms + loss.value(loss.residual(f[labelled] + b), b) + rounding
    constant = _constant(problem, deformation, loss)
    if objective > constant.objective:  # rounding left nothing better
        own[:], b, objective = 0.0, float(constant.bias), constant.objective
    lower = max(inner.dual_objective - 0.5 * excess, 0.0)
    met = relative_gap(objective, lower) <= params.tol
    missed = StopReason.STALLED if inner.converged else inner.stop_reason
    return Solution(
        kernel_weights=d,
        coefficients=deformation.spread(c, n),
        bias=b,
        dual_variables=deformation.spread(inner.dual_variables, n),
        objective=objective,
        dual_objective=lower,
        stop_reason=StopReason.CONVERGED if met else missed,
        counters=_counted(inner.counters, problem.n_kernels, len(active)),
        trace=inner.trace,
        kernel_coefficients=own,
    )


def _counted(inner: Counters, n_kernels: int, n_active: int) -> Counters:
    """Return the work of PrimalMKL, with the requests to the bank itself."""
    return Counters(
        outer_iterations=inner.outer_iterations,
        svm_solves=inner.svm_solves,
        svm_iterations=inner.svm_iterations,
        newton_steps=inner.newton_steps,
        passes=1,
        combines=n_kernels + n_active,
    )
