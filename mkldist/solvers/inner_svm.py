"""The inner support vector machines of a solver: warm starts, tolerance and counting.

A solver of two classes trains one machine on the combined kernel.  A solver of several classes
that share their kernel weights trains one for each class, all on the same combined kernel.  Its
objective ``J(d) = sum_c J_c(d)`` and the derivatives are then sums over the classes.
"""

from __future__ import annotations

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.optim.factored_matrix import Gram
from mkldist.solvers.svm import Bound, SvmSolution, solve_svm

INNER_SHARE = 0.05  # of the outer tolerance, left to the inner solver


class InnerSvm:
    """Solve one support vector machine after another on slowly changing Gram matrices.

    Parameters
    ----------
    y : (n,) or (n, k) float64
        Labels in {-1, +1}; with k columns there is a machine for each.
    C : float or (n,) float64
        Bound of the dual variables, of all or of each point.
    tol : float
        Relative duality gap of the outer problem; machines are solved to a small share of it.
    counters : Counters
        Counters to which solves are added.
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


def train(
    K: Gram,
    y: Floats,
    C: Bound,
    tol: float,
    counters: Counters,
    start: Floats | None = None,
) -> SvmSolution:
    """Train a support vector machine on labels `y`, or one on each of their columns.

    Parameters
    ----------
    K : (n, n) float64 or FactoredMatrix
        Gram matrix, or its operator.
    y : (n,) or (n, k) float64
        Labels in {-1, +1}, both in every column.
    C : float or (n,) float64
        Bound of the dual variables, of all or of each point.
    tol : float
        Relative duality gap of each machine.
    counters : Counters
        Counters to which solves are added.
    start : array of the shape of `y`, optional
        Dual variables to start from.
    """
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
    total: Floats = q if q.ndim == 1 else q.sum(axis=1)
    return total
