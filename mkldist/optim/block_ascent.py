"""Box-constrained quadratic programs on operators, block by block of the variables.

    max_beta  linear'beta - 1/2 beta' K beta   s.t.  lower <= beta <= upper,  1'beta = const

K is an operator (:mod:`.symmetric_operator`) of which only a block at a time is multiplied out.
Each step optimises the block of variables that violate the optimality conditions most, with the
others fixed (Joachims 1999, "Making large-scale SVM learning practical", Section 11.2), by the pair
updates and Newton steps of :mod:`.box_qp`.  The pair of the largest violation is in the block, so
that the steps converge (Lin 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.blas_threads import single_threaded
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.symmetric_operator import SymmetricOperator

BLOCK = 1500  # variables optimised at once, or more where more lie between their bounds
LARGEST = 4000  # block, of which the matrix takes 128 megabytes
MOST_BLOCKS = 500  # of one call
SHARE = 0.1  # of the violation that a block starts with and may keep
MANY_FREE = 500  # variables between their bounds, whose systems threads solve sooner
UPDATES_EACH = 50  # most pair updates of a block, for each of its variables


def block_ascent(
    K: SymmetricOperator,
    beta: Floats,
    slack: Floats,
    lower: Floats,
    upper: Floats,
    violation: float,
    enough: Callable[[Floats, Floats], bool],
) -> tuple[int, int]:
    """Improve `beta` and ``slack = linear - K beta`` in place; return pair updates, Newton steps.

    Parameters
    ----------
    K : SymmetricOperator
        The matrix.
    beta, slack : (n,) float64
        A feasible point and the gradient there; both are overwritten.
    lower, upper : (n,) float64
        Bounds; may be infinite.
    violation : float
        Largest difference of slacks at which to stop.
    enough : callable
        Takes beta and slack, and returns True if the point will do.
    """
    updates = steps = 0
    diagonal = K.diagonal
    for _ in range(MOST_BLOCKS):
        rising, falling = beta < upper, beta > lower
        if not rising.any() or not falling.any():
            break
        violated = float(slack[rising].max() - slack[falling].min())
        if violated <= violation or enough(beta, slack):
            break
        points = _most_violating(slack, rising, falling)
        part, left, bounds = beta[points], slack[points], (lower[points], upper[points])
        of_block, kept = K.block(points), max(violation, SHARE * violated)
        most = UPDATES_EACH * len(points)
        updates += int(pair_updates(of_block, diagonal[points], part, left, *bounds, kept, most))
        steps += _newton_steps(of_block, part, left, *bounds)
        change = np.zeros(len(beta))
        change[points] = part - beta[points]
        if not change.any():
            break
        beta[points] = part
        slack -= K @ change
    return updates, steps


def _newton_steps(K: Floats, beta: Floats, slack: Floats, lower: Floats, upper: Floats) -> int:
    """Take Newton steps on a block; on few free variables by one thread of linear algebra.

    Their systems are solved in less time than threads take to synchronise.
    """
    few = np.count_nonzero((beta > lower) & (beta < upper)) < MANY_FREE
    with single_threaded() if few else nullcontext():
        return newton_steps(K, beta, slack, lower, upper)


def _most_violating(slack: Floats, rising: Bools, falling: Bools) -> Ints:
    """Return the block, at most half of which are variables between their bounds.

    The others are those of the largest slacks that may rise and of the least that may fall.  A
    block without the variables in between would only move the violation to them.
    """
    n = len(slack)
    if n <= BLOCK:
        return np.arange(n)
    free = np.flatnonzero(rising & falling)
    size = min(max(BLOCK, 2 * len(free)), LARGEST)
    middle = 0.5 * (slack[rising].max() + slack[falling].min())
    free = free[np.argsort(-np.abs(slack[free] - middle), kind="stable")[: size // 2]]
    each = (size - len(free)) // 2
    up = np.argsort(np.where(rising, -slack, np.inf), kind="stable")[:each]
    down = np.argsort(np.where(falling, slack, np.inf), kind="stable")[:each]
    block: Ints = np.unique(np.concatenate([free, up[rising[up]], down[falling[down]]]))
    return block
