"""Support vector machine on one Gram matrix: the inner problem of most methods.

Dual (soft margin, hinge loss, with bias)::

    max_alpha  1'alpha - 1/2 (alpha*y)' K (alpha*y)   s.t.  0 <= alpha <= C,  y'alpha = 0

Primal of the same value::

    min_{f, b}  1/2 ||f||^2_K + C sum_i max(0, 1 - y_i (f_i + b))

Sequential minimal optimisation with second-order working sets (Fan, Chen & Lin 2005) brings any
starting point near the solution.  Where more updates would take longer, Newton steps on the free
variables solve the linear system that is left.  A small duality gap of the outer problem needs that
accuracy, and the Newton steps reach it by a few factorisations.

C is one number, or one for each point: ``0 <= alpha_i <= C_i`` and ``sum_i C_i max(0, ...)``.

A solver of two classes trains one machine on the combined kernel.  A solver of several classes
that share their kernel weights trains one for each class, all on the same combined kernel.  Its
objective ``J(d) = sum_c J_c(d)`` and the derivatives are then sums over the classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.compiled import compiled
from mkldist.optim.accuracy import form_rounding, relative_gap
from mkldist.optim.box_qp import BLOCK, block_ascent, newton_steps, pair_updates, updates_of_step
from mkldist.optim.factored_matrix import FactoredMatrix, Gram, SymmetricOperator, diagonal_of
from mkldist.solvers.base import Counters, Problem, Solution, direct_solution
from mkldist.solvers.progress import StopReason
from mkldist.solvers.solver_params import SolverParams

EPS = float(np.finfo(np.float64).eps)


@compiled(python_first=True)
def _sums(
    beta: Floats, f: Floats, y: Floats, weights: Floats, bias: float, reach: Floats, slack: Floats
) -> tuple[float, float, float, float, float, float]:
    """Return the sums that the bounds of a hinge-loss machine consist of.

    At coefficients `beta` and decision values `f` without bias they are ``beta'f``, ``sum |beta|``,
    the weighted hinge loss, how much rounding may have taken off it, ``sum_i K_ii beta_i^2``, and
    ``sum beta``, zero up to rounding at a feasible point.  The slacks are overwritten.
    """
    norm = total = loss = largest = energy = rest = 0.0
    for i in range(len(f)):
        slack[i] = 1.0 - y[i] * (f[i] + bias)
        norm += beta[i] * f[i]
        total += abs(beta[i])
        loss += weights[i] * max(slack[i], 0.0)
        largest = max(largest, weights[i])
        size = reach[i] * beta[i]
        energy += size * size
        rest += beta[i]
    return norm, total, loss, largest * slack_rounding(slack, reach, beta), energy, rest


@compiled(python_first=True)
def slack_rounding(slack: Floats, reach: Floats, beta: Floats) -> float:
    """Return how much rounding may have taken off the sum of the positive parts of slacks.

    With ``reach_i = sqrt(K_ii)``, f_i is a sum of terms of at most ``reach_i reach_j |beta_j|``.
    Their rounding errors add up like a random walk.
    """
    squares = total = 0.0
    for i in range(len(slack)):
        term = reach[i] * beta[i]
        squares += term * term
    size = math.sqrt(squares)
    for i in range(len(slack)):
        unsure = EPS * (reach[i] * size + 1.0)
        if slack[i] > -unsure:
            total += unsure
    return total


def best_bias(f: Floats, y: Floats, weights: Floats | None = None) -> float:
    """Return the middle of the minimisers over b of ``sum_i w_i max(0, 1 - y_i (f_i + b))``.

    The sum is convex and piecewise linear in b with kinks at ``y_i - f_i``; its slope is minus
    the weight of the positives, plus w_i at each kink.  Weights are 1 by default.
    """
    kinks = y - f
    if weights is not None:
        return middle_kink(kinks, weights, float(weights[y > 0].sum()))
    kinks.sort()
    positives = int(np.count_nonzero(y > 0))
    left = kinks[min(positives, len(kinks)) - 1] if positives else kinks[0]
    right = kinks[positives] if positives < len(kinks) else left
    return float(0.5 * (left + right))


def middle_kink(kinks: Floats, weights: Floats, wanted: float) -> float:
    """Return the middle of the interval in which the weight of the kinks passed is `wanted`."""
    order = np.argsort(kinks, kind="stable")
    passed = np.cumsum(weights[order])
    rounding = 1e-12 * float(passed[-1])
    left, right = np.searchsorted(passed, [wanted - rounding, wanted + rounding])
    last = len(kinks) - 1
    ends = kinks[order[[min(int(left), last), min(int(right), last)]]]
    return float(ends.mean())


def slack_spread(slack: Floats, beta: Floats, lower: Floats, upper: Floats) -> float:
    """Return how far apart the slacks ``y_i - f_i`` of points below their bounds are."""
    rising, falling = slack[beta < upper], slack[beta > lower]
    return float(rising.max() - falling.min()) if len(rising) and len(falling) else 0.0


Ascent = Callable[[Floats, Floats, float], tuple[int, int]]
"""Function of beta, the gradient ``y - K beta`` and the violation of optimality that may be left.

It overwrites both, and returns the numbers of pair updates and of Newton steps.
"""


def ascent_on(
    K: Gram, y: Floats, lower: Floats, upper: Floats, enough: Callable[[Floats, Floats], bool]
) -> Ascent:
    """Return the steps that raise ``y'beta - 1/2 beta' K beta`` over a box, at the sum of beta.

    `K` (n, n) is C-contiguous, or an operator, of which the steps multiply out a block at a time;
    `enough` takes beta and ``K beta``, and returns True if the point will do.
    """
    if isinstance(K, SymmetricOperator):
        return lambda beta, slack, violation: block_ascent(
            K, beta, slack, lower, upper, violation, lambda beta, slack: enough(beta, y - slack)
        )
    diagonal, limit = diagonal_of(K), 50 * len(y) + 1000

    def updated(beta: Floats, slack: Floats, violation: float, most: int) -> int:
        return int(pair_updates(K, diagonal, beta, slack, lower, upper, violation, most))

    def on_matrix(beta: Floats, slack: Floats, violation: float) -> tuple[int, int]:
        updates = updated(beta, slack, violation, limit)
        left = updates_of_step(beta, lower, upper)
        while not enough(beta, y - slack):
            violation *= 0.1
            more = updated(beta, slack, violation, left)
            updates, left = updates + more, left - more
            if not more or not left:
                return updates, newton_steps(K, beta, slack, lower, upper)
        return updates, 0

    return on_matrix


TOLERANCE_FLOOR = 1e-13  # relative gap below which rounding decides
BALANCE = 16.0  # units of rounding by which sums of both classes may differ at the start
MOST_MISSING = 0.5  # of the margin, for which a decision function is enlarged

Bound = float | Floats
"""Bound C of dual variables: one number, or (n,) with one for each point."""


class DualRounding(NamedTuple):
    """The most that rounding may add to a dual value ``1'alpha - 1/2 (alpha*y)'K(alpha*y)``."""

    of_form: float = 0.0  # part of the quadratic form, which grows with the square of alpha
    # Part of ``1'alpha``, and of what a rest of ``y'alpha`` costs, which grows with alpha
    of_sums: float = 0.0

    @property
    def total(self) -> float:
        """The most that the dual value may be too large by."""
        return 0.5 * self.of_form + self.of_sums


EXACT = DualRounding()


@dataclass(frozen=True, eq=False)
class SvmSolution:
    """A feasible dual point and the best bias for it, of one machine or of one for each class."""

    # (n,) or (n, k), dual variables, ``0 <= alpha <= C`` and ``y'alpha = 0`` up to rounding
    alpha: Floats
    signed: Floats  # (n,) or (n, k), ``alpha * y``, the expansion coefficients
    bias: float | Floats  # the minimiser of the primal objective over b, for the decision function
    objective: float  # upper bound of the optimum
    dual_objective: float
    iterations: int  # pair updates and Newton steps
    newton_steps: int
    # (n,) or (n, k), decision function at the training points, bias included
    values: Floats
    # What rounding may have added to a dual value at alpha; `dual_objective` is less it
    rounding: DualRounding = EXACT
    # Factor of `signed` in the decision function whose primal value is `objective`; 1 but where a
    # large C makes a function of slightly larger norm the better one
    scale: float | Floats = 1.0

    @classmethod
    def none(cls) -> SvmSolution:
        """Return a placeholder that is worse than any solution, to start a search for the best."""
        empty = np.empty(0)
        return cls(empty, empty, 0.0, np.inf, -np.inf, 0, 0, empty)

    @classmethod
    def side_by_side(cls, machines: Sequence[SvmSolution]) -> SvmSolution:
        """Return the machines of several classes on one Gram matrix as one solution.

        It has a column for each class; its values and counts are sums over the classes.
        """
        return cls(
            alpha=np.column_stack([svm.alpha for svm in machines]),
            signed=np.column_stack([svm.signed for svm in machines]),
            bias=np.array([svm.bias for svm in machines]),
            objective=sum(svm.objective for svm in machines),
            dual_objective=sum(svm.dual_objective for svm in machines),
            iterations=sum(svm.iterations for svm in machines),
            newton_steps=sum(svm.newton_steps for svm in machines),
            values=np.column_stack([svm.values for svm in machines]),
            rounding=DualRounding(
                sum(svm.rounding.of_form for svm in machines),
                sum(svm.rounding.of_sums for svm in machines),
            ),
            scale=np.array([svm.scale for svm in machines]),
        )

    @property
    def coefficients(self) -> Floats:
        """Expansion coefficients of the decision function, ``scale * signed``."""
        return np.asarray(self.scale * self.signed)

    @property
    def height(self) -> float:
        """``1'alpha``, added up over classes, less the rounding of sums."""
        return float(self.alpha.sum()) - self.rounding.of_sums

    def dual_value(self, form: float) -> float:
        """Return ``1'alpha - 1/2 form``, less its rounding, a lower bound.

        `form` is the quadratic form of alpha*y as computed, added up over classes, for a kernel
        whose diagonal is like that of the machine's kernel.
        """
        return self.height - 0.5 * (form + self.rounding.of_form)

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_gap(self.objective, self.dual_objective)


class Certificate(NamedTuple):
    """Bounds of a machine's optimum at a dual point, and the bias there."""

    primal: float  # primal value with `rounding` added, an upper bound
    dual: float  # dual value with `dual_rounding` taken off, a lower bound
    bias: float  # the minimiser of the primal value over b
    rounding: float = 0.0  # part of `primal` that makes up for its rounding errors
    dual_rounding: DualRounding = EXACT  # what `dual` is less for its own

    def within(self, tol: float) -> bool:
        """Return True if the relative gap, less its part of rounding, is at most `tol`."""
        rounding = self.rounding + self.dual_rounding.total
        return self.primal - self.dual - rounding <= tol * self.primal


def solve_svm(
    K: Gram,
    y: Floats,
    C: Bound,
    *,
    tol: float = 1e-6,
    start: Floats | None = None,
    max_rounds: int = 50,
) -> SvmSolution:
    """Solve the support vector machine dual to a relative duality gap.

    `K` (n, n) is symmetric positive semi-definite and C-contiguous, or the operator; `y` (n,) are
    labels in {-1, +1}; `C` bounds the dual variables, of all or of each (n,), and must be above 0
    for points of both classes.  A point of C = 0 takes no part, but has its decision value.
    `start` (n,) are dual variables, as of a similar problem, which are made feasible first;
    `max_rounds` limits rounds of pair updates followed by Newton steps.  The gap of the last point
    exceeds `tol` only where rounding, or that limit, keeps it from a smaller one.
    """
    beta = np.zeros(len(y)) if start is None else _feasible(start, y, C)
    lower, upper = np.minimum(y * C, 0.0), np.maximum(y * C, 0.0)
    reach = np.sqrt(np.maximum(diagonal_of(K), 0.0))

    equal, weights = not isinstance(C, np.ndarray), np.full(len(y), C)

    def certify(beta: Floats, f: Floats) -> Certificate:
        return _evaluate(beta, f, y, weights, equal, reach)

    svm = maximise_dual(K, y, lower, upper, beta, certify, tol, max_rounds)
    if svm.gap <= tol:
        return svm
    return _enlarged(svm, svm.values - svm.bias, y, weights, equal, reach, (lower, upper))


def _enlarged(
    svm: SvmSolution,
    f: Floats,
    y: Floats,
    weights: Floats,
    equal: bool,
    reach: Floats,
    bounds: tuple[Floats, Floats],
) -> SvmSolution:
    """Return the machine, with a slightly larger decision function where that has a lower value.

    A large C magnifies what is left of the losses of points below the bound, and what rounding may
    hide of them.  A function larger by as much has no such losses.  `f` are decision values without
    bias (n,), and `bounds` those of the expansion coefficients, (n,) each.
    """
    unsure = EPS * (float(reach.max()) * float(np.linalg.norm(reach * svm.signed)) + 1.0)
    missing = 0.5 * slack_spread(y - f, svm.signed, *bounds) + 2.0 * unsure
    if not 0.0 < missing < MOST_MISSING:
        return svm
    scale = 1.0 / (1.0 - missing)
    bias = best_bias(scale * f, y, None if equal else weights)
    beta, scratch = scale * svm.signed, np.empty(len(f))
    norm, _, loss, rounding, *_ = _sums(beta, scale * f, y, weights, bias, reach, scratch)
    objective = 0.5 * norm + loss + rounding
    if objective >= svm.objective:
        return svm
    values = scale * f + bias
    return replace(svm, objective=objective, bias=bias, values=values, scale=scale)


def maximise_dual(
    K: Gram,
    y: Floats,
    lower: Floats,
    upper: Floats,
    beta: Floats,
    certify: Callable[[Floats, Floats], Certificate],
    tol: float,
    max_rounds: int = 50,
) -> SvmSolution:
    """Maximise ``y'beta - 1/2 beta' K beta`` over a box, at the sum of beta that it starts with.

    Each round makes pair updates until the optimality conditions are violated by little, ten times
    less than in the round before.  More follow, for as long as a Newton step would take, and Newton
    steps on the free variables, unless the updates suffice.  On an operator, all work on blocks of
    the variables.

    `beta` (n,) is feasible, and overwritten; `certify` returns the certificate of a machine at
    beta, given ``K beta``; `tol` is the relative duality gap at which to stop.
    """
    tol = max(tol, TOLERANCE_FLOOR)
    ascend = ascent_on(K, y, lower, upper, lambda beta, f: certify(beta, f).within(0.5 * tol))
    updates = steps = 0
    violation = 1e-2
    product = K @ beta if beta.any() else np.zeros(len(y))
    best = certify(beta, product)
    for _ in range(max_rounds):
        if best.within(tol):
            break
        moved = ascend(beta, y - product, violation)
        updates, steps = updates + moved[0], steps + moved[1]
        product = K @ beta
        best = certify(beta, product)
        violation = max(violation * 0.1, 1e-15)
    f, bounds = product + best.bias, (best.primal, best.dual)
    return SvmSolution(
        beta * y, beta, best.bias, *bounds, updates, steps, values=f, rounding=best.dual_rounding
    )


def _feasible(alpha: Floats, y: Floats, C: Bound) -> Floats:
    """Return `alpha * y` moved into the box and onto the hyperplane y'alpha = 0.

    Rounding alone may leave the hyperplane, as it does in every step.  To move all points of a
    class for that would take them off their bounds.
    """
    alpha = np.minimum(np.maximum(alpha, 0.0), C)
    of_positives = y > 0
    positive, negative = float(alpha @ of_positives), float(alpha @ ~of_positives)
    if abs(positive - negative) <= BALANCE * EPS * (positive + negative):
        pass
    elif positive > negative:
        alpha[of_positives] *= negative / positive
    elif negative > positive:
        alpha[~of_positives] *= positive / negative
    return alpha * y


def _evaluate(
    beta: Floats, f: Floats, y: Floats, weights: Floats, equal: bool, reach: Floats
) -> Certificate:
    """Return the bounds at `beta`, with ``f = K beta`` and C of each point as `weights`.

    C magnifies the rounding errors of slacks that should be zero.  They are added to the primal
    value, so that it stays an upper bound; see :mod:`.svm`.  The rounding errors of the
    dual value are taken off it; see :func:`dual_rounding`.
    """
    bias = best_bias(f, y, None if equal else weights)
    norm, total, loss, rounding, energy, rest = _sums(
        beta, f, y, weights, bias, reach, np.empty(len(f))
    )
    below = dual_rounding(total, norm, energy, bias * rest, len(beta))
    primal, dual = 0.5 * norm + loss + rounding, total - 0.5 * norm - below.total
    return Certificate(primal, dual, bias, rounding, below)


def dual_rounding(
    total: float, norm: float, energy: float, unbalanced: float, n_points: int
) -> DualRounding:
    """Return the most that rounding may have added to ``1'|beta| - 1/2 beta'K beta``.

    `total` is ``1'|beta|`` and `norm` ``beta'K beta`` as computed, `energy` ``sum_i K_ii
    beta_i^2``, and `unbalanced` what it costs that pair updates leave a rest of ``1'beta``: the
    bias times the rest.
    """
    return DualRounding(form_rounding(norm, energy, n_points), EPS * total + abs(unbalanced))


INNER_SHARE = 0.05  # of the outer tolerance, left to the inner solver


class InnerSvm:
    """Train one support vector machine after another on slowly changing Gram matrices.

    Labels `y` are (n,), or (n, k) for a machine of each column; `C` bounds the dual variables, of
    all or of each point; machines are solved to a small share of `tol`, the outer problem's
    relative gap.
    """

    def __init__(self, y: Floats, C: Bound, tol: float, counters: Counters) -> None:
        self._y, self._C, self._tol = y, C, INNER_SHARE * tol
        self._counters = counters
        self._start: Floats | None = None

    def begin_at(self, alpha: Floats) -> None:
        """Start the next solve from dual variables `alpha`, shaped like the labels."""
        self._start = alpha

    def sharpen(self) -> None:
        """Solve as exactly as rounding permits from now on."""
        self._tol = 0.0

    def __call__(self, K: Gram) -> SvmSolution:
        """Solve with Gram matrix `K` (n, n), or its operator, from the last solution."""
        svm = train(K, self._y, self._C, self._tol, self._counters, self._start)
        self._start = svm.alpha
        return svm


def matrix_if_small(K: Gram) -> Gram:
    """Return K, a factored sum multiplied out if a machine would take its points as one block."""
    if isinstance(K, FactoredMatrix) and K.n_points <= BLOCK:
        return K.block(np.arange(K.n_points))
    return K


def train(
    K: Gram, y: Floats, C: Bound, tol: float, counters: Counters, start: Floats | None = None
) -> SvmSolution:
    """Train a support vector machine on labels `y` (n,), or one on each of their columns (n, k).

    C bounds the dual variables, of all or of each point (n,); `tol` is the relative duality gap of
    each machine; `start` are dual variables of the shape of y.
    """
    K = matrix_if_small(K)
    columns = y[:, None] if y.ndim == 1 else y
    starts = [None] * columns.shape[1] if start is None else list(start.reshape(columns.shape).T)
    machines = []
    for labels, alpha in zip(columns.T, starts, strict=True):
        svm = solve_svm(K, np.ascontiguousarray(labels), C, tol=tol, start=alpha)
        counters.count_svm(svm.iterations, svm.newton_steps)
        machines.append(svm)
    return machines[0] if y.ndim == 1 else SvmSolution.side_by_side(machines)


def sum_over_classes(q: Floats) -> Floats:
    """Return the quadratic forms (M,) of one machine, or the sums over k of those (M, k) of k."""
    return q if q.ndim == 1 else q.sum(axis=1)


def fixed_weights_solution(
    problem: Problem,
    params: SolverParams,
    kernel_weights: Floats,
    svm: SvmSolution,
    counters: Counters,
    extra: dict[str, float] | None = None,
    *,
    complete: bool = True,
) -> Solution:
    """Return the solution of a method that trains its machines once, at fixed kernel weights.

    The gap of the machines is the certificate, and a trace has one row.  The choice of weights is
    not `complete` if the time limit came before they were chosen from all kernels.
    """
    bounds = svm.objective, svm.dual_objective
    found = direct_solution(
        problem,
        params,
        *bounds,
        kernel_weights=kernel_weights,
        coefficients=svm.coefficients,
        bias=svm.bias,
        dual_variables=svm.alpha,
        counters=counters,
        extra=extra or {},
        training_values=svm.values,
    )
    return found if complete else replace(found, stop_reason=StopReason.TIME_LIMIT)
