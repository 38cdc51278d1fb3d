"""A bank that computes products of kernels from the points, for solvers that begin near the end.

Of a combination of kernels it gives an operator, which has no matrix.  A solver that begins near
its solution changes few of its dual variables from one product to the next.  The products of each
kernel with its last vector are therefore kept, and a product with another vector takes the kernel
values of the entries alone in which the two differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mkldist.bank.bank import Answer
from mkldist.bank.point_products import PointProducts, point_products
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.requests import Combine, Quadratic, Request
from mkldist.bank.sources import BankSource
from mkldist.core.arrays import Floats, Ints
from mkldist.optim.symmetric_operator import SymmetricOperator

ULPS = 8.0  # units of rounding by which entries of a vector may differ and count as equal
EPS = float(np.finfo(np.float64).eps)


class _Steps(NamedTuple):
    """Vectors that were added up since the last whole one, and the products of kernels with them.

    They are the kernels, the sum, the sum of absolute values, and the products (S, n).
    """

    kernels: Ints
    change: Floats
    sizes: Floats
    products: Floats


@dataclass(eq=False)
class KeptProducts:
    """Products ``K_m v`` of some kernels, each with the last vector v that was asked for.

    Parameters
    ----------
    of : PointProducts
        The kernels.
    """

    of: PointProducts
    _known: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)  # v and K_m v
    _steps: _Steps | None = None

    def product(self, kernels: Ints, weights: Floats, vector: Floats) -> Floats:
        """Return ``sum_m w_m K_m v``, (n,).

        A vector of few entries is taken for a step from the last vector.  The caller may change the
        vector afterwards.

        Parameters
        ----------
        kernels : (S,) intp
            The kernels, ascending.
        weights : (S,) float64
            Their weights.
        vector : (n,) float64
            The vector v.
        """
        if self._is_step(kernels, vector):
            found = self._computed(kernels, vector)
            self._add_step(kernels, vector, found)
            return np.asarray(weights @ found)
        self._take(kernels, vector)
        total = np.zeros(len(vector))
        for weight, kernel in zip(weights.tolist(), kernels.tolist(), strict=True):
            total += weight * self._known[kernel][1]
        return total

    def form(self, kernel: int, vector: Floats) -> float | None:
        """Return ``v'K_m v`` of a kernel whose last vector is this one, or None."""
        known = self._known.get(kernel)
        if known is None or not np.array_equal(known[0], vector):
            return None
        return float(vector @ known[1])

    def _is_step(self, kernels: Ints, vector: Floats) -> bool:
        """Return True if a vector has fewer entries than differ from those of each last vector."""
        if not all(kernel in self._known for kernel in kernels.tolist()):
            return False
        entries = np.count_nonzero(vector)
        last = (self._known[kernel][0] for kernel in kernels.tolist())
        return all(entries < np.count_nonzero(one != vector) for one in last)

    def _add_step(self, kernels: Ints, vector: Floats, found: Floats) -> None:
        """Add a step to those since the last whole vector."""
        steps = self._steps
        if steps is None or not np.array_equal(steps.kernels, kernels):
            self._steps = _Steps(kernels, vector.copy(), np.abs(vector), found)
            return
        self._steps = _Steps(
            kernels,
            steps.change + vector,
            steps.sizes + np.abs(vector),
            steps.products + found,
        )

    def _take(self, kernels: Ints, vector: Floats) -> None:
        """Bring the products of kernels to another vector; those of one last vector together."""
        groups: dict[int, tuple[Floats, list[int]]] = {}
        for kernel in kernels.tolist():
            last = self._known[kernel][0] if kernel in self._known else np.zeros(0)
            groups.setdefault(id(last) if len(last) else 0, (last, []))[1].append(kernel)
        own = vector.copy()
        for last, members in groups.values():
            change = vector - last if len(last) else vector.copy()
            found = self._changed(np.array(members), change, vector)
            for kernel, product in zip(members, found, strict=True):
                before = self._known[kernel][1] if kernel in self._known else 0.0
                self._known[kernel] = own, before + product
        self._steps = None

    def _changed(self, kernels: Ints, change: Floats, vector: Floats) -> Floats:
        """Return the products of kernels with a change, by the steps if these are parts of it."""
        steps = self._steps
        if steps is None or not np.isin(kernels, steps.kernels).all():
            return self._computed(kernels, change)
        rest = change - steps.change
        rest[np.abs(rest) <= ULPS * EPS * (np.abs(vector) + steps.sizes)] = 0.0
        if np.count_nonzero(rest) >= np.count_nonzero(change):
            return self._computed(kernels, change)
        known = steps.products[np.searchsorted(steps.kernels, kernels)]
        return known + self._computed(kernels, rest) if rest.any() else known

    def _computed(self, kernels: Ints, vector: Floats) -> Floats:
        """Return ``K_m v`` of some kernels, (S, n)."""
        found: Floats = self.of.products(kernels, vector[:, None])[:, :, 0]
        return found


@dataclass(frozen=True, eq=False)
class KernelSum(SymmetricOperator):
    """The operator ``K = sum_s w_s K_s`` by its kernels.

    Parameters
    ----------
    kept : KeptProducts
        Products of the kernels.
    kernels : (S,) intp
        The kernels, ascending.
    weights : (S,) float64
        Weights w.
    diagonals : (S, n) float64
        Diagonals of the kernels.
    """

    kept: KeptProducts
    kernels: Ints
    weights: Floats
    diagonals: Floats

    @property
    def diagonal(self) -> Floats:
        """Diagonal of K, (n,)."""
        return np.asarray(self.weights @ self.diagonals)

    def __matmul__(self, vector: Floats) -> Floats:
        """Return ``K v`` of a vector (n,)."""
        return self.kept.product(self.kernels, self.weights, vector)

    def block(self, points: Ints) -> Floats:
        """Return the rows and columns of K of some points, (q, q)."""
        return self.kept.of.block(self.kernels, self.weights, points)


class PointBank(RecomputedBank):
    """Kernels by their products with vectors.

    Parameters
    ----------
    source : BankSource
        Source of kernels that :func:`~mkldist.bank.point_products.point_products` knows.
    threads : int
        Parts that are computed at the same time.
    """

    def __init__(self, source: BankSource, threads: int = 1) -> None:
        super().__init__(source, 0, threads)
        products = point_products(source, self.counter, threads)
        if products is None:
            raise ValueError(
                "source: found kernels that neither a loop nor a device knows; expected others"
            )
        self._products, self._last = products, KeptProducts(products)

    def own_answer(self, request: Request) -> Answer | None:
        """Answer a request by products; return None for one that needs entries."""
        match request:
            case Combine(weights, kernels, _, True) if weights.ndim == 1:
                self.counter.combines += 1
                return self._sum(weights, kernels)
            case Quadratic(vectors, None):
                self.counter.passes += 1
                return self._forms(vectors, np.arange(self.n_kernels))
            case Quadratic(vectors, np.ndarray() as kernels):
                self.counter.matvecs += len(kernels)
                return self._forms(vectors, kernels)
            case _:
                return super().own_answer(request)

    def _sum(self, weights: Floats, kernels: Ints | None) -> KernelSum:
        """Return the operator of a combination, of its kernels of non-zero weight."""
        used = np.flatnonzero(weights)
        chosen = used if kernels is None else kernels[used]
        order = np.argsort(chosen)
        sources = [self._source.diagonals(slice(m, m + 1))[0] for m in chosen[order].tolist()]
        diagonals = np.array(sources).reshape(len(order), self.n_points)
        return KernelSum(self._last, chosen[order], weights[used][order], diagonals)

    def _forms(self, vectors: Floats, kernels: Ints) -> Floats:
        """Return forms of some kernels, (S,) or (S, R), of which products may be known."""
        columns = vectors.reshape(len(vectors), -1)
        found = np.full((len(kernels), columns.shape[1]), np.nan)
        if columns.shape[1] == 1:
            known = (self._last.form(kernel, columns[:, 0]) for kernel in kernels.tolist())
            found[:, 0] = [np.nan if form is None else form for form in known]
        unknown = np.flatnonzero(np.isnan(found[:, 0]))
        if len(unknown):
            order = unknown[np.argsort(kernels[unknown])]
            found[order] = self._products.forms(kernels[order], columns)
        return found.reshape(len(kernels), *vectors.shape[1:])
