"""PrimalMKL on a working set: the two steps on a few kernels, between passes over all of them.

Of many kernels in the simplex, few have a weight at the optimum.  The iterations ask only for the
kernels of a working set (:mod:`mkldist.solvers.working_set`).  Once the gap on the working set is
small, a pass over the bank bounds the optimum for all kernels from below: the run ends, or the
kernels with the largest forms q_m enter the working set with weight zero.

The dual of PrimalMKL is strongly concave in the residual r, with modulus 1, or one by the largest
weight of a point.  A pass therefore
proves some kernels inactive, and later passes leave them out (:mod:`mkldist.solvers.working_set`).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkldist.bank.requests import Matvec, Quadratic, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.core.counters import Counters
from mkldist.methods.primal.certificate import (
    PATIENCE,
    PROGRESS,
    Best,
    best_solution,
    dual_value,
    energy,
    primal_value,
)
from mkldist.methods.primal.kernel_products import Forms, weight_columns
from mkldist.methods.primal.params import PrimalMKLParams, machine_of
from mkldist.methods.primal.steps import Iterate, d_step, z_step
from mkldist.optim.accuracy import relative_gap
from mkldist.optim.weight_sets import WeightSet
from mkldist.solvers.base import Problem, Steps, reason_to_stop
from mkldist.solvers.primal_newton import PrimalMachine
from mkldist.solvers.progress import Bounds, DualBound, Own, Trace
from mkldist.solvers.working_set import Candidates, WorkingSet, distance_to_optimum, solved

SOLVED = 0.03  # of the gap of a pass, left on the working set: quadratic convergence is cheap
SIMPLEX = WeightSet(1.0)


@dataclass(frozen=True, eq=False)
class WorkingSetStart:
    """Point at which the next solver of a path starts.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    kernels : (S,) intp
        The working set.
    alpha : (n,) float64
        Coefficients.
    b : float
        Bias.
    candidates : Candidates
        Bounds of the kernels' dual norms at the residual of the last pass.
    """

    d: Floats
    kernels: Ints
    alpha: Floats
    b: float
    candidates: Candidates


def renewed(problem: Problem, state: Any) -> Generator[Request, Any, Any]:
    """Ask changed kernels for the dual norms that a state holds, at the residual of its last pass.

    Parameters
    ----------
    problem : Problem
        The problem.
    state : WorkingSetStart or PlainStart
        State of a solution with the kernels as they were; the latter holds nothing of them.
    """
    if not isinstance(state, WorkingSetStart):
        return state
    q = yield Quadratic(state.candidates.centre)
    candidates = Candidates(problem.n_kernels)
    candidates.visited(state.candidates.centre, np.sqrt(np.maximum(q, 0.0)))
    return replace(state, candidates=candidates)


class _Passes:
    """Passes over all kernels; the last one gave the best dual bound and the relative gap."""

    def __init__(self, machine: PrimalMachine, kernels: WorkingSet, tol: float) -> None:
        self._machine, self._kernels, self._tol = machine, kernels, tol
        self._centre_value = -math.inf
        self.best, self.gap = DualBound(-math.inf, np.empty(0)), 1.0

    @property
    def lower(self) -> float:
        """The greatest dual value of all kernels."""
        return self.best.value

    def go_on(self, start: WorkingSetStart) -> None:
        """Bound the optimum at the present lam by the last pass of the path's previous solver."""
        candidates = self._kernels.candidates
        candidates.go_on(start.candidates)
        q = (candidates.bounds / self._machine.lam) ** 2
        self._centre_value = dual_value(self._machine, SIMPLEX, candidates.centre, start.b, q)
        self.best, self.gap = DualBound(self._centre_value, candidates.centre), self._tol

    def visit(
        self, r: Floats, b: float, upper: float, energy_of_a: float = 0.0
    ) -> Generator[Request, Any, Floats]:
        """Bound the optimum from below by a feasible residual, and screen kernels.

        Returns ``a'K_m a`` at ``a = r / lam``, (M,); 0 for screened kernels.
        """
        lam, candidates = self._machine.lam, self._kernels.candidates
        q = yield from self._kernels.visit_all(r[None] / lam)
        q = np.maximum(q[:, 0], 0.0)
        candidates.visited(r, lam * np.sqrt(q))
        self._centre_value = dual_value(self._machine, SIMPLEX, r, b, q, energy_of_a)
        if self._centre_value > self.lower:
            self.best = DualBound(self._centre_value, r)
        gap = relative_gap(upper, self.lower)
        if math.isfinite(upper) and gap > self._tol:
            self.gap = gap
            yield from self.screen(upper, left=gap / self._tol)
        return q

    def screen(self, upper: float, left: float) -> Generator[Request, Any, None]:
        """Leave out the kernels that the last pass and an upper bound prove inactive."""
        weights = self._machine.loss.weights
        curvature = 1.0 if weights is None else 1.0 / float(weights.max())
        distance = distance_to_optimum(upper, self._centre_value, curvature=curvature)
        yield from self._kernels.candidates.screen(distance, left=left)


def solve_on_working_set(problem: Problem, params: PrimalMKLParams) -> Steps:
    """Run PrimalMKL on the simplex, on a working set of kernels.

    Parameters, requests and solution are those of :func:`mkldist.methods.primal.primalmkl.solve`.
    """
    lam, counters = params.lam, Counters()
    machine = machine_of(params, problem, counters)
    loss = machine.loss
    kernels = WorkingSet(problem.n_kernels, everything=False)
    passes = _Passes(machine, kernels, params.tol)
    trace = Trace(params.trace, problem.clock)
    now = yield from _first(problem.start, machine, kernels, passes)
    on_set = Bounds(Best(kernels.spread(now.d), now.z), progress=PROGRESS)
    for iteration in range(1, params.max_iter + 1):
        r, b = loss.feasible(now.z.r), now.z.b
        forms = Forms.of(r / lam, (yield Matvec(kernels.kernels, r / lam)))
        of_a = energy(now.K, r / lam)
        value = dual_value(machine, SIMPLEX, r, b, forms.q, of_a)
        best = Best(kernels.spread(now.d), now.z)
        on_set.take(best, primal_value(machine, now.K, now.z), value, r)
        if relative_gap(on_set.upper, value) <= solved(params.tol, passes.gap, SOLVED):
            q = yield from passes.visit(r, b, on_set.upper, of_a)
            if relative_gap(on_set.upper, passes.lower) > params.tol:
                newcomers = kernels.newcomers(q, float(forms.q.max()))
                kernels.take(newcomers)
                forms = forms.extended((yield Matvec(newcomers, forms.a)))
                now = replace(now, d=np.concatenate([now.d, np.zeros(len(newcomers))]))
                on_set.restart(passes.lower)
        gap = relative_gap(on_set.upper, passes.lower)
        counters.outer_iterations += 1
        trace.record(on_set.upper, passes.lower, kernels.spread(now.d), Own(now.z.value))
        stop = reason_to_stop(problem, params, gap, stalled=on_set.idle >= PATIENCE)
        if stop is not None or iteration == params.max_iter:
            break
        columns = yield from weight_columns(now.K, now.d, forms, SIMPLEX)
        d = d_step(machine, SIMPLEX, now, columns, gap, params)
        del columns  # as large as Gram matrices, which the next request needs room for
        now = z_step(machine, now, d, (yield kernels.combination(d, thin=True)), params.coupled)
    d, z = on_set.best
    return best_solution(
        problem, params, machine, on_set, stop, trace,
        certificate=passes.best,
        extra=kernels.candidates.report,
        state=WorkingSetStart(d, kernels.kernels, z.alpha, z.b, kernels.candidates),
    )  # fmt: skip


def _first(
    start: Any, machine: PrimalMachine, kernels: WorkingSet, passes: _Passes
) -> Generator[Request, Any, Iterate]:
    """Return the first iterate.

    A pass at the residual of the best constant picks the first kernels, with equal weights.  On a
    path the first iterate is the point at which the previous solver ended.
    """
    if isinstance(start, WorkingSetStart):
        kernels.take(start.kernels)
        passes.go_on(start)
        d = start.d[start.kernels]
        K = yield kernels.combination(d, thin=True)
        now = Iterate(d, K, machine(K, start.alpha))
        yield from passes.screen(primal_value(machine, K, now.z), left=0.0)
        return now
    zeros = np.zeros(len(machine.loss.lower))
    b = machine.loss.best_bias(zeros)
    r = machine.loss.feasible(machine.loss.residual(zeros + b))
    q = yield from passes.visit(r, b, math.inf)
    kernels.take(kernels.newcomers(q, -math.inf))
    d = SIMPLEX.uniform(len(kernels))
    K = yield kernels.combination(d, thin=True)
    return Iterate(d, K, machine(K, zeros))
