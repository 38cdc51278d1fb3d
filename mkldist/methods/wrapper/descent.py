"""Descent over the simplex by scaled reduced gradients: the fast path of SimpleMKL and R-MKL.

Both minimise the value of a machine on ``sum_m d_m (K_m + r_m I)``; SimpleMKL has no ridges r.  The
plain algorithms stand in the methods' files; :mod:`.reduced_gradient` says what differs here.

The descent visits a working set of kernels (:mod:`.restricted_bound`), so that of many kernels only
the passes that certify ask for all.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats, Ints
from mkldist.methods.wrapper.bounds import Binding, MachinePoint, WeightedMachine, WrapperBounds
from mkldist.methods.wrapper.machine_cuts import CutsBound, MachineCuts
from mkldist.methods.wrapper.reduced_gradient import (
    KinkSteps,
    QuasiNewton,
    ReducedGradientParams,
    reference_kernel,
)
from mkldist.methods.wrapper.simplex_line import LineSearch, Machine
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Problem, reason_to_stop
from mkldist.solvers.progress import Own, StopReason
from mkldist.solvers.svm import SvmSolution
from mkldist.solvers.working_set import WorkingSet, solved


class RestrictedBound:
    """The greatest lower bound of the optimum over a working set, and the dual point of it.

    Parameters
    ----------
    y : (n,) or (n, k) float64
        Labels.
    tol : float
        Relative gap asked for.
    kernels : WorkingSet
        The kernels at work; they grow here.
    ridges : (M,) float64
        Number r_m that is added to the diagonal of each kernel.
    bounds : WrapperBounds
        Takes what holds for all kernels.

    Attributes
    ----------
    lower : float
        The bound.
    """

    def __init__(
        self, y: Floats, tol: float, kernels: WorkingSet, ridges: Floats, bounds: WrapperBounds
    ) -> None:
        self._y, self._tol, self._kernels = y, tol, kernels
        self._ridges, self._bounds = ridges, bounds
        self._gap_of_pass = math.inf
        self._point = MachinePoint(np.zeros_like(y), 0.0)
        self.lower = -math.inf

    @property
    def is_due(self) -> bool:
        """True if the gap on the working set is small enough for a pass over all kernels."""
        if self._kernels.everything:
            return False
        gap = relative_gap(self._bounds.upper, self.lower)
        return gap <= solved(self._tol, self._gap_of_pass)

    def first_kernels(self, weights: Floats | None = None) -> Generator[Request, Any, None]:
        """Take the kernels of weights (M,) that are not zero.

        Without weights, those of the largest q_m where the dual variables are equal within each
        class.
        """
        if self._kernels.everything:
            return
        if weights is None:
            yield from self._kernels.take_first(self._y, self._ridges)
        else:
            self._kernels.take(np.flatnonzero(weights))
        self._bounds.improve_lower(
            0.0, np.zeros_like(self._y)
        )  # before the first pass: no machine's value is negative

    def largest_forms(self, svm: SvmSolution, q: Floats) -> Floats:
        """Return upper bounds of q_m with ridges, in spite of rounding, on the working set.

        Their rounding, the same for all kernels, makes bounds hold and changes no step.

        Parameters
        ----------
        svm : SvmSolution
            The machine.
        q : (S,) float64
            Its ``(alpha*y)' K_m (alpha*y)``, added up over classes.
        """
        return self._largest(_own_point(svm), q, self._kernels.kernels)

    def improve(self, svm: SvmSolution, q: Floats, cuts: CutsBound) -> None:
        """Keep the bound of a machine, or that of all cuts, if it is the greatest so far.

        Parameters
        ----------
        svm, q
            The machine, and its largest forms.
        cuts : CutsBound
            Lower bound by the cuts of this machine and those before.
        """
        own, dual = _own_point(svm), svm.height - 0.5 * float(q.max())
        if max(dual, cuts.value) > self.lower:
            by_own = dual >= cuts.value
            self.lower, self._point = (dual, own) if by_own else (cuts.value, cuts.mixture)
            if self._kernels.everything:
                point = self._point.alpha
                if self._bounds.improve_lower(self.lower, point):
                    self._bounds.binding = Binding([own] if by_own else cuts.points)
        self._bounds.own = Own(svm.objective, dual if self._kernels.everything else math.nan)

    def visit_all(self, svm: SvmSolution, cuts: MachineCuts) -> Generator[Request, Any, Floats]:
        """Bound the optimum over all kernels by a pass, and enlarge the working set.

        Parameters
        ----------
        svm : SvmSolution
            The machine at the iterate.
        cuts : MachineCuts
            Cuts on the working set, which take the kernels that join.

        Returns
        -------
        (K,) float64
            Largest forms of the machine at the kernels that joined.
        """
        kernels, bounds, point, own = self._kernels, self._bounds, self._point, _own_point(svm)
        alphas = np.stack([point.alpha, own.alpha])
        q = yield from kernels.visit_all(alphas * self._y)
        everywhere = np.arange(len(q))
        q_point = self._largest(point, q[:, 0], everywhere)
        if bounds.improve_lower(point.height - 0.5 * float(q_point.max()), point.alpha):
            bounds.binding = Binding([point])
        self._gap_of_pass = bounds.gap
        if not bounds.gap > self._tol:
            return np.empty(0)
        joined = kernels.newcomers(q_point, float(q_point[kernels.kernels].max()))
        if len(joined):
            self.lower = bounds.lower
            yield from self._join(joined, cuts)
        return self._largest(own, q[joined, 1], joined)

    def _join(self, joined: Ints, cuts: MachineCuts) -> Generator[Request, Any, None]:
        """Take kernels into the working set, and into the cuts."""
        alphas = np.array([point.alpha for point in cuts.points])
        q = yield from self._kernels.enlarge(joined, alphas * self._y if len(alphas) else alphas)
        largest = np.empty_like(q)  # (J, K)
        for j, point in enumerate(cuts.points):
            largest[j] = self._largest(point, q[j], joined)
        cuts.widen(largest)

    def _largest(self, point: MachinePoint, q: Floats, kernels: Ints) -> Floats:
        """Return upper bounds of a point's q_m with ridges, in spite of rounding."""
        square = float(np.vdot(point.alpha, point.alpha))
        forms: Floats = q + self._ridges[kernels] * square + point.of_form
        return forms


def _own_point(svm: SvmSolution) -> MachinePoint:
    """Return the dual point of a machine."""
    return MachinePoint(svm.alpha, svm.height, svm.rounding.of_form)


def descend(
    problem: Problem,
    params: ReducedGradientParams,
    machine: Machine,
    ridges: Floats,
    bounds: WrapperBounds,
) -> Generator[Request, Any, StopReason]:
    """Descend from equal weights of the first kernels, or from a solution; say why it stops.

    Parameters
    ----------
    problem : Problem
        Labels, number of kernels, and perhaps the state of a solution.
    params : ReducedGradientParams
        Stopping rule, and whether to visit a working set.
    machine : callable
        Solves the inner problem on a combined kernel.
    ridges : (M,) float64
        Number r_m that is added to the diagonal of each kernel.
    bounds : WrapperBounds
        Takes the bounds of the optimum over all kernels.

    Yields
    ------
    Combine, Quadratic
    """
    kernels = WorkingSet(problem.n_kernels, everything=params.acceleration == "none")
    restricted = RestrictedBound(problem.y, params.tol, kernels, ridges, bounds)
    start = problem.start.weights if isinstance(problem.start, Binding) else None
    yield from restricted.first_kernels(start)
    line = LineSearch(machine, kernels, ridges, partial(problem.clock.past, params.time_limit))
    kinks, quasi_newton = KinkSteps(len(kernels)), QuasiNewton()
    d = np.full(len(kernels), 1.0 / len(kernels)) if start is None else start[kernels.kernels]
    mu = None
    for _ in range(params.max_iter):
        # J(d) and its gradient, by a machine on the combined kernel.
        kernel = yield from line.combined(d)
        svm = machine(kernel)
        q = restricted.largest_forms(svm, (yield from kernels.quadratic(svm.signed)))
        bounds.improve_upper(WeightedMachine(kernels.spread(d), svm), svm.objective)
        restricted.improve(svm, q, kinks.lower_bound(svm, q))
        if restricted.is_due or kinks.exhausted:
            # A pass over all kernels; some join the working set with weight zero.
            of_newcomers = yield from restricted.visit_all(svm, kinks.cuts)
            if len(of_newcomers):
                d = np.concatenate([d, np.zeros(len(of_newcomers))])
                q = np.concatenate([q, of_newcomers])
                kinks.go_on()
                quasi_newton.forget()
        bounds.record(kernels.spread(d))
        stop = reason_to_stop(problem, params, bounds.gap, stalled=kinks.exhausted)
        if stop is not None:
            return stop
        # The reduced gradient, scaled by limited-memory BFGS.
        mu = reference_kernel(d, mu)
        path = quasi_newton.path(d, -0.5 * q, mu)
        # Drop kernels along it while J falls, then search the line.
        moved = yield from line.search(path, kernel, svm)
        if np.array_equal(moved, d):  # J has a kink here
            quasi_newton.forget()
            moved = kinks.step(d, svm, q, bounds.upper, restricted.lower)
        d = moved
    return StopReason.MAX_ITER
