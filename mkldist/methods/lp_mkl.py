"""Lp-norm MKL by the closed-form update of the weights (Kloft, Brefeld, Sonnenburg & Zien 2011).

Minimises over kernel weights ``d >= 0, ||d||_p <= 1``, p > 1, the value of the machine

    J(d) = max_alpha { 1'alpha - 1/2 (alpha*y)' (sum_m d_m K_m) (alpha*y) :
                       0 <= alpha <= C, y'alpha = 0 },

which is ``min_{f,b} C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_m ||f_m||^r)^(2/r)`` with
``r = 2p/(p+1)``.  With ``q_m = (alpha*y)' K_m (alpha*y)`` and ``||f_m||^2 = d_m^2 q_m``,
Algorithm 1 alternates the machine at d with the minimiser over d at fixed norms,

    d_m  proportional to  ||f_m||^(2/(p+1)) = (d_m^2 q_m)^(1/(p+1)),    ||d||_p = 1.

Every feasible alpha bounds the optimum from below by ``1'alpha - 1/2 ||q||_{p*}``,
``p* = p/(p-1)``.  The gap of an iterate is ``1/2 (||q||_{p*} - sum_m d_m q_m)`` plus the gap of its
machine.  Of several classes that share d, J and q are sums over the classes.  The solution's
``dual_variables`` are the alpha of the greatest bound.

The update converges linearly, at a factor that tends to 1 as p tends to 1.  Anderson's method
therefore mixes the logarithms of the updated weights with those of the last iterates.  If J is
greater at a mixed point than at the best, the iteration goes back to the plain update, which
always descends.  ``accelerate=False`` is the paper's alternation; only a kernel whose weight has
become zero may return, see :func:`updated`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Quadratic
from mkldist.core.arrays import Floats
from mkldist.core.memory import MATRICES_PER_SOLVER
from mkldist.methods.cut_bundle import WrapperBounds, binding_forms
from mkldist.solvers.base import Counters, Method, Problem, Requesting, Solution, Steps
from mkldist.solvers.progress import DualBound
from mkldist.solvers.queries import best_multiple
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import InnerSvm, sum_over_classes

PATIENCE = 25  # iterations without a better bound, after which only rounding is left


class LpMklParams(HingeParams):
    """Parameters of lp-norm MKL."""

    steers: ClassVar[tuple[str, ...]] = ("accelerate",)

    p: float = Field(2.0, gt=1, allow_inf_nan=False, description="norm of the kernel weights")
    accelerate: bool = Field(
        True, description="mix the last iterates by Anderson's method; false: the paper's"
    )


def solve(problem: Problem, params: LpMklParams) -> Steps:
    """Alternate between the machine and the closed-form weights.

    ``objective`` is the least J(d) met, ``dual_objective`` the greatest value met of
    ``1'alpha - 1/2 ||q||_{p*}``.
    """
    M, p, counters = problem.n_kernels, params.p, Counters()
    svm_at = InnerSvm(problem.y, problem.bound(params.C), params.tol, counters)
    bounds = WrapperBounds(problem, params, counters)
    weights = LogWeights(normalised(np.zeros(M), p), lambda mixed, _: normalised(mixed, p))
    for _ in range(params.max_iter):
        # Train the machine on sum_m d_m K_m, and compute q_m.
        d = weights.d
        K = yield Combine(d, thin=True)
        svm = svm_at(K)
        q = np.maximum(sum_over_classes((yield Quadratic(svm.signed))), 0.0)

        bounds.update(d, svm, svm.objective, svm.dual_value(dual_norm(q, p)))
        stop = bounds.reason_to_stop(stalled=bounds.idle >= PATIENCE)
        if stop is not None:
            break

        # Update d_m by (d_m^2 q_m)^(1/(p+1)), normalised to ||d||_p = 1.
        if weights.mixed and svm.objective > bounds.upper * (1.0 + ASCENT):
            weights.replace(weights.plain)  # mixing led uphill; the plain update never does
        elif params.accelerate:
            weights.update(updated(weights.log, q, p), q)
        else:
            weights.replace(updated(weights.log, q, p))
    return bounds.solution(stop)


def normalised(log_d: Floats, p: float) -> Floats:
    """Return the logarithms (M,) of d / ||d||_p from those of d; that of zero is -inf."""
    largest = log_d.max()
    unit: Floats = log_d - (largest + np.log(np.exp(p * (log_d - largest)).sum()) / p)
    return unit


def updated(log_d: Floats, q: Floats, p: float) -> Floats:
    """Return the logarithms (M,) of the closed-form weights, from those of d and q at d.

    A kernel with ``q_m = 0`` gets weight zero.  The update would never let it return, so a kernel
    of weight zero with ``q_m > 0`` gets the weight that it has at fixed points of the update,
    ``(q_m / ||q||_{p*})^(1/(p-1))``.
    """
    norm = dual_norm(q, p)
    if norm == 0.0:
        return log_d
    with np.errstate(divide="ignore"):
        log_q = np.log(q / norm)
    returning = np.isneginf(log_d)
    steps = np.where(returning, log_q / (p - 1.0), (2.0 * log_d + log_q) / (p + 1.0))
    return normalised(steps, p)


def dual_norm(q: Floats, p: float) -> float:
    """Return ``||q||_{p*}``, ``p* = p/(p-1)``, of q (M,) that is not negative."""
    largest = float(q.max())
    if largest == 0.0:
        return 0.0
    total = float(((q / largest) ** (p / (p - 1.0))).sum())
    norm: float = largest * total ** (1.0 - 1.0 / p)
    return norm


def exact_bound(problem: Problem, params: LpMklParams, solution: Solution) -> Requesting[DualBound]:
    """Ask for the forms of all kernels at the best dual point met, by one pass."""
    points = yield from binding_forms(problem, solution)
    values = [best_multiple(at.alpha, at.height, dual_norm(q, params.p)) for at, q in points]
    nothing = DualBound(0.0, np.zeros_like(problem.y))
    return max(values, key=lambda bound: bound.value, default=nothing)


_RANK_TOLERANCE = 1e-10  # of the largest singular value, below which differences count as dependent


class Anderson:
    """The last points and residuals of a fixed-point iteration, `size` differences of them."""

    def __init__(self, size: int = 10) -> None:
        self._history: deque[tuple[Floats, Floats]] = deque(maxlen=size + 1)

    def __len__(self) -> int:
        return len(self._history)

    def forget(self) -> None:
        """Forget all points."""
        self._history.clear()

    def mix(self, point: Floats, image: Floats, scale: Floats) -> Floats:
        """Remember ``T(point) = image`` and return the accelerated next point, all (k,).

        `scale` are non-negative factors of the residual's entries in the norm to be minimised.  The
        image itself is returned as long as no other point is known.
        """
        residual = image - point
        self._history.append((point, residual))
        if len(self._history) == 1:
            return image
        points, residuals = (np.diff(part, axis=0) for part in zip(*self._history, strict=True))
        shares = np.linalg.lstsq((residuals * scale).T, residual * scale, rcond=_RANK_TOLERANCE)[0]
        mixed: Floats = image - shares @ (points + residuals)
        return mixed


ASCENT = 1e-13  # relative increase of the objective that is rounding, not ascent


class LogWeights:
    """Kernel weights of the current iterate, as logarithms `log` (M,); -inf stands for zero.

    ``admissible(mixed, plain)`` returns the admissible logarithms nearest to the mixed ones, given
    the method's `plain` update, from which the current ones were mixed.
    """

    def __init__(self, log: Floats, admissible: Callable[[Floats, Floats], Floats]) -> None:
        self.log = self.plain = log
        self._admissible, self._anderson = admissible, Anderson()

    @property
    def d(self) -> Floats:
        """Kernel weights (M,)."""
        return np.exp(self.log)

    @property
    def mixed(self) -> bool:
        """True if the current weights may differ from the plain update."""
        return len(self._anderson) > 0

    def replace(self, log: Floats) -> None:
        """Continue from other logarithms, without the memory of earlier iterates."""
        self._anderson.forget()
        self.log = self.plain = log

    def update(self, plain: Floats, sensitivity: Floats) -> None:
        """Take an update (M,); mix it with the last ones if the same weights are zero as before.

        `sensitivity` (M,) are sizes of the objective's derivatives in the weights.  The mixing
        counts the error of each logarithm in proportion to weight times derivative, so that
        negligible weights do not disturb it.
        """
        seen = np.isfinite(plain)
        if not np.array_equal(seen, np.isfinite(self.log)):
            self.replace(plain)
            return
        self.plain = plain
        mixed = np.full(len(plain), -np.inf)
        scale = np.sqrt(self.d[seen] * sensitivity[seen])
        mixed[seen] = self._anderson.mix(self.log[seen], plain[seen], scale)
        self.log = self._admissible(mixed, plain)


METHOD = Method(
    name="lp_mkl",
    solve=solve,
    params=LpMklParams,
    title="lp-norm MKL, closed-form weights",
    problem="MKL with weights in the unit ball of the p-norm",
    loss="hinge",
    regularizer="1/2 (sum_m ||f_m||^r)^(2/r), r = 2p/(p+1)",
    reference="Kloft, Brefeld, Sonnenburg & Zien 2011, Algorithm 1",
    hyperparameters=("C", "p"),
    joint_classes=True,
    weighs_points=True,
    # beside the matrices, the packed combination of a pass
    memory=lambda size, _: size.memory(matrices=MATRICES_PER_SOLVER + 0.5, vectors=16),
    exact_bound=exact_bound,
)
