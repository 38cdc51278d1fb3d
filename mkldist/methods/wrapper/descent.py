"""Descent over the simplex by scaled reduced gradients: the fast path of SimpleMKL and R-MKL.

Both minimise the value of a machine on ``sum_m d_m (K_m + r_m I)``; SimpleMKL has no ridges r.  The
plain algorithms stand in the methods' files; :mod:`.reduced_gradient` says what differs here.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.gram.requests import Combine, Quadratic, Request
from mkldist.machines.inner_svm import sum_over_classes
from mkldist.methods.wrapper.bounds import WrapperBounds
from mkldist.methods.wrapper.reduced_gradient import KinkSteps, QuasiNewton, reference_kernel
from mkldist.methods.wrapper.simplex_line import CombinedKernel, LineSearch, Machine
from mkldist.solvers.base import Problem, StopReason, reason_to_stop
from mkldist.solvers.solver_params import SolverParams


def descend(
    problem: Problem,
    params: SolverParams,
    machine: Machine,
    ridges: Floats,
    bounds: WrapperBounds,
) -> Generator[Request, Any, StopReason]:
    """Descend from equal weights; return the reason to stop.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    params : SolverParams
        Stopping rule.
    machine : callable
        Solves the inner problem on a combined kernel.
    ridges : (M,) float64
        Number r_m that is added to the diagonal of each kernel.
    bounds : WrapperBounds
        Takes the bounds of every iteration: of the dual at the alpha met and, after a kink, of
        their cutting planes.

    Yields
    ------
    Combine, Quadratic
    """
    M = problem.n_kernels
    line = LineSearch(machine, ridges, partial(problem.clock.past, params.time_limit))
    kinks, quasi_newton = KinkSteps(M), QuasiNewton()
    d, mu = np.full(M, 1.0 / M), None
    for _ in range(params.max_iter):
        # J(d) and its gradient, by a machine on the combined kernel.
        kernel = CombinedKernel((yield Combine(d, thin=True)), float(ridges @ d))
        svm = machine(kernel)
        q = sum_over_classes((yield Quadratic(svm.signed)))
        # Their rounding, the same for all kernels, makes bounds hold and changes no step.
        q = q + ridges * float(np.vdot(svm.signed, svm.signed)) + svm.rounding.of_form
        gradient, dual = -0.5 * q, svm.height - 0.5 * float(q.max())
        bounds.update(d, svm, svm.objective, dual, *kinks.lower_bound(svm, q))
        stop = reason_to_stop(problem, params, bounds.gap, stalled=kinks.exhausted)
        if stop is not None:
            return stop
        # The reduced gradient, scaled by limited-memory BFGS.
        mu = reference_kernel(d, mu)
        path = quasi_newton.path(d, gradient, mu)
        # Drop kernels along it while J falls, then search the line.
        moved = yield from line.search(path, kernel, svm)
        if np.array_equal(moved, d):  # J has a kink here
            quasi_newton.forget()
            moved = kinks.step(d, svm, q, bounds)
        d = moved
    return StopReason.MAX_ITER
