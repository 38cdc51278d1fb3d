"""The smooth dual of multiple kernel learning, climbed by pair updates and by Newton steps.

    max_beta  y'beta - Psi(q(beta))   s.t.  beta = alpha*y,  0 <= alpha <= C,  1'beta = 0,

with ``q_m = beta' K_m beta`` and Psi a penalty of :mod:`.dual_penalties`.
The products ``G_m = K_m beta`` of all kernels are kept, so that the gradient
``y - sum_m e_m G_m`` costs no pass.  A round of pair updates (sequential minimal optimisation)
fetches the rows of the points that violate optimality most, and updates pairs among all points
whose rows are cached.  A Newton round maximises the second-order model of the objective over the
whole box, and then searches the line to the model's maximiser.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.arrays import Bools, Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Matvec, Request
from mkldist.machines.hinge import best_bias, slack_rounding
from mkldist.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.methods.smooth_dual.dual_penalties import Penalty
from mkldist.methods.smooth_dual.mkl_pairs import line_maximum, mkl_pair_updates
from mkldist.methods.smooth_dual.predictor import Predictor
from mkldist.methods.smooth_dual.row_cache import (
    BATCH,
    SMALLEST,
    RowCache,
    capacity_within,
    rows_held,
)
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.form_rounding import EPS, form_rounding
from mkldist.solvers.base import Problem

Round = Generator[Request, Any, None]

VIOLATION_SHARE = 0.1  # of the largest violation, that a round of pair updates may leave
VIOLATION_FLOOR = 1e-12
NEAR = 1e-2  # relative gap below which Newton rounds replace rounds of pair updates
SHORT_STEP = 0.1  # a Newton step shorter than this is followed by a round of pair updates
MOST_PAIR_ROUNDS = 10  # without new rows, after which a Newton round is tried at any gap
UNSEEN_GAIN = 1e-12  # of 1'alpha: rounding hides smaller gains from a line search, not from a model
REFRESH_AFTER = 50  # rounds of pair updates, after which the rounding errors of G have added up
PRODUCTS = 6  # arrays (M, n): G, the answer of a Newton round, and what is computed of them
MODEL_ROUNDS = 20
MODEL_FIRST_VIOLATION, MODEL_VIOLATION = 1e-2, 1e-11


def memory_of_rows(size: ProblemSize, cache_mib: float) -> SolverMemory:
    """Return the memory of a solver on the smooth dual, most of it rows of all kernels.

    Parameters
    ----------
    size : ProblemSize
        Points n and kernels M.
    cache_mib : float
        Memory for cached rows.
    """
    n = size.n_points
    least = rows_held(min(SMALLEST, n))
    most = rows_held(capacity_within(size.n_kernels, n, cache_mib))
    return size.memory(
        vectors=VECTORS_PER_SOLVER + (PRODUCTS + least) * n, spare_vectors=(most - least) * n
    )


class MklDual:
    """A feasible point of the dual with its products ``K_m beta``.

    Parameters
    ----------
    problem : Problem
        Labels in {-1, +1}, number M of kernels, and memory that may be spared.
    C : float
        Bound of the dual variables.
    cache_mib : float
        Memory for cached rows.
    counters : Counters
        Counters of requests and steps.
    traces : (M,) float64
        Traces of the kernels.

    Attributes
    ----------
    beta : (n,) float64
        The point ``alpha*y``.
    G : (M, n) float64
        ``K_m beta``.
    newton : bool
        True if the last round was of Newton's method.
    """

    def __init__(
        self, problem: Problem, C: float, cache_mib: float, counters: Counters, traces: Floats
    ) -> None:
        y, n_kernels = problem.y, problem.n_kernels
        self.y, self._C, self._counters, self._traces = y, C, counters, traces
        self._lower, self._upper = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
        self.beta = np.zeros(len(y))
        self.G = np.zeros((n_kernels, len(y)))
        capacity = capacity_within(n_kernels, len(y), cache_mib, problem.spare_bytes)
        self._cache = RowCache(n_kernels, len(y), capacity)
        self._reach = np.zeros(len(y))  # roots of the diagonal of the last combined kernel
        self._pair_rounds, self._since_refresh, self._short = 0, 0, False
        self.newton = False

    @property
    def q(self) -> Floats:
        """``beta' K_m beta`` for every kernel, (M,)."""
        return np.maximum(self.G @ self.beta, 0.0)

    @property
    def largest_q(self) -> Floats:
        """Upper bounds of q with its rounding, (M,)."""
        q, energy = self.q, self._traces * float(np.abs(self.beta).max()) ** 2
        return q + form_rounding(q, energy, len(self.beta))

    @property
    def alpha(self) -> Floats:
        """Dual variables, (n,)."""
        return np.abs(self.beta)

    def height(self, bias: float) -> float:
        """Return ``1'alpha``, less its rounding and what a rest of ``y'alpha`` costs at a bias."""
        total = float(self.alpha.sum())
        return total - EPS * total - abs(bias * float(self.beta.sum()))

    def predictor(self, d: Floats, energy: float) -> Predictor:
        """Return the better of two predictors of kernel weights `d` and multiples of alpha*y.

        The first is alpha*y itself.  The second is enlarged until points below the bound C have no
        loss: with a large C their last violations cost more than the norm that avoids them.

        Parameters
        ----------
        d : (M,) float64
            Kernel weights.
        energy : float
            Objective of alpha*y less its loss; for a multiple of alpha*y, times its square.
        """
        f = d @ self.G
        violation = _spread(self.y - f, self.beta < self._upper, self.beta > self._lower)
        enlarged = 1.0 / (1.0 - 0.5 * violation) if 0.0 < violation < 1.0 else 1.0
        predictors = [self._scaled(d, f, scale) for scale in (1.0, enlarged)]
        return min(predictors, key=lambda one: one.loss + one.scale**2 * energy)

    def _scaled(self, d: Floats, f: Floats, scale: float) -> Predictor:
        """Return the predictor ``scale * f`` with its best bias and its loss."""
        bias = best_bias(scale * f, self.y)
        slack = 1.0 - self.y * (scale * f + bias)
        loss = float(np.maximum(0.0, slack).sum())
        reach = self._reach
        if not reach.any():  # before the first Newton round: that of the mean diagonal
            reach = np.full(len(f), np.sqrt(float(d @ self._traces) / len(f)))
        loss = self._C * (loss + slack_rounding(slack, reach, scale * self.beta))
        return Predictor(d, scale * self.beta, bias, scale, loss)

    def newton_is_due(self, gap: float) -> bool:
        """Return whether the next round is of Newton's method: near the optimum, not far from it.

        After a short Newton step pair updates come first again.  Where many rounds with no more
        rows than before have not come near the optimum, a Newton round is tried all the same.

        Parameters
        ----------
        gap : float
            Relative duality gap of the problem at the current point.
        """
        near, slow = gap <= NEAR, self._pair_rounds >= MOST_PAIR_ROUNDS
        self.newton = slow or (near and not self._short)
        if self.newton and near:
            self._pair_rounds = 0
        return self.newton

    def fetch_rows(self, penalty: Penalty) -> Generator[Request, Any, float]:
        """Fetch the rows of the points that violate optimality most; return the worst violation.

        Parameters
        ----------
        penalty : Penalty
            Psi.

        Yields
        ------
        Matvec
        """
        slack = self.y - penalty.weights(self.q) @ self.G
        worst, candidates = self._violators(slack)
        wanted, kept = self._cache.missing(candidates), len(self._cache)
        if len(wanted):
            self._cache.store(wanted, (yield self._cache.request(wanted)))
        self._pair_rounds += len(self._cache) == kept
        return worst

    def update_pairs(self, penalty: Penalty, worst: float) -> None:
        """Move pairs of dual variables, each to the maximum on its line, on the cached rows.

        Parameters
        ----------
        penalty : Penalty
            Psi.
        worst : float
            The worst violation, of which a share may be left.
        """
        order = np.argsort(self._cache.points)
        points, slots = self._cache.points[order], self._cache.slots[order]
        G, q, beta = np.take(self.G, points, axis=1), self.q, self.beta[points]
        before = beta.copy()
        self._counters.svm_iterations += mkl_pair_updates(
            penalty,
            self._cache.rows,
            slots,
            points,
            G,
            q,
            beta,
            self.y[points],
            self._lower[points],
            self._upper[points],
            max(VIOLATION_SHARE * worst, VIOLATION_FLOOR),
            20 * len(points) + 100,
        )
        change = beta - before
        self.beta[points] = beta
        for slot, step in zip(slots, change, strict=True):
            if step != 0.0:
                self.G += step * self._cache.rows[slot]
        self._since_refresh, self._short = self._since_refresh + 1, False

    def refresh(self) -> Round:
        """Ask for the products G anew once the rounding errors of many rounds have added up."""
        if self._since_refresh >= REFRESH_AFTER:
            self.G = yield Matvec(np.arange(len(self.G)), self.beta)
            self._since_refresh = 0

    def _violators(self, slack: Floats) -> tuple[float, Ints]:
        """Return the largest violation, and the points that violate most, half to each side."""
        up = np.where(self.beta < self._upper, slack, -np.inf)
        down = np.where(self.beta > self._lower, slack, np.inf)
        highest, lowest = float(up.max()), float(down.min())
        size = min(BATCH, self._cache.capacity, len(slack))
        rising = np.argsort(-up, kind="stable")[: size - size // 2]
        falling = np.argsort(down, kind="stable")[: size // 2]
        rising, falling = rising[up[rising] > lowest], falling[down[falling] < highest]
        return highest - lowest, np.unique(np.concatenate([rising, falling]))

    def newton_round(self, penalty: Penalty) -> Round:
        """Search the line to the maximiser of the second-order model over the box."""
        q = self.q
        e = penalty.weights(q)
        K = yield Combine(e)
        self._reach = np.sqrt(np.maximum(np.diagonal(K), 0.0))
        step = self._model_maximiser(penalty.hessian(K, self.G, q), e) - self.beta
        both = np.column_stack([self.beta, step])
        products = yield Matvec(np.arange(len(self.G)), both)
        self.G, change = products[:, :, 0], products[:, :, 1]
        u, c, linear = self.G @ step, np.maximum(change @ step, 0.0), float(self.y @ step)
        t = 1.0
        if linear - float(e @ u) > UNSEEN_GAIN * float(self.y @ self.beta):
            t = line_maximum(penalty, linear, self.q, u, c, 1.0)
        self.beta = np.clip(self.beta + t * step, self._lower, self._upper)
        self.G = self.G + t * change
        self._since_refresh, self._short = 0, t < SHORT_STEP
        if self._short:
            self._pair_rounds = 0

    def _model_maximiser(self, H: Floats, e: Floats) -> Floats:
        """Maximise ``slack'step - 1/2 step' H step`` over the box; return beta + step.

        Parameters
        ----------
        H : (n, n) float64
            Hessian of the penalty.
        e : (M,) float64
            Effective weights, which give ``slack = y - sum_m e_m G_m``.
        """
        lower, upper = self._lower, self._upper
        start, linear = self.beta, self.y - e @ self.G
        beta, slack = start.copy(), linear.copy()
        diagonal = np.ascontiguousarray(np.diagonal(H))
        violation, limit, last = MODEL_FIRST_VIOLATION, 20 * len(beta), np.inf
        for _ in range(MODEL_ROUNDS):
            self._counters.svm_iterations += int(
                pair_updates(H, diagonal, beta, slack, lower, upper, violation, limit)
            )
            self._counters.newton_steps += newton_steps(H, beta, slack, lower, upper)
            slack = linear - H @ (beta - start)
            spread = _spread(slack, beta < upper, beta > lower)
            stuck = spread > 0.5 * last and violation < spread
            if spread <= MODEL_VIOLATION or stuck:
                break
            last = spread
            violation = max(0.1 * violation, VIOLATION_FLOOR)
        return beta


def _spread(slack: Floats, up: Bools, down: Bools) -> float:
    """Return the largest violation of optimality by a pair; below 0 if no pair violates it.

    Parameters
    ----------
    slack : (n,) float64
        Gradient of the objective.
    up, down : (n,) bool
        Variables that may rise, and those that may fall.
    """
    highest = np.max(slack, where=up, initial=-np.inf)
    lowest = np.min(slack, where=down, initial=np.inf)
    return float(highest - lowest)
