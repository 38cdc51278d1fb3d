"""Kernel machine with a squared loss on one Gram matrix, in the primal (z-step of PrimalMKL).

Minimises

    F(z) = lam/2 alpha'K alpha + L(K alpha + b 1),      z = (alpha, b)

for a loss L of :mod:`mkldist.solvers.squared_losses`.  With the residual r of the loss, the
support vectors sv where the loss is curved, I_sv the diagonal matrix of their weights, 0 at other
points, and ``P = blockdiag(K, 1)``::

    gradient = P [ lam alpha - r ; slope - 1'r ]
    H = P [[ I_sv K + lam I, I_sv 1 ], [ 1'I_sv K, 1'I_sv 1 ]]

Both have P on the left.  Conjugate gradients take it as their preconditioner and work on the
brackets, so that a step needs one product with K and no more.  Three ways lead to the minimum:

``truncated-newton``
    Newton directions by preconditioned conjugate gradients, which stop once the linear residual is
    a share of the gradient (Hao et al. 2012, Algorithm 2); exact line search.
``pcg``
    Nonlinear preconditioned conjugate gradients; exact line search (Melacci & Belkin 2011).
``newton``
    Newton directions by a Cholesky factor of ``K_sv + lam W_sv^-1``, W_sv the weights of the
    support vectors; ends after finitely many steps.

Where lam is tiny next to the eigenvalues of K, the first two may not end within their limits.
The third then takes over.

Where the bias is optimal, ``F - dual = s'K s / (2 lam)`` with ``s = lam alpha - r``.  The gap so
follows from the gradient without cancellation.

Erratum: Algorithm 2 prints a residual that is compared with its own norm; it should be compared
with that of the gradient, as in (11).  The Euclidean norm sees mostly the large eigenvalues of K.
The norm of P must therefore shrink to the same share.

Newton steps solve systems of the support vectors, with the matrix ``[[K_sv + lam I, 1], [1', 0]]``,
in which points may have a lam each.  A Gram matrix is factorised; the operator of thin factors is
solved by preconditioned conjugate gradients (:mod:`mkldist.optim.factored_matrix`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy

from mkldist.core.arrays import Bools, Floats
from mkldist.optim.factored_matrix import FactoredMatrix, Gram, ThinSystem, best_form, on_points
from mkldist.solvers.base import Counters
from mkldist.solvers.squared_losses import SquaredLoss

SHARE = 1e-5  # of the first residual, that conjugate gradients leave


def support_system(K: Gram, sv: Bools, lam: float | Floats) -> SupportSystem | ThinSupportSystem:
    """Return the system of the support vectors `sv` (n,) of a Gram matrix or of an operator."""
    K_sv = best_form(on_points(K, np.flatnonzero(sv)))
    if isinstance(K_sv, FactoredMatrix):
        return ThinSupportSystem(K_sv, lam)
    return SupportSystem(K_sv, lam)


class SupportSystem:
    """The factorised matrix ``[[K_sv + lam I, 1], [1', 0]]`` of the support vectors, at least one.

    The diagonal of `K_sv` (s, s) is overwritten; `lam`, one or (s,), is multiplied by 10 until the
    factorisation succeeds where K_sv is too ill-conditioned for it.
    """

    def __init__(self, K_sv: Floats, lam: float | Floats) -> None:
        diagonal = K_sv.diagonal().copy()
        while True:
            K_sv[np.diag_indices_from(K_sv)] = diagonal + lam
            try:
                self._factor = scipy.linalg.cholesky(K_sv, lower=True, check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                lam = 10.0 * np.maximum(lam, np.finfo(np.float64).eps * diagonal.max())
        self._ones = self.halved(np.ones(len(K_sv)))
        self._total = float(self._ones @ self._ones)

    def halved(self, columns: Floats) -> Floats:
        """Return ``L^-1 columns`` for the Cholesky factor L."""
        solved: Floats = scipy.linalg.solve_triangular(
            self._factor, columns, lower=True, check_finite=False
        )
        return solved

    def projected(self, columns: Floats) -> Floats:
        """Return B with ``B'B = X' (W - W 1 1'W / 1'W1) X``, W the inverse of ``K_sv + lam I``."""
        halves = self.halved(columns)
        return halves - np.outer(self._ones, (self._ones @ halves) / self._total)

    def solve(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Return x and b with ``(K_sv + lam I) x + b 1 = right`` and ``1'x = total``."""
        half = self.halved(right)
        b = (float(self._ones @ half) - total) / self._total
        x: Floats = scipy.linalg.solve_triangular(
            self._factor, half - b * self._ones, lower=True, trans="T", check_finite=False
        )
        return x, b


class ThinSupportSystem:
    """The same system of an operator `K_sv`."""

    def __init__(self, K_sv: FactoredMatrix, lam: float | Floats) -> None:
        diagonal = np.zeros(K_sv.n_points) + (lam + K_sv.ridge)
        self._system = ThinSystem(diagonal, K_sv.weights, K_sv.factors, K_sv.products)

    def projected(self, columns: Floats) -> Floats:
        """Return B with ``B'B = X' (W - W 1 1'W / 1'W1) X``, W the inverse of ``K_sv + lam I``."""
        product = -columns.T @ self._system.minimiser(columns, SHARE)
        values, vectors = np.linalg.eigh(0.5 * (product + product.T))
        root: Floats = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        return root

    def solve(self, right: Floats, total: float) -> tuple[Floats, float]:
        """Return x and b with ``(K_sv + lam I) x + b 1 = right`` and ``1'x = total``."""
        level = np.full(len(right), total / len(right))
        x: Floats = level + self._system.minimiser(self._system @ level - right, SHARE)
        return x, float((right - self._system @ x).mean())


Inner = Literal["truncated-newton", "pcg", "newton"]

ETA = 0.1  # share of the gradient at which the paper truncates
TRUNCATED_LIMIT = 20  # truncated Newton steps
NEWTON_FIRST_LIMIT, NEWTON_LIMIT = 30, 500  # exact Newton steps, from the origin and from z
PCG_LIMIT = 2000  # nonlinear conjugate gradient steps
PROGRESS = 0.5  # factor that a Newton step must take off the gap once the support stays


@dataclass(frozen=True, eq=False)
class PrimalPoint:
    """A point z = (alpha, b), with the quantities that follow from it."""

    alpha: Floats  # (n,), coefficients
    b: float  # bias
    f: Floats  # (n,), ``K alpha``, without the bias
    r: Floats  # (n,), residual of the loss
    value: float  # F(z)
    s: Floats  # (n,), ``lam alpha - r`` and its product with K, the gradient in alpha
    Ks: Floats


class Direction(NamedTuple):
    """Direction (q, q_b) of z, with the product K q."""

    q: Floats  # (n,), change of alpha, and its product with K
    Kq: Floats
    q_b: float  # change of the bias


class PrimalMachine:
    """Minimise F over z, for one Gram matrix after another, to a `share` of F as its gap.

    Counters count a machine as a solve, and a line search as an iteration, and as a Newton step too
    where its direction is Newton's.
    """

    def __init__(
        self, loss: SquaredLoss, lam: float, inner: Inner, share: float, counters: Counters
    ) -> None:
        self.loss, self.lam = loss, lam
        self._inner, self._share = inner, share
        self.counters = counters

    def __call__(self, K: Gram, alpha: Floats) -> PrimalPoint:
        """Return the minimum for a Gram matrix, from coefficients `alpha` (n,) or from zero."""
        self.counters.svm_solves += 1
        z, origin = self.point(K, alpha, K @ alpha), self.point(K, 0.0 * alpha, 0.0 * alpha)
        z = z if z.value < origin.value else origin
        if self._inner == "pcg":
            z = self._conjugate_gradients(K, z)
        elif self._inner == "truncated-newton":
            z = self._truncated_newton(K, z)
        # Newton's method mostly ends in a few steps from the origin, where most points are support
        # vectors.  From the solution for another K it may cross many kinks one by one.
        for start, limit in ((origin, NEWTON_FIRST_LIMIT), (z, NEWTON_LIMIT)):
            if self._done(z):
                break
            exact = self._newton(K, start, limit)
            z = exact if self.gap(exact) < self.gap(z) else z
        return z

    def step(self, K: Gram, z: PrimalPoint) -> PrimalPoint:
        """Return z after one step of the inner solver; the bias of z is optimal."""
        if self._inner == "pcg":
            self.counters.cg_steps += 1
            return self._moved(K, z, Direction(-z.s, -z.Ks, 0.0))
        self.counters.newton_steps += 1
        if self._inner == "truncated-newton":
            return self._moved(K, z, self._newton_pcg(K, z))
        q, q_b = self._newton_direction(K, z, self.loss.active(z.r))
        return self._moved(K, z, Direction(q, K @ q, q_b))

    def gap(self, z: PrimalPoint) -> float:
        """Return ``F - dual`` at `z`, whose bias is optimal."""
        return max(float(z.s @ z.Ks), 0.0) / (2.0 * self.lam)

    def point(self, K: Gram, alpha: Floats, f: Floats, b: float | None = None) -> PrimalPoint:
        """Return z = (alpha, b) for ``f = K alpha``, by default with the bias that minimises F."""
        b = self.loss.best_bias(f) if b is None else b
        r = self.loss.residual(f + b)
        s = self.lam * alpha - r
        value = 0.5 * self.lam * float(alpha @ f) + self.loss.value(r, b)
        return PrimalPoint(alpha, b, f, r, value, s, K @ s)

    def _done(self, z: PrimalPoint) -> bool:
        """Return True if the gap at z is small enough."""
        return self.gap(z) <= self._share * abs(z.value)

    def _moved(
        self, K: Gram, z: PrimalPoint, along: Direction, *, keep_b: bool = False
    ) -> PrimalPoint:
        """Return the minimum of F on a line through z, and then over b unless b is kept."""
        q, Kq, q_b = along
        self.counters.svm_iterations += 1
        constant = self.lam * float(z.alpha @ Kq) + self.loss.slope * q_b
        curvature = self.lam * max(float(q @ Kq), 0.0)
        step = self.loss.best_step(z.f + z.b, Kq + q_b, constant, curvature)
        b = z.b + step * q_b if keep_b else None
        return self.point(K, z.alpha + step * q, z.f + step * Kq, b)

    def _truncated_newton(self, K: Gram, z: PrimalPoint) -> PrimalPoint:
        """Return the minimum by truncated Newton steps, or where they cease to help."""
        for _ in range(TRUNCATED_LIMIT):
            if self._done(z):
                break
            self.counters.newton_steps += 1
            moved = self._moved(K, z, self._newton_pcg(K, z))
            if not (moved.value < z.value or self.gap(moved) < PROGRESS * self.gap(z)):
                break
            z = moved
        return z

    def _newton_pcg(self, K: Gram, z: PrimalPoint) -> Direction:
        """Return an approximate Newton direction (Algorithm 2)."""
        sv = self.loss.active(z.r)
        s, s_b, Ks = -z.s, 0.0, -z.Ks  # the linear residual, left of P; the bias is optimal
        q, Kq, q_b = np.zeros_like(s), np.zeros_like(s), 0.0
        p, Kp, p_b = s, Ks, s_b
        rho = first_rho = float(s @ Ks)
        first_norm = float(np.linalg.norm(Ks))
        for _ in range(2 * len(s)):
            v = np.where(sv, self.loss.weighted(Kp + p_b), 0.0)
            w, w_b = v + self.lam * p, float(v.sum())
            curvature = float(Kp @ w) + p_b * w_b
            if not curvature > 0.0:
                break
            self.counters.cg_steps += 1
            step = rho / curvature
            q, Kq, q_b = q + step * p, Kq + step * Kp, q_b + step * p_b
            s, s_b = s - step * w, s_b - step * w_b
            Ks = K @ s
            rho, last_rho = float(s @ Ks) + s_b**2, rho
            norm = float(np.hypot(np.linalg.norm(Ks), s_b))
            if not rho > 0.0 or (norm <= ETA * first_norm and rho <= ETA**2 * first_rho):
                break
            ratio = rho / last_rho
            p, Kp, p_b = s + ratio * p, Ks + ratio * Kp, s_b + ratio * p_b
        return Direction(q, Kq, q_b)

    def _conjugate_gradients(self, K: Gram, z: PrimalPoint) -> PrimalPoint:
        """Return the minimum by nonlinear conjugate gradients (Polak & Ribiere, restarted)."""
        p, Kp, p_b = -z.s, -z.Ks, 0.0
        s_b = 0.0
        for _ in range(PCG_LIMIT):
            rho = float(z.s @ z.Ks) + s_b**2
            if rho <= 2.0 * self.lam * self._share * abs(z.value):
                break
            self.counters.cg_steps += 1
            moved = self._moved(K, z, Direction(p, Kp, p_b), keep_b=True)
            if not moved.value <= z.value:
                break
            moved_b = self.loss.slope - float(moved.r.sum())
            change = float((moved.s - z.s) @ moved.Ks) + (moved_b - s_b) * moved_b
            ratio = max(change / rho, 0.0)
            p, Kp, p_b = ratio * p - moved.s, ratio * Kp - moved.Ks, ratio * p_b - moved_b
            z, s_b = moved, moved_b
        return self.point(K, z.alpha, z.f)

    def _newton(self, K: Gram, z: PrimalPoint, limit: int) -> PrimalPoint:
        """Return the minimum by exact Newton steps; the last ones refine the solution."""
        sv = self.loss.active(z.r)
        for _ in range(limit):
            if self._done(z):
                break
            self.counters.newton_steps += 1
            q, q_b = self._newton_direction(K, z, sv)
            moved = self._moved(K, z, Direction(q, K @ q, q_b))
            sv, last_sv = self.loss.active(moved.r), sv
            settled = np.array_equal(sv, last_sv)
            if settled and self.gap(moved) > PROGRESS * self.gap(z):
                return moved if moved.value <= z.value else z
            z = moved
        return z

    def _newton_direction(self, K: Gram, z: PrimalPoint, sv: Bools) -> tuple[Floats, float]:
        """Return q and q_b so that ``lam (alpha + q)`` is the residual linearised in them."""
        q = -z.alpha
        if not sv.any():
            return q, 0.0
        system = support_system(K, sv, self.loss.ridge(self.lam, sv))
        outside = np.where(sv, 0.0, q)
        s = z.s if self.loss.weights is None else z.s / self.loss.weights
        q_sv, q_b = system.solve(
            -s[sv] - (K @ outside)[sv], self.loss.slope / self.lam - float(z.alpha[sv].sum())
        )
        q[sv] = q_sv
        return q, q_b
