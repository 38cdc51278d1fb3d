"""Descent over the simplex by scaled reduced gradients: the fast path of SimpleMKL and R-MKL.

Both minimise the value of a machine on ``sum_m d_m (K_m + r_m I)``; SimpleMKL has no ridges r.  The
plain algorithms stand in the methods' files; :mod:`.reduced_gradient` says what differs here.

The descent visits a working set of kernels (:mod:`.restricted_bound`), so that of many kernels only
the passes that certify ask for all.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.gram.requests import Request
from mkldist.methods.wrapper.bounds import Binding, WeightedMachine, WrapperBounds
from mkldist.methods.wrapper.reduced_gradient import (
    KinkSteps,
    QuasiNewton,
    ReducedGradientParams,
    reference_kernel,
)
from mkldist.methods.wrapper.restricted_bound import RestrictedBound
from mkldist.methods.wrapper.simplex_line import LineSearch, Machine
from mkldist.solvers.base import Problem, reason_to_stop
from mkldist.solvers.outcome import StopReason
from mkldist.solvers.working_set import WorkingSet


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
