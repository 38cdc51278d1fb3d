"""PrimalMKL on deformed kernels: LapMKL with a function per kernel, (16), and GLKS.

Minimises over components g_m on all n points, kernel weights d in the simplex and bias b

    F = 1/2 { sum_m g_m'(gamma_a K_m^-1 + gamma_i L) g_m / d_m
              + sum over labelled i of w_i loss(y_i, sum_m g_m(x_i) + b) },   g_m = d_m f_m,

of Hao, Yuan, Yang & Chen 2012, (16), where the weights w_i are 1.  It is convex.  It is the problem
of PrimalMKL with lam = 1 over the kernels ``K_m (gamma_a I + gamma_i L K_m)^-1`` restricted to the
labelled points, see :mod:`.deformed`, and so is its certificate: with Kd_m the deformed kernels and
r a residual of the labelled points, of sum 0, the best multiple of r gives the lower bound
``1/2 g^2 / (r'W^-1 r + max_m r'Kd_m r)``, ``g = y'r`` for both losses.  The solution's
``dual_variables`` are ``r * y`` for the squared hinge, where ``y*r >= 0``, else r.  Without a bias,
b is 0.  With kernels of unit norm, each K_m has its own gamma_a and gamma_i, multiplied by one
factor.  In three steps:

1. The bank is asked for its Gram matrices, a few at a time, and each is deformed.
2. PrimalMKL runs on the deformed kernels, which form a bank of their own in memory.
3. The bank is asked for the Gram matrices in use once more, for coefficients on all points and for
   the value of F on the original kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.passes import answered
from mkldist.bank.requests import Diagonal, Quadratic
from mkldist.core.arrays import Bools, Floats
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.methods import primalmkl
from mkldist.methods.deformed import MATRICES, Deformation, ManifoldParams
from mkldist.methods.primalmkl import PrimalMKLParams, signed_by_class, squared_loss
from mkldist.optim.accuracy import form_rounding, relative_gap
from mkldist.solvers.base import Problem, Requesting, Solution, Steps
from mkldist.solvers.progress import StopReason
from mkldist.solvers.queries import AT_A_TIME, gram_matrices
from mkldist.solvers.squared_losses import SquaredLoss

Solver = Callable[[Problem, PrimalMKLParams], Steps]
INNER_SHARE = 0.9  # of tol; the rest is for rounding between the deformed kernels and the bank's
SURE = 0.01  # of tol, that rounding may account for in the form of a kernel that is not in use


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
    steps: Mapping[str, Any] | None = None,
    bias: bool = True,
    unit_norm: bool = False,
    solver: Solver = primalmkl.solve,
) -> Steps:
    """Run PrimalMKL, or another `solver` of its problem at lam = 1, on the deformed kernels.

    `steps` are parameters of PrimalMKL that say how it takes its steps.  Without a bias, `solver`
    must have none.  `unit_norm` divides each deformed kernel by ``gamma_a`` times the Frobenius
    norm of its block between the labelled points.  The solution's ``kernel_coefficients`` are on
    all points; ``coefficients`` are the shared coefficients of the deformed kernels, 0 at points
    without a label.
    """
    deformation = Deformation.of(problem, params)
    labelled = deformation.labelled
    deformed = yield from _deformed_bank(problem, params, deformation, unit_norm=unit_norm)
    inner = PrimalMKLParams(
        C=1.0,
        loss=loss,
        tol=INNER_SHARE * params.tol,
        max_iter=params.max_iter,
        time_limit=params.time_limit,
        trace=params.trace,
        **({} if steps is None else steps),
    )
    y = problem.y[labelled]
    losses = squared_loss(inner, y, None if problem.weights is None else problem.weights[labelled])
    constant = _constant(problem, deformation, inner, losses, bias=bias)
    if deformed is None:
        return constant
    on_labelled = Problem(
        problem.y[labelled],
        problem.n_kernels,
        problem.clock,
        weights=None if problem.weights is None else problem.weights[labelled],
    )
    solution = answered(deformed.bank, solver(on_labelled, inner))
    return (
        yield from _on_all_points(
            problem, deformed, inner, losses, solution, constant, params.tol, bias=bias
        )
    )


@dataclass(frozen=True, eq=False)
class _Deformed:
    """Deformed kernels between the labelled points.

    `doubts`, (M,), is the most that rounding may have taken off a quadratic form, as a share of it.
    """

    bank: MemoryBank
    deformations: list[Deformation]
    doubts: Floats


def _deformed_bank(
    problem: Problem, params: ManifoldParams, deformation: Deformation, *, unit_norm: bool
) -> Requesting[_Deformed | None]:
    """Return the deformed kernels between the labelled points, or None when the time is up."""
    layout = TileLayout.for_points(len(deformation.labelled))
    values, doubts = np.empty((problem.n_kernels, layout.n_entries)), np.empty(problem.n_kernels)
    deformations: list[Deformation] = []
    for start in range(0, problem.n_kernels, AT_A_TIME):
        if problem.clock.past(params.time_limit):
            return None
        kernels = np.arange(start, min(start + AT_A_TIME, problem.n_kernels))
        matrices = yield from gram_matrices(kernels)
        own = [_of_unit_norm(deformation, K) if unit_norm else deformation for K in matrices]
        blocks = [of_kernel(K).block() for of_kernel, K in zip(own, matrices, strict=True)]
        deformations += own
        values[kernels] = layout.pack(np.array(blocks))
        doubts[kernels] = [deformation.doubt(K) for K in matrices]
    return _Deformed(MemoryBank(values, layout), deformations, doubts)


def _of_unit_norm(deformation: Deformation, K: Floats) -> Deformation:
    """Return the deformation after which the block of K has the Frobenius norm ``1 / gamma_a``."""
    norm = deformation.gamma_a * float(np.linalg.norm(deformation(K).block()))
    return deformation.divided(norm) if norm > 0.0 else deformation


def _constant(
    problem: Problem,
    deformation: Deformation,
    inner: PrimalMKLParams,
    loss: SquaredLoss,
    *,
    bias: bool,
) -> Solution:
    """Return the best constant, 0 without a bias, which needs no kernel, with the lower bound 0.

    It is the solution of a run whose time is up before the kernels are deformed.
    """
    y = problem.y[deformation.labelled]
    b = loss.best_bias(np.zeros(len(y))) if bias else 0.0
    r = loss.residual(np.full(len(y), b))
    weights = np.zeros(problem.n_kernels)
    weights[0] = 1.0
    return Solution(
        kernel_weights=weights,
        coefficients=np.zeros(problem.n_points),
        bias=b,
        dual_variables=deformation.spread(signed_by_class(inner, r, y), problem.n_points),
        objective=loss.value(r, b),
        dual_objective=0.0,
        stop_reason=StopReason.TIME_LIMIT,
    )


@dataclass
class _Components:
    """Components ``g_m = d_m f_m`` on all points, added up kernel by kernel."""

    coefficients: Floats  # (S, n) coefficients of f_m of the kernels in use
    f: Floats  # (n,) sum of the components
    norms: float = 0.0  # weighted sum of the penalties of f_m
    rounding: float = 0.0  # the most that rounding may have taken off F


def _components(
    inner: Solution,
    deformed: _Deformed,
    loss: SquaredLoss,
    r: Floats,
    n: int,
    forms: Floats,
    doubtful: Bools,
) -> Requesting[_Components]:
    """Ask for the kernels in use and the doubtful ones; return the components of a solution.

    `forms`, (M,), are quadratic forms of the residuals r, (l,): those of the kernels asked for
    become upper bounds that no error can break.  A kernel is doubtful, (M,), where rounding may
    have changed its form by more than the tolerance allows.
    """
    d, c = inner.kernel_weights, inner.coefficients
    active = np.flatnonzero(d)
    found = _Components(np.empty((len(active), n)), np.zeros(n))
    places = dict(zip(active.tolist(), range(len(active)), strict=True))
    asked = np.flatnonzero((d > 0.0) | doubtful)
    for start in range(0, len(asked), AT_A_TIME):
        kernels = asked[start : start + AT_A_TIME]
        matrices = yield from gram_matrices(kernels)
        for m, K in zip(kernels.tolist(), matrices, strict=True):
            deformation, weight = deformed.deformations[m], float(d[m])
            kernel = deformation(K)
            forms[m] = kernel.norm(r)
            if m not in places:
                continue
            a = found.coefficients[places[m]] = kernel.coefficients(c)
            f_m = K @ a
            found.f += weight * f_m
            found.norms += weight * deformation.penalty(a, f_m)
            reach, slopes = np.sqrt(K.diagonal()), np.abs(c)
            rounding = deformation.rounding(reach, a, f_m, slopes, loss.weights)
            found.rounding += weight * rounding
    return found


def _forms(r: Floats) -> Requesting[Floats]:
    """Ask for the quadratic forms of residuals, and add the most that rounding may have taken."""
    q = yield Quadratic(r)
    energies = yield Diagonal((r**2)[:, None])
    rounded: Floats = q + form_rounding(q, energies[:, 0], len(r))
    return rounded


def _on_all_points(
    problem: Problem,
    deformed: _Deformed,
    params: PrimalMKLParams,
    loss: SquaredLoss,
    inner: Solution,
    constant: Solution,
    tol: float,
    *,
    bias: bool,
) -> Requesting[Solution]:
    """Return the predictor on the bank's own kernels, with F and a lower bound there.

    `inner` is the solution of PrimalMKL on the deformed kernels with `params`; `constant`, the best
    constant, replaces a predictor that rounding made worse.
    """
    first, n, doubts = deformed.deformations[0], problem.n_points, deformed.doubts
    labelled, spread = first.labelled, first.spread
    y = problem.y[labelled]
    r = signed_by_class(params, inner.dual_variables, y)
    forms = answered(deformed.bank, _forms(r)) * (1.0 + doubts)
    own = yield from _components(inner, deformed, loss, r, n, forms, doubts > SURE * tol)
    f = own.f[labelled]
    b = loss.best_bias(f) if bias else 0.0
    objective = 0.5 * own.norms + loss.value(loss.residual(f + b), b) + own.rounding
    coefficients = own.coefficients
    if objective > constant.objective:  # rounding left nothing better
        b, objective = float(constant.bias), constant.objective
        coefficients = np.zeros_like(coefficients)
    # The dual value at the best multiple of the residuals.
    linear = loss.dual_value(r, b) + 0.5 * loss.squares(r)
    squares = loss.squares(r) + float(forms.max())
    lower = 0.5 * linear**2 / squares if squares > 0.0 and linear > 0.0 else 0.0
    # A bound on the deformed kernels of value D >= 0 has a form of at most w - 2 D, for labels that
    # weigh w together.
    total = float(loss.weighted(np.ones(len(y))).sum())
    lower = max(lower, inner.dual_objective - 0.5 * total * float(doubts.max()))
    met = relative_gap(objective, lower) <= tol
    missed = StopReason.STALLED if inner.converged else inner.stop_reason
    return Solution(
        kernel_weights=inner.kernel_weights,
        coefficients=spread(inner.coefficients, n),
        bias=b,
        dual_variables=spread(inner.dual_variables, n),
        objective=objective,
        dual_objective=lower,
        stop_reason=StopReason.CONVERGED if met else missed,
        counters=inner.counters,
        trace=inner.trace,
        kernel_coefficients=coefficients,
    )
