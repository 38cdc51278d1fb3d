"""LapMKL as the paper states it: one vector of coefficients for all kernels (Hao et al. 2012, 4.2).

    F(alpha, b, d) = 1/2 { gamma_a alpha'K alpha + gamma_i alpha'N alpha
                           + sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))^2 },
    K = sum_m d_m K_m,   N = sum_m d_m K_m L K_m,   d in the simplex.                     (18)

The alternation of Algorithm 1:

* z-step: :mod:`.lapmkl_machine`, Newton's method between the labelled points.
* d-step.  With ``v_m = K_m alpha``, ``t_m = gamma_a alpha'v_m + gamma_i v_m'L v_m``, F is
  ``1/2 t'd`` plus the loss of ``sum_m d_m v_m + b``: a d-step of PrimalMKL with t for q.  As there,
  the plain alternation creeps, and by default the step minimises a second-order model of
  ``J(d) = min_z F``,

      J'' = B'B - W'R^+ W,   w_m = K_m (gamma_a alpha + gamma_i L v_m - J'r),

  where ``R = gamma_a K + gamma_i N``, K_l is the labelled rows of K, and B is that of PrimalMKL's
  model for the columns ``v_m - K_l R^+ w_m``.  The second term makes J non-convex; without it the
  model is convex.  A search along the step keeps it a descent of J.

F is biconvex.  Where the alternation ends, no change of z alone and no change of d alone can gain
more than

    z_gap = 1/2 (dF/dalpha)'R^+ (dF/dalpha)      and      fw_gap = max_m <dF/dd, d - e_m>;

the run has converged when ``(z_gap + fw_gap) / F <= tol``, the rounding of F added to the gaps.  A
lower bound of F over all (z, d) is the dual of (18) with gamma_i = 0, ``y'r - 1/2 ||r||^2 - max_m
r'K_m r / (2 gamma_a)``, at the best multiple of r: honest, but loose unless gamma_i is small.
Tighter is the optimum of the deformed form, of which (18) is the restriction to
``g_m = d_m K_m alpha``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Matvec, Request
from mkldist.machines.primal_newton import SupportSystem
from mkldist.machines.squared_losses import squared_hinge
from mkldist.methods.manifold.deformed import Deformation, ManifoldParams
from mkldist.methods.manifold.lapmkl_machine import SharedMachine, SharedPoint
from mkldist.methods.primal.value_model import ValueModel
from mkldist.methods.primal.weight_step import alternating_objective, nesterov
from mkldist.optim.lp_ball import WeightSet
from mkldist.solvers.base import Problem, Solution, Steps, StopReason, reason_to_stop
from mkldist.solvers.trace import Trace

CHI_1 = 1e-5  # the paper's tolerance of the weight step
INNER_SHARE = 1e-2  # of tol: the error of dF/dd is of the order of the root of the machine's gap
MODEL_SHARE = 1e-4  # of the gap, left by the minimum of the model
COLUMNS = 1000  # kernels asked for in one Matvec
SECOND_COLUMNS = 8  # kernels and vectors asked for in one Matvec when each has its own vector
HALVINGS, SUFFICIENT = 30, 1e-4
ZERO_WEIGHT = 1e-15
PATIENCE, PROGRESS = 8, 1e-13


@dataclass(frozen=True, eq=False)
class Columns:
    """What a weight step needs of the kernels that may move.

    Parameters
    ----------
    kernels : (k,) intp
        Which.
    v, Kr : (k, n) float64
        ``K_m alpha`` and ``K_m J'r``.
    t, gradient : (k,) float64
        ``gamma_a alpha'v_m + gamma_i v_m'L v_m``, and dF/dd_m.
    """

    kernels: Ints
    v: Floats
    Kr: Floats
    t: Floats
    gradient: Floats


def solve_shared(problem: Problem, params: ManifoldParams, *, coupled: bool) -> Steps:
    """Run the alternation.

    Parameters
    ----------
    problem : Problem
        Labels, 0 for none, number of kernels, and graph Laplacian.
    params : ManifoldParams
        Weights of the two norms and stopping rule.
    coupled : bool
        Whether coefficients follow in the weight step; the paper's step if not.

    Yields
    ------
    Combine, Matvec

    Returns
    -------
    Solution
        ``extra`` holds ``z_gradient``, the norm of dF/dz, ``frank_wolfe_gap``, and
        ``stationarity``, which is at most tol when the run has converged.
    """
    state = _Shared(problem, params, coupled=coupled)
    d = state.weights.uniform(problem.n_kernels)
    K, R = yield from state.machine.matrices(d, problem.n_points)
    at = state.machine.minimum(d, K, R, np.zeros(len(state.deformation.labelled)))
    for iteration in range(1, params.max_iter + 1):
        columns = yield from state.certify(at)
        stop = reason_to_stop(problem, params, state.stationarity, stalled=state.patience == 0)
        if stop is not None:
            break
        if iteration < params.max_iter:
            new_d = yield from state.weight_step(at, columns)
            K, R = yield from state.machine.matrices(new_d, problem.n_points)
            at = state.descent(at, columns, new_d, K, R)
    return state.solution(stop or StopReason.MAX_ITER)


class _Shared:
    """The machine, the bounds and the best point met."""

    def __init__(self, problem: Problem, params: ManifoldParams, *, coupled: bool) -> None:
        labelled = np.flatnonzero(problem.y)
        self.params, self._coupled = params, coupled
        self.deformation = Deformation(problem.laplacian, params.gamma_a, params.gamma_i, labelled)
        self.weights = WeightSet(1.0)
        self.loss = squared_hinge(problem.y[labelled])
        self.counters = Counters()
        share = (INNER_SHARE * params.tol) ** 2
        self.machine = SharedMachine(self.deformation, self.loss, share, self.counters)
        self._y = problem.y
        self._trace = Trace(params.trace, problem.clock)
        self._lower, self.stationarity = 0.0, np.inf
        self._upper, self.patience = np.inf, PATIENCE

    def certify(self, at: SharedPoint) -> Generator[Request, Any, Columns]:
        """Take up the bounds at a point; return the columns of the kernels that may move."""
        n, M = len(self._y), len(at.d)
        labelled = self.deformation.labelled
        r = self.loss.feasible(at.r)
        vectors = np.column_stack([at.alpha, self.deformation.spread(r, n)])
        products = np.empty((0, n, 2))
        t, gradient, q = np.empty(M), np.empty(M), np.empty(M)
        for start in range(0, M, COLUMNS):
            kernels = np.arange(start, min(start + COLUMNS, M))
            products = yield Matvec(kernels, vectors)
            v = products[:, :, 0]
            t[kernels] = self._norms(at.alpha, v)
            gradient[kernels] = 0.5 * t[kernels] - v[:, labelled] @ at.r
            q[kernels] = products[:, labelled, 1] @ r
        self.counters.passes += 1
        chosen = np.flatnonzero((at.d > 0.0) | (gradient < float(gradient @ at.d)))
        chosen = self._fewer(chosen, at.d, gradient)
        kept = products[chosen] if M <= COLUMNS else (yield Matvec(chosen, vectors))
        lower = self._best_multiple(r, max(float(q.max()), 0.0) / self.params.gamma_a)
        used = np.flatnonzero(at.d[chosen] > 0.0)
        value = self._value_at(at, chosen[used], t[chosen[used]], kept[used, :, 0])
        self._take(at, value, gradient, lower)
        return Columns(chosen, kept[:, :, 0], kept[:, :, 1], t[chosen], gradient[chosen])

    def _value_at(self, at: SharedPoint, used: Ints, t: Floats, v: Floats) -> float:
        """Return F as its definition has it, and what rounding may have taken off it.

        The machine's R, which has ``K_m L K_m`` in it, knows it to fewer digits.
        """
        d, labelled = at.d[used], self.deformation.labelled
        r = self.loss.residual(d @ v[:, labelled] + at.b)
        value = 0.5 * float(d @ t) + self.loss.value(r, at.b)
        for weight, m, v_m in zip(d, used, v, strict=True):
            reach = self.machine.reaches[int(m)]
            value += float(weight) * self.deformation.rounding(reach, at.alpha, v_m, np.abs(r))
        return value

    def _best_multiple(self, r: Floats, norm: float) -> float:
        """Return the largest dual value on the ray of `r`, ``(y'r)^2 / (2 (r'r + norm))``."""
        gain = float(np.abs(r).sum())
        return 0.5 * gain**2 / (float(r @ r) + norm) if gain > 0.0 else 0.0

    def _norms(self, alpha: Floats, v: Floats) -> Floats:
        """Return ``gamma_a alpha'v_m + gamma_i v_m'L v_m`` for rows v_m."""
        smooth = np.einsum("mi,im->m", v, self.deformation.smoothed(v.T))
        norms: Floats = np.maximum(self.params.gamma_a * (v @ alpha) + smooth, 0.0)
        return norms

    def _fewer(self, chosen: Ints, d: Floats, gradient: Floats) -> Ints:
        """Return the kernels in use, and as many of the others that descend most as fit."""
        room = max(COLUMNS - int((d > 0.0).sum()), 1)
        others = chosen[d[chosen] == 0.0]
        if len(others) <= room:
            return chosen
        best = others[np.argsort(gradient[others], kind="stable")[:room]]
        return np.sort(np.concatenate([chosen[d[chosen] > 0.0], best]))

    def _take(self, at: SharedPoint, value: float, gradient: Floats, lower: float) -> None:
        """Take up a point, F there, and its certificate.

        What the machine's F and this one differ by is as little known as what could be gained.
        """
        self.counters.outer_iterations += 1
        self._fw_gap = max(float(gradient @ at.d - gradient.min()), 0.0)
        tiny = np.finfo(np.float64).tiny
        unsure = abs(value - at.value)
        stationarity = (at.z_gap + self._fw_gap + unsure) / max(value, tiny)
        better = self._upper - value > PROGRESS * value
        better = better or stationarity < 0.5 * self.stationarity
        self.patience = PATIENCE if better else self.patience - 1
        self._best, self._value, self.stationarity = at, value, stationarity
        self._upper, self._lower = min(self._upper, value), max(self._lower, lower)
        self._trace.record(self._upper, self._lower, at.d)

    def weight_step(self, at: SharedPoint, columns: Columns) -> Generator[Request, Any, Floats]:
        """Return new weights (M,)."""
        labelled, x = self.deformation.labelled, at.d[columns.kernels]
        G = columns.v[:, labelled].T
        if self._coupled:
            model = yield from self._model(at, columns, G)
            x = x if model is None else model.minimum(self.weights, x, MODEL_SHARE)
        else:
            F = alternating_objective(G, columns.t, 1.0, self.loss, at.b)
            x = nesterov(F, self.weights, x, chi=min(CHI_1, self.params.tol))
        d = np.zeros_like(at.d)
        d[columns.kernels] = np.where(x > ZERO_WEIGHT, x, 0.0)
        feasible: Floats = d / d.sum()
        return feasible

    def _model(
        self, at: SharedPoint, columns: Columns, G: Floats
    ) -> Generator[Request, Any, ValueModel | None]:
        """Return the convex part of the second-order model of J."""
        sv = self.loss.active(at.z.r)
        if not sv.any():
            return None
        W = self.params.gamma_a * columns.v - columns.Kr
        if self.params.gamma_i > 0.0:
            smooth = self.deformation.smoothed(columns.v.T)
            for start in range(0, len(W), SECOND_COLUMNS):
                part = slice(start, start + SECOND_COLUMNS)
                products = yield Matvec(columns.kernels[part], smooth[:, part])
                W[part] += np.einsum("mim->mi", products)
        moved = (G - at.back.T @ W.T)[sv]
        B = SupportSystem(at.H, sv, 1.0).projected(moved)
        return ValueModel(columns.gradient, B, B @ at.d[columns.kernels])

    def descent(
        self, at: SharedPoint, columns: Columns, new_d: Floats, K: Floats, R: Floats
    ) -> SharedPoint:
        """Return the end of the step, or the first halving of it that descends enough."""
        slope = float(columns.gradient @ (new_d - at.d)[columns.kernels])
        step = 1.0
        for _ in range(HALVINGS):
            d = at.d + step * (new_d - at.d) if step < 1.0 else new_d
            new = self.machine.minimum(
                d, at.K + step * (K - at.K), at.R + step * (R - at.R), at.z.alpha
            )
            plain = not self._coupled  # descends by itself
            if plain or new.value <= at.value + SUFFICIENT * step * min(slope, 0.0):
                return new
            step *= 0.5
        return at

    def solution(self, stop: StopReason) -> Solution:
        """Return the last point and its certificate."""
        at = self._best
        on_points = self.deformation.spread(at.r, len(self._y))
        z_gradient = np.append(at.R @ at.alpha - at.K @ on_points, at.r.sum())
        return Solution(
            kernel_weights=at.d,
            coefficients=at.alpha,
            bias=at.b,
            dual_variables=on_points * self._y,
            objective=self._value,
            dual_objective=min(self._lower, self._value),
            stop_reason=stop,
            counters=self.counters,
            trace=self._trace.arrays(),
            extra={
                "z_gradient": float(np.linalg.norm(z_gradient)),
                "frank_wolfe_gap": self._fw_gap,
                "stationarity": self.stationarity,
            },
        )
