"""Steps of the alternation of LapMKL with shared coefficients, in z = (alpha, b) and in d.

:class:`CoupledSteps`
    z minimises F; the weight step knows that z follows (:mod:`.lapmkl_weights`), and a search along
    it makes ``J(d) = min_z F`` descend.
:class:`MinimisedSteps`
    z minimises F, and d minimises F at fixed z, in turns: Algorithm 1 of Hao, Yuan, Yang & Chen
    2012, but for its single steps of z.
:class:`SingleSteps`
    The algorithm as printed.  z takes a single step, by an exact line search along the direction of
    Algorithm 2, and the alternation ends once the gradient in z is shorter than chi_2.

The paper solves (18) "similar to the Algorithm 1".  At fixed weights, with I_sv the diagonal mask
of the points where the loss is curved,

    gradient = [ R alpha - K_l'r ; -1'r ],    H = [[ R + K_l'I_sv K_l, K_l'I_sv 1 ],
                                                   [ 1'I_sv K_l,       1'I_sv 1   ]].

Algorithm 2 preconditions by ``P = blockdiag(K, 1)``, a factor of its matrices.  Of N it is none, so
that the inverse of K, with a ridge of the size of rounding, is applied to residuals.  The bias is
the best one for alpha before a single step and after it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, Protocol

import numpy as np

from mkldist.arrays import Floats
from mkldist.gram.requests import Request
from mkldist.machines.primal_newton import ETA
from mkldist.methods.manifold.lapmkl_machine import (
    RidgedInverse,
    SharedMachine,
    SharedMinimum,
    SharedPoint,
)
from mkldist.methods.manifold.lapmkl_weights import (
    SharedColumns,
    alternating_step,
    coupled_step,
)

HALVINGS, SUFFICIENT = 30, 1e-4
Weights = Generator[Request, Any, Floats]


class AlternatingSteps(Protocol):
    """Steps in z and in d by turns.

    `K` and `R` (n, n) are the matrices of the weights `d` (M,); `columns` are of the kernels whose
    weights change.
    """

    is_flat: bool
    """True if the last gradient in z was so short that no step was taken."""

    def first(self, d: Floats, K: Floats, R: Floats) -> Any:
        """Return the first point, a SharedPoint."""

    def weights(self, at: Any, columns: SharedColumns) -> Weights:
        """Return new weights."""

    def following(self, at: Any, columns: SharedColumns, d: Floats, K: Floats, R: Floats) -> Any:
        """Return the point at new weights."""


class MinimisedSteps:
    """Minimum over z and minimum over d by turns.

    Parameters
    ----------
    machine : SharedMachine
        Solver of the z-step, with its norms and loss.
    tol : float
        Tolerance of the run; the weight step is at least as exact.
    """

    is_flat = False

    def __init__(self, machine: SharedMachine, tol: float) -> None:
        self.machine, self._tol = machine, tol

    def first(self, d: Floats, K: Floats, R: Floats) -> SharedMinimum:
        """Return the minimum over z."""
        return self.machine.minimum(d, K, R, np.zeros(len(self.machine.norms.labelled)))

    def weights(self, at: SharedMinimum, columns: SharedColumns) -> Weights:
        """Return the minimum over d at fixed z."""
        yield from ()
        return alternating_step(at, columns, self.machine, self._tol)

    def following(
        self, at: SharedMinimum, columns: SharedColumns, d: Floats, K: Floats, R: Floats
    ) -> SharedMinimum:
        """Return the minimum over z at new weights, which descends by itself."""
        return self.machine.minimum(d, K, R, at.z.alpha)


class CoupledSteps(MinimisedSteps):
    """Minimum over z, and a weight step that z follows."""

    def weights(self, at: SharedMinimum, columns: SharedColumns) -> Weights:
        """Return the minimum over d of the model of J."""
        return (yield from coupled_step(at, columns, self.machine))

    def following(
        self, at: SharedMinimum, columns: SharedColumns, d: Floats, K: Floats, R: Floats
    ) -> SharedMinimum:
        """Return the minimum over z at new weights, halved until it descends enough."""
        slope = float(columns.gradient @ (d - at.d)[columns.kernels])
        step = 1.0
        for _ in range(HALVINGS):
            now = at.d + step * (d - at.d) if step < 1.0 else d
            K_now, R_now = at.K + step * (K - at.K), at.R + step * (R - at.R)
            new = self.machine.minimum(now, K_now, R_now, at.z.alpha)
            if new.value <= at.value + SUFFICIENT * step * min(slope, 0.0):
                return new
            step *= 0.5
        return at


class SingleSteps:
    """One step of z, unless its gradient is shorter than chi_2, and the minimum over d, by turns.

    Parameters
    ----------
    machine : SharedMachine
        The machine, with its norms, loss and counters.
    tol : float
        Tolerance of the run; the weight step is at least as exact.
    chi_2 : float
        Norm of the gradient at which to stop.
    """

    def __init__(self, machine: SharedMachine, tol: float, chi_2: float) -> None:
        self._machine, self._tol, self._chi_2 = machine, tol, chi_2
        self.is_flat = False

    def first(self, d: Floats, K: Floats, R: Floats) -> SharedPoint:
        """Return the point after a step from alpha = 0 (line 2)."""
        return self._stepped(d, K, R, np.zeros(len(K)))

    def weights(self, at: SharedPoint, columns: SharedColumns) -> Weights:
        """Return the minimum over d at fixed z (line 12)."""
        yield from ()
        return alternating_step(at, columns, self._machine, self._tol)

    def following(
        self, at: SharedPoint, columns: SharedColumns, d: Floats, K: Floats, R: Floats
    ) -> SharedPoint:
        """Return the point after a step at new weights."""
        return self._stepped(d, K, R, at.alpha)

    def _stepped(self, d: Floats, K: Floats, R: Floats, alpha: Floats) -> SharedPoint:
        """Return the point after a step, or the one before it where its gradient is short."""
        machine, labelled, inverse = self._machine, self._machine.norms.labelled, RidgedInverse(R)
        at = machine.point(d, K, R, alpha, inverse)
        self.is_flat = float(np.linalg.norm(at.gradient)) < self._chi_2  # line 6
        if self.is_flat:
            return at
        along = self._newton(at)  # line 9
        machine.counters.svm_iterations += 1
        machine.counters.newton_steps += 1
        constant, curvature = float(alpha @ along.R_p), max(float(along.p @ along.R_p), 0.0)
        u, change = at.f[labelled] + at.b, along.K_p + along.p_b
        step = machine.loss.best_step(u, change, constant, curvature)
        return machine.point(d, K, R, alpha + step * along.p, inverse)  # line 10

    def _newton(self, at: SharedPoint) -> _Direction:
        """Return an approximate Newton direction (Algorithm 2)."""
        machine, K_l = self._machine, at.K[self._machine.norms.labelled]
        sv, precondition = machine.loss.active(at.r), RidgedInverse(at.K)
        rest, rest_b = -at.gradient, 0.0  # the linear residual; the bias is optimal
        found = _Direction(np.zeros_like(rest), 0.0, np.zeros(len(K_l)), np.zeros_like(rest))
        s = precondition(rest)
        p, p_b = s, 0.0
        rho = first_rho = float(s @ rest)
        first_norm = float(np.linalg.norm(rest))
        for _ in range(2 * len(rest)):
            K_p, R_p = K_l @ p, at.R @ p
            v = np.where(sv, K_p + p_b, 0.0)
            w, w_b = R_p + K_l.T @ v, float(v.sum())
            curvature = float(p @ w) + p_b * w_b
            if not curvature > 0.0:
                break
            machine.counters.cg_steps += 1
            step = rho / curvature
            found = _Direction(
                found.p + step * p,
                found.p_b + step * p_b,
                found.K_p + step * K_p,
                found.R_p + step * R_p,
            )
            rest, rest_b = rest - step * w, rest_b - step * w_b
            s = precondition(rest)
            rho, last_rho = float(s @ rest) + rest_b**2, rho
            norm = float(np.hypot(np.linalg.norm(rest), rest_b))
            if not rho > 0.0 or (norm <= ETA * first_norm and rho <= ETA**2 * first_rho):
                break
            ratio = rho / last_rho
            p, p_b = s + ratio * p, rest_b + ratio * p_b
        return found


class _Direction(NamedTuple):
    """Direction (p, p_b) of z with the products K_l p and R p."""

    p: Floats
    p_b: float
    K_p: Floats
    R_p: Floats
