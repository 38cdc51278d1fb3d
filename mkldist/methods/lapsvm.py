"""Laplacian support vector machine in the primal, on the mean of all kernels or on one of them.

Minimises over coefficients alpha, on all n points, and bias b (Melacci & Belkin 2011)

    F = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'K L K alpha
              + sum over labelled i of w_i max(0, 1 - y_i ((K alpha)_i + b))^2 },

K = 1/M sum_m K_m, or K_m alone where the parameter ``kernel_number`` is m: several m are a list of
settings, of which cross-validation selects one.  Norms and losses are those of the paper's primal
problem, where the weights w_i of the points are 1.  The paper's intrinsic norm acts on
``K alpha + b 1``, here it acts on ``K alpha``, which is the same where ``L 1 = 0``.

``newton`` computes the deformed kernel Kd of :mod:`.deformed` once, at the cost of factors of n x n
matrices as the paper's Newton method, and takes Newton steps on its block between the labelled
points.  ``pcg`` needs products with K and L only: nonlinear conjugate gradients with the
preconditioner K and exact line searches,

    gradient in alpha = K s,   s = gamma_a alpha + gamma_i L K alpha - S'r,

r the loss's residual and S the matrix that selects the labelled points.

Certificate: the dual ``max_r y'r - 1/2 r'W^-1 r - 1/2 r'Kd r``, ``y*r >= 0``, ``1'r = 0``.  At the
best bias ``F - dual = 1/2 s'Kd s``.  As ``Kd <= K / gamma_a``, ``pcg`` has the lower bound
``F - s'K s / (2 gamma_a)`` without a factorisation; the dual value is no less.  The solution's
``dual_variables`` are ``r * y`` of the greatest bound met.

With ``early_stop``, ``pcg`` ends when the predicted classes of the points have settled: the paper's
stability check.  Such a run counts as converged only if its gap is at most the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine
from mkldist.core.arrays import Floats
from mkldist.methods.deformed import Deformation, ManifoldParams, decision_rounding, memory_on_graph
from mkldist.solvers.base import Counters, Method, Problem, Search, Steps
from mkldist.solvers.primal_newton import PrimalMachine
from mkldist.solvers.progress import StopReason
from mkldist.solvers.queries import check_kernel_number
from mkldist.solvers.solver_params import Effects
from mkldist.solvers.squared_losses import SquaredLoss, squared_hinge

SHARE = 1e-2  # of tol, the gap left by Newton's method on the block
SETTLED = 0.015  # share of the points whose class may change between two checks
PATIENCE = 50  # iterations without a better bound after which only rounding is left


class LapSVMParams(ManifoldParams):
    """Parameters of the Laplacian support vector machine."""

    steers: ClassVar[tuple[str, ...]] = ("inner", "early_stop")
    effective_with: ClassVar[Effects] = {"early_stop": ("inner", ("pcg",))}

    inner: Literal["newton", "pcg"] = Field(
        "newton", description="how the machine is solved; pcg makes max_iter steps at most"
    )
    early_stop: bool = Field(False, description="pcg: end when the predicted classes settle")
    kernel_number: int | None = Field(
        None, ge=0, description="number of the one kernel, from 0; by default the mean of all"
    )

    @property
    def chosen_kernel(self) -> int | None:
        """Number of the kernel; None for the mean of all."""
        return self.kernel_number


def solve(problem: Problem, params: LapSVMParams) -> Steps:
    """Solve the machine.

    ``dual_variables`` is ``r * y`` on the labelled points, 0 elsewhere; ``extra`` holds
    ``early_stopped``, 1 if the predicted classes settled before the tolerance was met.
    """
    weights = _weights(problem.n_kernels, params.kernel_number)
    K = yield Combine(weights)
    norms = Deformation.of(problem, params)
    labelled = norms.labelled
    y = problem.y[labelled]
    loss = squared_hinge(y, None if problem.weights is None else problem.weights[labelled])
    F = LapObjective(K, norms, loss, np.sqrt(K.diagonal()))
    run = Run(problem, params, weights, F.constant())
    stop = newton(F, run) if params.inner == "newton" else conjugate_gradients(F, run)
    return run.finish(
        stop,
        kernel_weights=weights,
        coefficients=run.best.alpha,
        bias=run.best.b,
        dual_variables=norms.spread(run.dual_point * y, len(K)),
        extra={"early_stopped": float(run.settled)},
    )


def _weights(n_kernels: int, kernel: int | None) -> Floats:
    """Return the weights (M,) of the mean of all kernels, or of one kernel alone."""
    if kernel is None:
        return np.full(n_kernels, 1.0 / n_kernels)
    check_kernel_number(kernel, n_kernels)
    weights: Floats = (np.arange(n_kernels) == kernel).astype(np.float64)
    return weights


@dataclass(frozen=True, eq=False)
class LapPoint:
    """A point (alpha, b) with what follows from it."""

    alpha: Floats  # (n,) coefficients
    b: float  # bias
    f: Floats  # (n,) ``K alpha``
    h: Floats  # (n,) ``gamma_i L f``
    r: Floats  # (l,) residual of the loss
    value: float  # F
    rounding: float  # the most that rounding may have taken off it
    s: Floats  # (n,) ``gamma_a alpha + h - S'r``
    Ks: Floats  # (n,) ``K s``, the gradient in alpha


@dataclass(frozen=True, eq=False)
class LapObjective:
    """F on one Gram matrix."""

    K: Floats  # (n, n) Gram matrix
    norms: Deformation  # the two norms, the graph and the labelled points
    loss: SquaredLoss  # the loss of the labelled points
    reach: Floats  # (n,) roots of the diagonal of K

    def point(self, alpha: Floats, f: Floats, h: Floats, b: float | None = None) -> LapPoint:
        """Return a point, by default with the bias that minimises F."""
        norms = self.norms
        f_l = f[norms.labelled]
        b = self.loss.best_bias(f_l) if b is None else b
        r = self.loss.residual(f_l + b)
        s = norms.gamma_a * alpha + h - norms.spread(r, len(f))
        penalty = norms.gamma_a * float(alpha @ f) + float(f @ h)
        value = 0.5 * max(penalty, 0.0) + self.loss.value(r, b)
        rounding = norms.rounding(self.reach, alpha, f, np.abs(r), self.loss.weights)
        return LapPoint(alpha, b, f, h, r, value, rounding, s, self.K @ s)

    def constant(self) -> LapPoint:
        """Return the best constant, alpha = 0."""
        zeros = np.zeros(len(self.K))
        return self.point(zeros, zeros, zeros)

    def gap_bound(self, z: LapPoint) -> float:
        """Return an upper bound of ``F - dual`` at z, whose bias is optimal.

        It includes the most that rounding may have changed in F and s.
        """
        unsure = decision_rounding(self.reach, z.alpha)
        unsure_s = self.norms.stiffness(len(unsure)) * unsure
        unsure_s[self.norms.labelled] += self.loss.weighted(unsure[self.norms.labelled])
        norm = max(float(z.s @ z.Ks), 0.0) + 2.0 * float(np.linalg.norm(z.Ks * unsure_s))
        norm += float(np.sum((self.reach * unsure_s) ** 2))
        return norm / (2.0 * self.norms.gamma_a) + z.rounding


class Run(Search[LapPoint]):
    """The course of a run; its point is the best constant at first."""

    def __init__(
        self, problem: Problem, params: LapSVMParams, weights: Floats, constant: LapPoint
    ) -> None:
        super().__init__(problem, params, constant, 0.0, dual_point=np.zeros(len(constant.r)))
        self.params, self._weights = params, weights
        self.settled = False  # True if the stability check ended the run

    def advance(self, z: LapPoint, lower: float, r: Floats) -> StopReason | None:
        """Take up a point and a residual's lower bound; return the reason to stop, if any."""
        self.take(z, z.value + z.rounding, lower, r)
        self.record(self._weights)
        stop = self.reason_to_stop(stalled=self.idle >= PATIENCE)
        if stop is None and self.counters.outer_iterations >= self.params.max_iter:
            return StopReason.MAX_ITER
        return stop


def newton(F: LapObjective, run: Run) -> StopReason:
    """Solve the machine on the labelled block of the deformed kernel."""
    kernel = F.norms(F.K)
    H = kernel.block()
    inner = Counters()
    machine = PrimalMachine(F.loss, 1.0, "newton", SHARE * run.params.tol, inner)
    block = machine(H, np.zeros(len(H)))
    run.counters.count_work(inner)
    alpha = kernel.coefficients(block.alpha)
    f = F.K @ alpha
    z, constant = F.point(alpha, f, F.norms.smoothed(f)), run.best
    if z.value > constant.value:  # rounding left nothing better
        z = constant
    r = F.loss.feasible(block.r)
    stop = run.advance(z, F.loss.dual_value(r, block.b) - 0.5 * kernel.norm(r), r)
    return StopReason.CONVERGED if stop is StopReason.CONVERGED else StopReason.STALLED


def conjugate_gradients(F: LapObjective, run: Run) -> StopReason:
    """Take steps of conjugate gradients, preconditioned by K (the paper's PCG).

    The gradient in alpha is K s; preconditioned it is s, so that no system is solved.
    """
    n, z = len(F.K), run.best
    run.counters.svm_solves += 1
    # The first direction is minus the preconditioned gradient; the best constant has no slope in b.
    p, Kp, p_b, s_b = -z.s, -z.Ks, 0.0, 0.0
    check = max(round(0.5 * np.sqrt(n)), 1)
    signs = np.zeros(n)
    while True:
        # Stop by the bounds at the best bias, or once the predicted classes have settled.
        best = F.point(z.alpha, z.f, z.h)
        stop = run.advance(best, best.value - F.gap_bound(best), F.loss.feasible(best.r))
        if stop is None and run.params.early_stop and run.counters.outer_iterations % check == 0:
            last_signs, signs = signs, np.sign(best.f + best.b)
            run.settled = float((signs != last_signs).mean()) <= SETTLED
            stop = StopReason.STALLED if run.settled else None
        if stop is not None:
            return stop
        # Exact line search along (p, p_b).
        moved = _line_minimum(F, z, p, Kp, p_b)
        run.counters.svm_iterations += 1
        run.counters.cg_steps += 1
        moved_b = -float(moved.r.sum())
        # The next direction is conjugate by Polak & Ribiere, restarted where the ratio is negative.
        rho = float(z.s @ z.Ks) + s_b**2
        change = float((moved.s - z.s) @ moved.Ks) + (moved_b - s_b) * moved_b
        ratio = max(change / rho, 0.0) if rho > 0.0 else 0.0
        p, Kp, p_b = ratio * p - moved.s, ratio * Kp - moved.Ks, ratio * p_b - moved_b
        z, s_b = moved, moved_b


def _line_minimum(F: LapObjective, z: LapPoint, p: Floats, Kp: Floats, p_b: float) -> LapPoint:
    """Return the minimum of F on the line through z along (p, p_b)."""
    norms = F.norms
    LKp = norms.smoothed(Kp)
    constant = norms.gamma_a * float(z.alpha @ Kp) + float(z.f @ LKp)
    curvature = max(norms.gamma_a * float(p @ Kp) + float(Kp @ LKp), 0.0)
    on_labelled = Kp[norms.labelled] + p_b
    step = F.loss.best_step(z.f[norms.labelled] + z.b, on_labelled, constant, curvature)
    alpha = z.alpha + step * p
    f = F.K @ alpha  # z.f + step Kp would drift away from it, and the bounds with it
    return F.point(alpha, f, norms.smoothed(f), z.b + step * p_b)


METHOD = Method(
    name="lapsvm",
    solve=solve,
    params=LapSVMParams,
    title="Laplacian support vector machine in the primal",
    problem="semi-supervised SVM on the mean kernel or on one",
    loss="squared hinge",
    regularizer="gamma_a/2 ||f||^2 + gamma_i/2 f'L f",
    reference="Melacci & Belkin 2011, primal LapSVM by Newton's method and by PCG",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    weighs_points=True,
    typical_passes=lambda n_kernels: 1,
    memory=memory_on_graph,
)
