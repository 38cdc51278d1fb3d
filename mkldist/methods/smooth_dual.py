"""The smooth dual of multiple kernel learning, climbed by pair updates and by Newton steps.

    max_beta  y'beta - Psi(q(beta))   s.t.  beta = alpha*y,  0 <= alpha <= C,  1'beta = 0,

with ``q_m = beta' K_m beta`` and Psi a penalty, convex, smooth and non-decreasing:

==============  =========================================================================
p-norm squared  ``Psi(q) = ||q||_{p*}^2 / (8 lam)``
divergence      ``Psi(q) = lam d0 sum_m (exp(q_m / (2 lam)) - 1)``
Moreau-Yosida   ``Psi(q) = max_{t>=0} sum_m t_m sqrt(q_m) - 1/2 (sum_m t_m)^2 - a^2/2 ||t||^2``
==============  =========================================================================

At q a penalty has *effective weights* ``e = 2 dPsi/dq``: the gradient of Psi in beta is
``sum_m e_m K_m beta``.  Their derivative is a diagonal matrix plus one of rank one,
``de/dq = diag(h) + kappa r r'``.

The products ``G_m = K_m beta`` of all kernels are kept, so that the gradient
``y - sum_m e_m G_m`` costs no pass.  A round of pair updates (sequential minimal optimisation)
fetches the rows of the points that violate optimality most, and updates pairs among all points
whose rows are cached.  A Newton round maximises the second-order model of the objective over the
whole box, and then searches the line to the model's maximiser.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mkldist.bank.requests import Combine, Matvec
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.compiled import compiled
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.optim.accuracy import EPS, form_rounding
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.solvers.base import Counters, Problem, Requesting, Search, Solution
from mkldist.solvers.progress import StopReason
from mkldist.solvers.solver_params import HingeParams
from mkldist.solvers.svm import best_bias, slack_rounding

P_NORM, MOREAU_YOSIDA, DIVERGENCE = 0, 1, 2
_HIGHEST = 600.0  # exponent, beyond which Psi counts as if it grew no more: sums stay finite
_NEGLIGIBLE = 1e-100  # of the largest q, below which a kernel is a zero kernel


class PenaltyResponse(NamedTuple):
    """Effective weights e (M,) and their derivative ``diag(h) + kappa r r'``, h and r (M,)."""

    e: Floats
    h: Floats
    r: Floats
    kappa: float


@dataclass(frozen=True)
class Penalty:
    """A penalty Psi."""

    kind: int  # `P_NORM`, `MOREAU_YOSIDA` or `DIVERGENCE`
    shape: float  # the exponent p*, a^2, or the weight d0
    lam: float = 1.0  # the factor lam; 1 for `MOREAU_YOSIDA`

    def value(self, q: Floats) -> float:
        """Return Psi(q), q (M,) non-negative."""
        e = self.weights(q)
        if self.kind == DIVERGENCE:
            return self.lam * float((e - self.shape).sum())
        # The others are homogeneous, of degree 2 and 1 in q.
        return float(e @ q) * (0.25 if self.kind == P_NORM else 0.5)

    def weights(self, q: Floats) -> Floats:
        """Return the effective weights e (M,) at q (M,)."""
        return self.response(q).e

    def response(self, q: Floats) -> PenaltyResponse:
        """Return the effective weights and their derivative at q (M,)."""
        e, h, r = np.empty_like(q), np.empty_like(q), np.empty_like(q)
        kappa = respond(self.kind, self.shape, self.lam, q, e, h, r)
        return PenaltyResponse(e, h, r, float(kappa))

    def hessian(self, K: Floats, G: Floats, q: Floats) -> Floats:
        """Return the Hessian of Psi in beta, ``K_e + 2 G' (de/dq) G``, (n, n).

        K (n, n) is ``K_e = sum_m e_m K_m`` at the weights e of q (M,), and G (M, n) holds ``K_m
        beta``.
        """
        at = self.response(q)
        seen = np.flatnonzero(at.h)
        rows = G[seen]
        pulled = at.r[seen] @ rows
        H = K + 2.0 * ((rows.T * at.h[seen]) @ rows + at.kappa * np.outer(pulled, pulled))
        return np.ascontiguousarray(0.5 * (H + H.T))


@compiled
def respond(
    kind: int, shape: float, lam: float, q: Floats, e: Floats, h: Floats, r: Floats
) -> float:
    """Write e, h, r of a penalty at q; return kappa.

    P-norm: ``e = Q r / (2 lam)`` with ``Q = ||q||_{p*}``, ``r = (q/Q)^(p*-1)``.  Divergence: ``e =
    d0 exp(q / (2 lam))``.
    """
    if kind == MOREAU_YOSIDA:
        return _respond_moreau_yosida(shape, q, e, h, r)
    if kind == DIVERGENCE:
        for m in range(len(q)):
            e[m] = shape * math.exp(min(q[m] / (2.0 * lam), _HIGHEST))
            h[m], r[m] = e[m] / (2.0 * lam), 0.0
        return 0.0
    largest, total, power = 0.0, 0.0, shape - 1.0
    for m in range(len(q)):
        largest = max(largest, q[m])
    for m in range(len(q)):
        e[m], h[m], r[m] = 0.0, 0.0, 0.0
        if q[m] > _NEGLIGIBLE * largest:
            r[m] = (q[m] / largest) ** power
            total += r[m] * (q[m] / largest)
    if largest == 0.0:
        return 0.0
    norm = largest * total ** (1.0 / shape)
    factor = (largest / norm) ** power
    for m in range(len(q)):
        if r[m] > 0.0:
            r[m] *= factor
            e[m] = norm * r[m] / (2.0 * lam)
            h[m] = power * r[m] * (norm / q[m]) / (2.0 * lam)
    return (2.0 - shape) / (2.0 * lam)


@compiled
def _respond_moreau_yosida(a_squared: float, q: Floats, e: Floats, h: Floats, r: Floats) -> float:
    """Write ``e = (1 - T/s)_+ / a^2``, ``s = sqrt(q)``, where ``sum_m (s_m - T)_+ = a^2 T``.

    T is approached from below: each sweep drops the entries that do not exceed it, until none is
    dropped.  A dropped entry never returns: rounding could make one come and go for ever.
    """
    T, active = -1.0, len(q) + 1
    while True:
        total, count = 0.0, 0
        for m in range(len(q)):
            s = math.sqrt(q[m])
            if s > T:
                total += s
                count += 1
        if count >= active:
            break
        T, active = total / (a_squared + count), count
    for m in range(len(q)):
        s = math.sqrt(q[m])
        if s > T:
            e[m] = (s - T) / (s * a_squared)
            h[m] = T / (2.0 * a_squared * s * s * s)
            r[m] = 1.0 / s
        else:
            e[m], h[m], r[m] = 0.0, 0.0, 0.0
    return -1.0 / (2.0 * a_squared * (a_squared + active))


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictor ``sum_m d_m K_m coefficients + bias``."""

    d: Floats  # (M,) kernel weights
    coefficients: Floats  # (n,) a multiple of ``alpha*y``
    bias: float  # best bias
    scale: float = 1.0  # the multiple
    # C times the sum of its hinge losses and of the most that rounding may hide of them
    loss: float = 0.0

    def on_simplex(self) -> Predictor:
        """Return the same predictor with weights that sum to one; uniform ones if all are zero."""
        total = float(self.d.sum())
        d = self.d / total if total > 0.0 else np.full(len(self.d), 1.0 / len(self.d))
        return replace(self, d=d, coefficients=total * self.coefficients)


class DualSearch(Search[Predictor]):
    """The course of an ascent of the dual, which begins with a bias alone and the dual value of 0.

    These bounds stand where numbers overflow in all others.  d (M,) are kernel weights that cost
    nothing, of functions that are all zero.
    """

    def __init__(self, problem: Problem, params: HingeParams, d: Floats) -> None:
        zero = np.zeros(len(problem.y))
        bias = best_bias(zero, problem.y)
        loss = params.C * float(np.maximum(0.0, 1.0 - problem.y * bias).sum())
        at = Predictor(d, zero, bias)
        super().__init__(problem, params, at, 0.0, upper=loss, dual_point=zero)

    def solution(self, stop: StopReason | None) -> Solution:
        """Return the predictor of the upper bound with its certificate."""
        d, best = self.best.d, self.best
        return self.finish(stop, kernel_weights=d, coefficients=best.coefficients, bias=best.bias)


MIB = 2**20
BATCH = 32  # points whose rows one request fetches
SMALLEST = 4  # points whose rows are kept with any budget: two pairs


def capacity_within(
    n_kernels: int, n_points: int, budget_mib: float, spare_bytes: int | None = None
) -> int:
    """Return the number of points whose rows to keep, at least four if there are as many.

    Rows may take `budget_mib`, and with answers, beyond the rows of four points, `spare_bytes`.
    """
    per_point = 8 * n_kernels * n_points
    affordable = budget_mib * MIB / per_point
    if spare_bytes is not None:
        # A row more takes its place in the cache, and in answers up to their largest size.
        rows = spare_bytes / per_point
        affordable = min(affordable, SMALLEST + max(rows / 2, rows - (BATCH - SMALLEST)))
    return min(max(int(affordable), SMALLEST), n_points)


def rows_held(capacity: int) -> int:
    """Return the rows in a cache of some capacity and in an answer at once."""
    return capacity + min(BATCH, capacity)


class RowCache:
    """Least-recently-used cache of ``K_1[i, :], .., K_M[i, :]`` by point i."""

    def __init__(self, n_kernels: int, n_points: int, capacity: int) -> None:
        self.capacity = capacity
        self.rows: Floats = np.empty((self.capacity, n_kernels, n_points))
        self._slot_of: dict[int, int] = {}  # oldest use first

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, point: int) -> bool:
        return point in self._slot_of

    @property
    def points(self) -> Ints:
        """Points whose rows are kept, in order of use."""
        return np.fromiter(self._slot_of, dtype=np.intp, count=len(self._slot_of))

    @property
    def slots(self) -> Ints:
        """Positions in `rows` of the rows of each of `points`."""
        return np.fromiter(self._slot_of.values(), dtype=np.intp, count=len(self._slot_of))

    def missing(self, points: Ints) -> Ints:
        """Return those of `points` that are not kept, in order, as many as fit.

        The others of `points` count as used now.
        """
        wanted: list[int] = points.tolist()
        for point in wanted[: self.capacity]:
            if point in self._slot_of:
                self._slot_of[point] = self._slot_of.pop(point)
        absent = [point for point in wanted[: self.capacity] if point not in self._slot_of]
        return np.array(absent, dtype=np.intp)

    def request(self, points: Ints) -> Matvec:
        """Return the request whose answer :meth:`store` takes."""
        n_kernels, n_points = self.rows.shape[1:]
        units = np.zeros((n_points, len(points)))
        units[points, np.arange(len(points))] = 1.0
        return Matvec(np.arange(n_kernels), units)

    def store(self, points: Ints, answer: Floats) -> None:
        """Keep the rows of R `points`, from the bank's `answer` (M, n, R)."""
        for column, point in enumerate(points.tolist()):
            if len(self._slot_of) < self.capacity:
                slot = len(self._slot_of)
            else:
                slot = self._slot_of.pop(next(iter(self._slot_of)))
            self.rows[slot] = answer[:, :, column]
            self._slot_of[point] = slot


_CURVATURE_FLOOR = 1e-14  # of the curvature, so that a flat line goes to its end
_SEARCH_STEPS = 100
_SLOPE_SHARE = 1e-8  # of the slope at the start that the search on a line may leave
# Rows of the scratch of kernels: the response of the penalty and the parabolas of a pair; below
# them a point of its line, and the response there.
E, H, R, U, C, AT, E_LINE, H_LINE, R_LINE, WORK = range(10)
SLACK, BEND, ALONG = range(3)  # rows of the scratch of points


def line_maximum(
    penalty: Penalty, linear: float, q: Floats, u: Floats, c: Floats, room: float
) -> float:
    """Return the t in [0, room] that maximises ``linear t - Psi(q + 2 u t + c t^2)``."""
    work = np.empty((WORK, len(q)))
    work[U], work[C] = u, c
    return _line_maximum(penalty.kind, penalty.shape, penalty.lam, linear, q, room, work)


def mkl_pair_updates(
    penalty: Penalty,
    rows: Floats,
    slots: Ints,
    points: Ints,
    G: Floats,
    q: Floats,
    beta: Floats,
    y: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    max_iter: int,
) -> int:
    """Improve `beta`, ``G = (K_m beta)`` and `q` in place over B cached points; return the updates.

    `rows` (S, M, n) are those of all kernels; `slots` and `points` (B,) are the position of a
    point's rows in it, and its index among the n.  G (M, B), C-contiguous, `beta`, `y`, `lower` and
    `upper` (B,) are those at the points.  Updates stop where slacks ``y - sum_m e_m K_m beta``
    differ by at most `violation`, or after `max_iter` of them.
    """
    diagonal = np.ascontiguousarray(rows[slots, :, points].T)
    of_kernels, of_points = np.empty((WORK, len(q))), np.empty((3, len(beta)))
    return _update_pairs(
        penalty.kind, penalty.shape, penalty.lam, rows, slots, points, diagonal, G, q, beta, y,
        lower, upper, violation, max_iter, of_kernels, of_points,
    )  # fmt: skip


@compiled
def _line_maximum(
    kind: int, shape: float, lam: float, linear: float, q: Floats, room: float, work: Floats
) -> float:
    """Return the maximum on the line of the parabolas u and c in `work`.

    Newton's method on the slope, within a bracket that each evaluation narrows.
    """
    u, c, at, e, h, r = work[U], work[C], work[AT], work[E_LINE], work[H_LINE], work[R_LINE]
    low, high, t, first, last = 0.0, room, 0.0, 0.0, math.inf
    for step in range(_SEARCH_STEPS):
        for m in range(len(q)):
            at[m] = max(q[m] + t * (2.0 * u[m] + t * c[m]), 0.0)
        kappa = respond(kind, shape, lam, at, e, h, r)
        slope, bend, along = linear, 0.0, 0.0
        for m in range(len(q)):
            v = u[m] + t * c[m]
            slope -= e[m] * v
            bend += e[m] * c[m] + 2.0 * h[m] * v * v
            along += r[m] * v
        if step == 0:
            first = slope
        if slope > 0.0 and t >= room:
            return room
        low, high = (t, high) if slope > 0.0 else (low, t)
        if abs(slope) <= _SLOPE_SHARE * first or high - low <= 1e-16 * high:
            return t
        bend += 2.0 * kappa * along * along
        moved = t + slope / bend if bend > 0.0 else high
        if moved >= high:
            moved = room if high == room else 0.5 * (low + high)
        elif moved <= low or (kind == DIVERGENCE and abs(slope) > 0.5 * last):
            moved = 0.5 * (low + high)  # Newton's steps down an exponential are short
        t, last = moved, abs(slope)
    return t


@compiled
def _most_violating(
    y: Floats, e: Floats, G: Floats, beta: Floats, lower: Floats, upper: Floats, slack: Floats
) -> tuple[int, float]:
    """Write the slacks ``y - sum_m e_m G_m``; return the variable of highest slack that may rise.

    The second result is how much its slack exceeds the lowest of the variables that may fall; it is
    infinite where none may.
    """
    for k in range(len(y)):
        slack[k] = y[k]
    for m in range(len(e)):
        if e[m] != 0.0:
            for k in range(len(y)):
                slack[k] -= e[m] * G[m, k]
    i, highest, lowest = -1, -np.inf, np.inf
    for k in range(len(y)):
        if beta[k] < upper[k] and slack[k] > highest:
            i, highest = k, slack[k]
        if beta[k] > lower[k]:
            lowest = min(lowest, slack[k])
    return i, highest - lowest


@compiled
def _partner(
    i: int,
    rows: Floats,
    slots: Ints,
    points: Ints,
    diagonal: Floats,
    G: Floats,
    beta: Floats,
    lower: Floats,
    kappa: float,
    of_kernels: Floats,
    of_points: Floats,
) -> int:
    """Return the variable of the largest second-order gain among those that may fall, or -1.

    `diagonal` are those of the kernels at the points, (M, B); `of_kernels`, (WORK, M), has the
    response of the penalty, and `of_points`, (3, B), the slacks.
    """
    e, h, r = of_kernels[E], of_kernels[H], of_kernels[R]
    slack, bend, along = of_points[SLACK], of_points[BEND], of_points[ALONG]
    for k in range(len(beta)):
        bend[k], along[k] = 0.0, 0.0
    for m in range(len(e)):
        if e[m] != 0.0 or h[m] != 0.0:
            row, own = rows[slots[i], m], diagonal[m, i]
            for k in range(len(beta)):
                u = G[m, i] - G[m, k]
                c = own + diagonal[m, k] - 2.0 * row[points[k]]
                bend[k] += e[m] * c + 2.0 * h[m] * u * u
                along[k] += r[m] * u
    j, most = -1, -1.0
    for k in range(len(beta)):
        slope = slack[i] - slack[k]
        if beta[k] > lower[k] and slope > 0.0:
            curvature = bend[k] + 2.0 * kappa * along[k] * along[k]
            gain = slope * slope / max(curvature, _CURVATURE_FLOOR * slope)
            if gain > most:
                j, most = k, gain
    return j


@compiled
def _update_pairs(
    kind: int,
    shape: float,
    lam: float,
    rows: Floats,
    slots: Ints,
    points: Ints,
    diagonal: Floats,
    G: Floats,
    q: Floats,
    beta: Floats,
    y: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    max_iter: int,
    of_kernels: Floats,
    of_points: Floats,
) -> int:
    """See :func:`mkl_pair_updates`."""
    e, h, r, u, c = of_kernels[E], of_kernels[H], of_kernels[R], of_kernels[U], of_kernels[C]
    for step in range(max_iter):
        kappa = respond(kind, shape, lam, q, e, h, r)
        i, excess = _most_violating(y, e, G, beta, lower, upper, of_points[SLACK])
        if i < 0 or excess <= violation:
            return step
        j = _partner(i, rows, slots, points, diagonal, G, beta, lower, kappa, of_kernels, of_points)
        for m in range(len(q)):
            u[m] = G[m, i] - G[m, j]
            c[m] = diagonal[m, i] + diagonal[m, j] - 2.0 * rows[slots[i], m, points[j]]
        up, down = upper[i] - beta[i], beta[j] - lower[j]
        room = min(up, down)
        t = _line_maximum(kind, shape, lam, y[i] - y[j], q, room, of_kernels)
        if t <= 0.0:
            return step
        # Exactly to a bound where the line ends there.
        beta[i] = upper[i] if t >= room and up <= down else beta[i] + t
        beta[j] = lower[j] if t >= room and down <= up else beta[j] - t
        for m in range(len(q)):
            q[m] = max(q[m] + t * (2.0 * u[m] + t * c[m]), 0.0)
            rising, falling = rows[slots[i], m], rows[slots[j], m]
            for k in range(len(points)):
                G[m, k] += t * (rising[points[k]] - falling[points[k]])
    return max_iter


Round = Requesting[None]
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
    """Return the memory of a solver on the smooth dual, most of it rows of all kernels."""
    n = size.n_points
    least = rows_held(min(SMALLEST, n))
    most = rows_held(capacity_within(size.n_kernels, n, cache_mib))
    return size.memory(
        vectors=VECTORS_PER_SOLVER + (PRODUCTS + least) * n, spare_vectors=(most - least) * n
    )


class MklDual:
    """A feasible point of the dual with its products ``K_m beta``, for kernels of `traces` (M,)."""

    def __init__(
        self, problem: Problem, C: float, cache_mib: float, counters: Counters, traces: Floats
    ) -> None:
        y, n_kernels = problem.y, problem.n_kernels
        self.y, self._C, self._counters, self._traces = y, C, counters, traces
        self._lower, self._upper = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
        self.beta = np.zeros(len(y))  # (n,) the point ``alpha*y``
        self.G = np.zeros((n_kernels, len(y)))  # (M, n) ``K_m beta``
        capacity = capacity_within(n_kernels, len(y), cache_mib, problem.spare_bytes)
        self._cache = RowCache(n_kernels, len(y), capacity)
        self._reach = np.zeros(len(y))  # roots of the diagonal of the last combined kernel
        self._pair_rounds, self._since_refresh, self._short = 0, 0, False
        self.newton = False  # true if the last round was of Newton's method

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
        """Return the better of two predictors of kernel weights `d` (M,) and multiples of alpha*y.

        The first is alpha*y itself.  The second is enlarged until points below the bound C have no
        loss: with a large C their last violations cost more than the norm that avoids them.
        `energy` is the objective of alpha*y less its loss; for a multiple of alpha*y, times its
        square.
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

    def climb(self, penalty: Penalty, gap: float) -> Round:
        """Take a round of Newton's method if it is due, else one of pair updates."""
        if self.newton_is_due(gap):
            yield from self.newton_round(penalty)
            return
        worst = yield from self.fetch_rows(penalty)
        self.update_pairs(penalty, worst)
        yield from self.refresh()

    def newton_is_due(self, gap: float) -> bool:
        """Return whether the next round is of Newton's method: near the optimum, not far from it.

        After a short Newton step pair updates come first again.  Where many rounds with no more
        rows than before have not come near the optimum, a Newton round is tried all the same.
        """
        near, slow = gap <= NEAR, self._pair_rounds >= MOST_PAIR_ROUNDS
        self.newton = slow or (near and not self._short)
        if self.newton and near:
            self._pair_rounds = 0
        return self.newton

    def fetch_rows(self, penalty: Penalty) -> Requesting[float]:
        """Fetch the rows of the points that violate optimality most; return the worst violation."""
        slack = self.y - penalty.weights(self.q) @ self.G
        worst, candidates = self._violators(slack)
        wanted, kept = self._cache.missing(candidates), len(self._cache)
        if len(wanted):
            self._cache.store(wanted, (yield self._cache.request(wanted)))
        self._pair_rounds += len(self._cache) == kept
        return worst

    def update_pairs(self, penalty: Penalty, worst: float) -> None:
        """Move pairs of dual variables, each to the maximum on its line, on the cached rows.

        A share of the worst violation may be left.
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

        The effective weights e, (M,), give ``slack = y - sum_m e_m G_m``.
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

    `slack` is the gradient, (n,); variables of `up` may rise, those of `down` fall.
    """
    highest = np.max(slack, where=up, initial=-np.inf)
    lowest = np.min(slack, where=down, initial=np.inf)
    return float(highest - lowest)
