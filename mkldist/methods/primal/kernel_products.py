"""What a weight step needs of each kernel: ``K_m a`` and ``a'K_m a`` (Hao et al. 2012, 3.2).

The paper keeps them for all kernels.  A bank may hold more kernels than fit: only those in use
and those that would descend are kept one by one, up to a limit; the others in use move as one.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Combine, Matvec, Quadratic, Request
from mkldist.optim.lp_ball import WeightSet

COLUMNS = 1000  # kernels kept one by one, or twice as many as points if that is more
ZERO_WEIGHT = 1e-15


@dataclass(frozen=True, eq=False)
class Forms:
    """Quadratic forms of some kernels at one vector.

    Parameters
    ----------
    a : (n,) float64
        The vector.
    q : (S,) float64
        ``a'K_m a``.
    products : (S, n) float64, or None
        ``K_m a`` if at hand.
    """

    a: Floats
    q: Floats
    products: Floats | None

    @classmethod
    def of(cls, a: Floats, products: Floats) -> Forms:
        """Return the forms that products ``K_m a`` (S, n) give."""
        return cls(a, np.maximum(products @ a, 0.0), products)

    def extended(self, products: Floats) -> Forms:
        """Return the forms with those of more kernels, of which the products are at hand."""
        before = np.empty((0, len(self.a))) if self.products is None else self.products
        more = Forms.of(self.a, products)
        return Forms(self.a, np.concatenate([self.q, more.q]), np.concatenate([before, products]))


@dataclass(frozen=True, eq=False)
class KernelCache:
    """Columns ``K_m a`` of the kernels that may move, at one vector a.

    Parameters
    ----------
    kernels : (k,) intp
        Kernels kept one by one.
    rest : (M,) float64
        Weights of norm 1 of the other kernels in use, which form one more column; zeros if none.
    G : (n, c) float64
        Columns, c = k or k + 1.
    q : (c,) float64
        ``a' K_m a`` of the columns.
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


def quadratic_forms(d: Floats, a: Floats, counters: Counters) -> Generator[Request, Any, Forms]:
    """Return the forms of all kernels by one pass, with products where most will be needed."""
    counters.passes += 1
    if len(d) <= COLUMNS and 2 * np.count_nonzero(d) >= len(d):
        products: Floats = yield Matvec(np.arange(len(d)), a)
        return Forms.of(a, products)
    q = yield Quadratic(a)
    return Forms(a, np.maximum(q, 0.0), None)


def kernel_cache(
    K: Floats, d: Floats, forms: Forms, weights: WeightSet, counters: Counters
) -> Generator[Request, Any, KernelCache]:
    """Ask for the columns of the kernels that may move.

    Parameters
    ----------
    K : (n, n) float64
        Combined kernel.
    d : (M,) float64
        Its weights.
    forms : Forms
        Of the kernels at the coefficients a.
    weights : WeightSet
        The feasible set.
    counters : Counters
        Work done.
    """
    a, q = forms.a, forms.q
    kernels, others = _chosen(d, q, weights, max(COLUMNS, 2 * len(a)))
    rows = (yield Matvec(kernels, a)) if forms.products is None else forms.products[kernels]
    G = rows.T
    x, q_x = d[kernels], q[kernels]
    rest = np.zeros_like(d)
    if len(others):
        rest[others] = d[others]
        if not weights.is_simplex:  # all would grow or shrink alone: Kloft et al. 2011's update
            rest[others] = (d[others] ** 2 * q[others]) ** (1.0 / (1.0 + weights.norm))
        length = weights.length(rest)
        rest /= length if length > 0.0 else 1.0
        if weights.is_simplex:
            column = (K @ a - G @ x) / length
        else:
            counters.combines += 1
            counters.passes += 1
            column = (yield Combine(rest)) @ a
        G = np.column_stack([G, column])
        q_x = np.append(q_x, rest @ q)
        x = np.append(x, weights.length(d[others]))
    return KernelCache(kernels, rest, np.ascontiguousarray(G), q_x, x)


def _chosen(d: Floats, q: Floats, weights: WeightSet, limit: int) -> tuple[Ints, Ints]:
    """Return the kernels to keep one by one, at most `limit`, and the others in use."""
    threshold = float(d @ q) if weights.is_simplex else 0.0  # above, a kernel would descend
    kernels = np.flatnonzero((d > 0.0) | (q > threshold))
    if len(kernels) <= limit:
        return kernels, kernels[:0]
    order = np.argsort(-q[kernels], kind="stable")
    others = np.sort(kernels[order[limit:]])
    return np.sort(kernels[order[:limit]]), others[d[others] > 0.0]
