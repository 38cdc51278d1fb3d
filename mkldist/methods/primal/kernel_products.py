"""Products ``K_m a`` and ``a'K_m a``, from which a weight step is made (Hao et al. 2012, 3.2).

The paper calls them its kernel cache and keeps them for all kernels.  A bank may hold more kernels
than fit in memory.  Here a weight step keeps a column ``K_m a`` for each kernel in use and for each
kernel whose weight would grow, up to a limit.  The other kernels in use share one column: the step
scales their weights by a common factor.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mkldist.bank.requests import Combine, Matvec, Quadratic, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.core.memory import VECTORS_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.methods.primal.params import PrimalMKLParams
from mkldist.optim.factored_matrix import Gram
from mkldist.optim.weight_sets import WeightSet

COLUMNS = 1000  # kernels with a column of their own, or twice as many as points if that is more
ZERO_WEIGHT = 1e-15


def memory_of_columns(size: ProblemSize, params: PrimalMKLParams) -> SolverMemory:
    """Return the memory of a solver: its weight step holds columns twice, beside the products."""
    n, M = size.n_points, size.n_kernels
    plain = params.acceleration == "none" or params.norm > 1.0
    columns = min(M, max(COLUMNS, 2 * n) if plain else n)
    columns = M if params.machine == "one-step" else columns
    return size.memory(vectors=VECTORS_PER_SOLVER + 2 * n * columns / M)


@dataclass(frozen=True, eq=False)
class Forms:
    """Quadratic forms of S kernels at one vector.

    Parameters
    ----------
    a : (n,) float64
        The vector.
    q : (S,) float64
        ``a'K_m a``.
    products : (S, n) float64, or None
        ``K_m a``; None if only the forms were asked for.
    """

    a: Floats
    q: Floats
    products: Floats | None

    @classmethod
    def of(cls, a: Floats, products: Floats) -> Forms:
        """Return the forms that follow from products ``K_m a`` (S, n)."""
        return cls(a, np.maximum(products @ a, 0.0), products)

    def extended(self, products: Floats) -> Forms:
        """Return the forms of these kernels and of others with the given products (S', n)."""
        before = np.empty((0, len(self.a))) if self.products is None else self.products
        more = Forms.of(self.a, products)
        return Forms(self.a, np.concatenate([self.q, more.q]), np.concatenate([before, products]))


@dataclass(frozen=True, eq=False)
class WeightColumns:
    """Variables of a weight step: one column per kernel, and perhaps one for several kernels.

    Parameters
    ----------
    kernels : (k,) intp
        Kernels with a column of their own.
    rest : (M,) float64
        Weights of norm 1 of the other kernels in use, which share the last column; zeros if there
        are none.
    G : (n, c) float64
        Columns ``K_m a``, c = k or k + 1.
    q : (c,) float64
        ``a'K_m a`` of the columns.
    x : (c,) float64
        Current weights of the columns.
    """

    kernels: Ints
    rest: Floats
    G: Floats
    q: Floats
    x: Floats

    def weights(self, x: Floats) -> Floats:
        """Return kernel weights (M,) for weights `x` (c,) of the columns."""
        d = self.rest * x[-1]
        d[self.kernels] = x[: len(self.kernels)]
        return np.where(d > ZERO_WEIGHT, d, 0.0)


class _Chosen(NamedTuple):
    """Kernels with a column of their own, and those that share a column."""

    own: Ints
    shared: Ints


def quadratic_forms(d: Floats, a: Floats) -> Generator[Request, Any, Forms]:
    """Ask for the forms of all kernels by one pass over the bank.

    The pass asks for the products too where the weight step will need most of them.

    Parameters
    ----------
    d : (M,) float64
        Current kernel weights.
    a : (n,) float64
        The vector.
    """
    if len(d) <= COLUMNS and 2 * np.count_nonzero(d) >= len(d):
        products: Floats = yield Matvec(np.arange(len(d)), a)
        return Forms.of(a, products)
    q = yield Quadratic(a)
    return Forms(a, np.maximum(q, 0.0), None)


def weight_columns(
    K: Gram, d: Floats, forms: Forms, weights: WeightSet
) -> Generator[Request, Any, WeightColumns]:
    """Ask for the columns of a weight step (line 11 of Algorithm 1).

    Parameters
    ----------
    K : (n, n) float64 or FactoredMatrix
        Combined kernel ``sum_m d_m K_m``, or its operator.
    d : (M,) float64
        Current kernel weights.
    forms : Forms
        Forms of the M kernels at the coefficients a.
    weights : WeightSet
        The feasible set.
    """
    a, q = forms.a, forms.q
    own, shared = _chosen(d, q, weights, max(COLUMNS, 2 * len(a)))
    rows = (yield Matvec(own, a)) if forms.products is None else forms.products[own]
    G = rows.T
    x, q_x = d[own], q[own]
    rest = np.zeros_like(d)
    if len(shared):
        rest[shared] = d[shared]
        if not weights.is_simplex:
            # With equal factors all of these weights would grow, or all would shrink.  The update
            # of Kloft et al. 2011 gives them better proportions.
            rest[shared] = (d[shared] ** 2 * q[shared]) ** (1.0 / (1.0 + weights.norm))
        length = weights.length(rest)
        rest /= length if length > 0.0 else 1.0
        simplex = weights.is_simplex
        column = (K @ a - G @ x) / length if simplex else (yield Combine(rest, thin=True)) @ a
        G = np.column_stack([G, column])
        q_x = np.append(q_x, rest @ q)
        x = np.append(x, weights.length(d[shared]))
    return WeightColumns(own, rest, np.ascontiguousarray(G), q_x, x)


def _chosen(d: Floats, q: Floats, weights: WeightSet, limit: int) -> _Chosen:
    """Return the kernels with columns of their own, at most `limit`, and the others in use."""
    # On the simplex the weight of an unused kernel grows only if its form exceeds the mean d'q.
    threshold = float(d @ q) if weights.is_simplex else 0.0
    kernels = np.flatnonzero((d > 0.0) | (q > threshold))
    if len(kernels) <= limit:
        return _Chosen(kernels, kernels[:0])
    order = np.argsort(-q[kernels], kind="stable")
    others = np.sort(kernels[order[limit:]])
    return _Chosen(np.sort(kernels[order[:limit]]), others[d[others] > 0.0])
