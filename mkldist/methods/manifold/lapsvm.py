"""Laplacian support vector machine in the primal, on the mean of all kernels.

Minimises over coefficients alpha, on all n points, and bias b (Melacci & Belkin 2011)

    F = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'K L K alpha
              + sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))^2 },

K = 1/M sum_m K_m; with one kernel it is the plain machine.  Weights and losses are those of the
paper's primal problem; its intrinsic norm acts on ``K alpha + b 1``, here on ``K alpha``, which is
the same where ``L 1 = 0``.

``newton`` goes to the deformed kernel Kd of :mod:`.deformed` once, at the cost of
factors of n x n matrices as the paper's Newton method, and takes Newton steps on its block between
the labelled points.  ``pcg`` needs products with K and L only: nonlinear conjugate gradients with
the preconditioner K and exact line searches,

    gradient in alpha = K s,   s = gamma_a alpha + gamma_i L K alpha - J'r,   r the loss's residual.

Certificate: the dual ``max_r y'r - 1/2 ||r||^2 - 1/2 r'Kd r``, ``y*r >= 0``, ``1'r = 0``.  At the
best bias ``F - dual = 1/2 s'Kd s``, and as ``Kd <= K / gamma_a``, ``pcg`` has the lower bound
``F - s'K s / (2 gamma_a)`` without a factorisation.

With ``early_stop``, ``pcg`` ends when the predicted classes of the points have settled, the
paper's stability check; such a run is not converged unless its gap says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.gram.requests import Combine
from mkldist.machines.primal_newton import PrimalMachine
from mkldist.machines.squared_losses import SquaredLoss, squared_hinge
from mkldist.methods.manifold.deformed import Deformation, ManifoldParams, decision_rounding
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Effects, Method, Problem, Solution, Steps, StopReason
from mkldist.solvers.trace import Trace

SHARE = 1e-2  # of tol, the gap left by Newton's method on the block
SETTLED = 0.015  # share of the points whose class may change between two checks
PATIENCE = 50  # iterations without a better bound after which only rounding is left


class LapSVMParams(ManifoldParams):
    """Parameters of the Laplacian support vector machine."""

    effective_with: ClassVar[Effects] = {"early_stop": ("inner", ("pcg",))}

    inner: Literal["newton", "pcg"] = Field(
        "newton", description="how the machine is solved; pcg makes max_iter steps at most"
    )
    early_stop: bool = Field(False, description="pcg: end when the predicted classes settle")


def solve(problem: Problem, params: LapSVMParams) -> Steps:
    """Solve the machine.

    Parameters
    ----------
    problem : Problem
        Labels, 0 for none, number of kernels, and graph Laplacian.
    params : LapSVMParams
        Weights of the two norms, way to the minimum and stopping rule.

    Yields
    ------
    Combine

    Returns
    -------
    Solution
        ``dual_variables`` is ``r * y`` on the labelled points; ``extra`` holds ``early_stopped``,
        1 if the predicted classes settled before the tolerance was met.
    """
    weights = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    K = yield Combine(weights)
    labelled = np.flatnonzero(problem.y)
    deformation = Deformation(problem.laplacian, params.gamma_a, params.gamma_i, labelled)
    machine = _Machine(K, deformation, problem, params)
    stop = machine.newton() if params.inner == "newton" else machine.conjugate_gradients()
    best = machine.best
    y = problem.y[labelled]
    return Solution(
        kernel_weights=weights,
        coefficients=best.alpha,
        bias=best.b,
        dual_variables=deformation.spread(machine.loss.feasible(best.r) * y, len(K)),
        objective=machine.upper,
        dual_objective=machine.lower,
        stop_reason=stop,
        counters=machine.counters,
        trace=machine.trace.arrays(),
        extra={"early_stopped": float(machine.settled)},
    )


@dataclass(frozen=True, eq=False)
class LapPoint:
    """A point (alpha, b) with what follows from it.

    Parameters
    ----------
    alpha : (n,) float64
        Coefficients.
    b : float
        Bias.
    f, h : (n,) float64
        ``K alpha``, and ``gamma_i L f``.
    r : (l,) float64
        Residual of the loss.
    value, rounding : float
        F, and what rounding may have taken off it.
    s, Ks : (n,) float64
        ``gamma_a alpha + h - J'r`` and its product with K, the gradient in alpha.
    """

    alpha: Floats
    b: float
    f: Floats
    h: Floats
    r: Floats
    value: float
    rounding: float
    s: Floats
    Ks: Floats


class _Machine:
    """F on one Gram matrix, its bounds and the best point met."""

    def __init__(
        self, K: Floats, deformation: Deformation, problem: Problem, params: LapSVMParams
    ) -> None:
        self._K, self._deformation, self._params = K, deformation, params
        self._reach = np.sqrt(K.diagonal())
        self._clock = problem.clock
        self._labelled = deformation.labelled
        self._weights = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
        self.loss: SquaredLoss = squared_hinge(problem.y[self._labelled])
        self.counters = Counters(passes=1, combines=1, svm_solves=1)
        self.trace = Trace(params.trace, problem.clock)
        self.upper, self.lower = np.inf, 0.0
        self.settled = False
        self._idle = 0

    def point(self, alpha: Floats, f: Floats, h: Floats, b: float | None = None) -> LapPoint:
        """Return a point, by default with the bias that minimises F."""
        deformation = self._deformation
        f_l = f[self._labelled]
        b = self.loss.best_bias(f_l) if b is None else b
        r = self.loss.residual(f_l + b)
        s = deformation.gamma_a * alpha + h - deformation.spread(r, len(f))
        norms = deformation.gamma_a * float(alpha @ f) + float(f @ h)
        value = 0.5 * max(norms, 0.0) + self.loss.value(r, b)
        rounding = deformation.rounding(self._reach, alpha, f, np.abs(r))
        return LapPoint(alpha, b, f, h, r, value, rounding, s, self._K @ s)

    def _constant(self) -> LapPoint:
        """Return the best constant."""
        zeros = np.zeros(len(self._K))
        return self.point(zeros, zeros, zeros)

    def newton(self) -> StopReason:
        """Solve the machine on the labelled block of the deformed kernel."""
        kernel = self._deformation(self._K)
        H = kernel.block()
        counters = Counters()
        machine = PrimalMachine(self.loss, 1.0, "newton", SHARE * self._params.tol, counters)
        block = machine(H, np.zeros(len(H)))
        self.counters.svm_iterations += counters.svm_iterations
        self.counters.newton_steps += counters.newton_steps
        alpha = kernel.coefficients(block.alpha)
        f = self._K @ alpha
        z = self.point(alpha, f, self._deformation.smoothed(f))
        if z.value > self._constant().value:  # all that rounding left
            z = self._constant()
        r = self.loss.feasible(block.r)
        self._take(z, self.loss.dual_value(r, block.b) - 0.5 * kernel.norm(r))
        return StopReason.CONVERGED if self._met else StopReason.STALLED

    def conjugate_gradients(self) -> StopReason:
        """Take steps of nonlinear conjugate gradients (Polak & Ribiere, restarted)."""
        n, z = len(self._K), self._constant()
        p, Kp, p_b, s_b = -z.s, -z.Ks, 0.0, 0.0
        check = max(round(0.5 * np.sqrt(n)), 1)
        signs = np.zeros(n)
        while True:
            best = self.point(z.alpha, z.f, z.h)
            self._take(best, best.value - self._bound(best))
            iteration = self.counters.outer_iterations
            stop = self._stop(iteration)
            if stop is None and self._params.early_stop and iteration % check == 0:
                last_signs, signs = signs, np.sign(best.f + best.b)
                self.settled = float((signs != last_signs).mean()) <= SETTLED
                stop = StopReason.STALLED if self.settled else None
            if stop is not None:
                return stop
            moved = self._moved(z, p, Kp, p_b)
            moved_b = -float(moved.r.sum())
            rho = float(z.s @ z.Ks) + s_b**2
            change = float((moved.s - z.s) @ moved.Ks) + (moved_b - s_b) * moved_b
            ratio = max(change / rho, 0.0) if rho > 0.0 else 0.0
            p, Kp, p_b = ratio * p - moved.s, ratio * Kp - moved.Ks, ratio * p_b - moved_b
            z, s_b = moved, moved_b

    def _moved(self, z: LapPoint, p: Floats, Kp: Floats, p_b: float) -> LapPoint:
        """Return the minimum of F on the line through z along (p, p_b)."""
        self.counters.svm_iterations += 1
        gamma_a = self._deformation.gamma_a
        LKp = self._deformation.smoothed(Kp)
        constant = gamma_a * float(z.alpha @ Kp) + float(z.f @ LKp)
        curvature = max(gamma_a * float(p @ Kp) + float(Kp @ LKp), 0.0)
        on_labelled = Kp[self._labelled] + p_b
        step = self.loss.best_step(z.f[self._labelled] + z.b, on_labelled, constant, curvature)
        alpha = z.alpha + step * p
        f = self._K @ alpha  # z.f + step Kp would drift away from it, and the bounds with it
        return self.point(alpha, f, self._deformation.smoothed(f), z.b + step * p_b)

    def _bound(self, z: LapPoint) -> float:
        """Return an upper bound of ``F - dual`` at z, whose bias is optimal.

        It takes in what rounding may have changed in F and s.
        """
        unsure = decision_rounding(self._reach, z.alpha)
        unsure_s = self._deformation.stiffness(len(unsure)) * unsure
        unsure_s[self._labelled] += unsure[self._labelled]
        norm = max(float(z.s @ z.Ks), 0.0) + 2.0 * float(np.linalg.norm(z.Ks * unsure_s))
        norm += float(np.sum((self._reach * unsure_s) ** 2))
        return norm / (2.0 * self._deformation.gamma_a) + z.rounding

    def _take(self, z: LapPoint, lower: float) -> None:
        """Take up the bounds at z."""
        self._idle += 1
        if lower > self.lower:
            self.lower, self._idle = lower, 0
        upper = z.value + z.rounding
        if upper < self.upper:
            self.upper, self.best, self._idle = upper, z, 0
        self.counters.outer_iterations += 1
        self.trace.record(self.upper, self.lower, self._weights)

    @property
    def _met(self) -> bool:
        return relative_gap(self.upper, self.lower) <= self._params.tol

    def _stop(self, iteration: int) -> StopReason | None:
        """Return why to end now, if so."""
        if self._met:
            return StopReason.CONVERGED
        if iteration >= self._params.max_iter:
            return StopReason.MAX_ITER
        if self._clock.past(self._params.time_limit):
            return StopReason.TIME_LIMIT
        return StopReason.STALLED if self._idle >= PATIENCE else None


METHOD = Method(
    name="lapsvm",
    solve=solve,
    params=LapSVMParams,
    title="Laplacian support vector machine in the primal",
    problem="semi-supervised SVM on the mean kernel",
    loss="squared hinge",
    regularizer="gamma_a/2 ||f||^2 + gamma_i/2 f'L f",
    reference="Melacci & Belkin 2011, primal LapSVM by Newton's method and by PCG",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    typical_passes=lambda n_kernels: 1,
)
