"""Steps that raise the dual of a support vector machine, on a Gram matrix or on an operator."""

from __future__ import annotations

from collections.abc import Callable

from mkldist.arrays import Floats
from mkldist.optim.block_ascent import block_ascent
from mkldist.optim.box_qp import newton_steps, pair_updates
from mkldist.optim.factored_matrix import Gram, diagonal_of
from mkldist.optim.symmetric_operator import SymmetricOperator

Ascent = Callable[[Floats, Floats, float], tuple[int, int]]
"""Function of beta, the gradient ``y - K beta`` and the violation of optimality that may be left.

It overwrites both, and returns the numbers of pair updates and of Newton steps.
"""


def ascent_on(
    K: Gram,
    y: Floats,
    lower: Floats,
    upper: Floats,
    enough: Callable[[Floats, Floats], bool],
) -> Ascent:
    """Return the steps that raise ``y'beta - 1/2 beta' K beta`` over a box, at the sum of beta.

    Parameters
    ----------
    K : (n, n) float64 or SymmetricOperator
        Symmetric positive semi-definite, C-contiguous; or the operator, of which the steps
        multiply out a block at a time.
    y : (n,) float64
        Labels in {-1, +1}.
    lower, upper : (n,) float64
        Bounds of beta; may be infinite.
    enough : callable
        Takes beta and ``K beta``, and returns True if the point will do.
    """
    if isinstance(K, SymmetricOperator):
        return lambda beta, slack, violation: block_ascent(
            K, beta, slack, lower, upper, violation, lambda beta, slack: enough(beta, y - slack)
        )
    diagonal, limit = diagonal_of(K), 50 * len(y) + 1000

    def on_matrix(beta: Floats, slack: Floats, violation: float) -> tuple[int, int]:
        updates = int(pair_updates(K, diagonal, beta, slack, lower, upper, violation, limit))
        done = enough(beta, y - slack)
        return updates, 0 if done else newton_steps(K, beta, slack, lower, upper)

    return on_matrix
