"""A bank of thin factors: every kernel is ``G G'`` with G (n, r), and no more is kept of it.

The factors are those of :mod:`mkldist.optim.pivoted_cholesky`.  Each kernel of the bank therefore
lies below the kernel that it stands for, ``G G' <= K``, so that every optimum over the bank is an
upper bound of that over the kernels themselves.  Memory and passes grow with n and not with n².

A narrow kernel is near its diagonal, which no thin factor has.  A bank that is given the diagonals
of the kernels adds what the factors lack of them, or a multiple: ``G G' + w diag(K - G G')``.  It
then lies neither below nor above the kernel.  Nor does one whose factors are rounded to float32.

Memory need not hold all factors (:mod:`mkldist.bank.factor_shelf`): every answer takes them one
after the other, and those of an operator come again whenever it multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mkldist.bank.bank import Answer, Bank, Chunk, DiagonalPart, Rows, kernel_groups, slabs
from mkldist.bank.factor_shelf import FactorShelf
from mkldist.bank.layout import TileLayout
from mkldist.bank.requests import Combine, Matvec, Quadratic, Request
from mkldist.bank.sources import BankSource, check_finite
from mkldist.core.arrays import Floating, Floats, Ints
from mkldist.errors import GramError
from mkldist.optim.factored_matrix import FactoredMatrix
from mkldist.optim.pivoted_cholesky import (
    KeptPieces,
    PivotedFactor,
    ThinFactor,
    pivoted_cholesky,
)
from mkldist.optim.thin_factor import Thin, values_of
from mkldist.optim.thin_products import ON_HOST, ThinProducts


class FactorBank(Bank):
    """Kernels ``G_m G_m'`` by their factors.

    Quadratic forms and products of kernels take two thin products.  A :class:`Combine` that takes
    an operator is answered by one.  All other requests are answered from entries that are
    multiplied out tile by tile, as of any bank.

    Parameters
    ----------
    factors : sequence of ThinFactor
        The M factors, each of n rows.
    exact : (M, n) float64, optional
        Diagonals of the kernels, of which what the factors lack is added to them.
    times : (M,) float64, optional
        Factors w by which that is multiplied; by default 1.
    shelf : FactorShelf, optional
        Who has the values of factors that are not in memory, and is told which are in use.
    products : ThinProducts
        What multiplies the factors.
    """

    def __init__(
        self,
        factors: Sequence[ThinFactor],
        exact: Floats | None = None,
        times: Floats | None = None,
        shelf: FactorShelf | None = None,
        products: ThinProducts = ON_HOST,
    ) -> None:
        layout = TileLayout.for_points(len(factors[0].diagonal))
        super().__init__(len(factors), layout, np.dtype(np.float64))
        self.factors = tuple(factors)
        self.shelf, self.products = shelf, products
        self.exact = exact
        self.times = np.ones(len(factors)) if times is None else times

    @property
    def n_bytes(self) -> int:
        """Bytes of all factors, in memory or not."""
        columns = sum(factor.rank for factor in self.factors)
        return self.kept_type.itemsize * self.n_points * columns

    @property
    def kept_type(self) -> np.dtype[np.floating]:
        """Type in which factors are kept: float64, or float32 where they are rounded."""
        return np.dtype(np.float64) if self.shelf is None else self.shelf.dtype

    @property
    def lies_below(self) -> bool:
        """True if ``G G' <= K`` holds, but for rounding to float64."""
        return self.exact is None and self.kept_type == np.float64

    def select(self, kernels: Ints) -> FactorBank:
        """Return a bank of some kernels, in any order, that shares their factors."""
        exact = None if self.exact is None else self.exact[kernels]
        factors = [self.factors[kernel] for kernel in kernels.tolist()]
        return FactorBank(factors, exact, self.times[kernels], self.shelf, self.products)

    def copy(self) -> FactorBank:
        """Return a bank of the same factors, of which others may take the place."""
        return FactorBank(self.factors, self.exact, self.times, self.shelf, self.products)

    def on(self, points: Ints) -> FactorBank:
        """Return a bank of the same kernels between some of the points, for few requests."""
        exact = None if self.exact is None else self.exact[:, points]
        factors = [_Rows(factor, points) for factor in self.factors]
        return FactorBank(factors, exact, self.times)

    def put(self, kernel: int, factor: ThinFactor) -> None:
        """Replace the factor of a kernel by another of it."""
        before, after = self.factors[:kernel], self.factors[kernel + 1 :]
        self.factors = (*before, factor, *after)

    def own_answer(self, request: Request) -> Answer | None:
        """Answer a request by thin products; return None for one that needs entries."""
        match request:
            case Quadratic(vectors, None):
                self.counter.passes += 1
                return self._quadratic(vectors, range(self.n_kernels))
            case Quadratic(vectors, np.ndarray() as kernels):
                self.counter.matvecs += len(kernels)
                return self._quadratic(vectors, kernels.tolist())
            case Matvec(kernels, vectors):
                self.counter.matvecs += len(kernels)
                return self._products(kernels, vectors)
            case Combine(weights, kernels, _, True):
                sums = [self._sum(row, kernels) for row in np.atleast_2d(weights)]
                self.counter.combines += len(sums)
                return sums[0] if weights.ndim == 1 else sums
            case _:
                return None

    def chunks(self) -> Iterator[Chunk]:
        """Multiply the kernels out, some tiles of some kernels at a time."""
        for entries in slabs(self.layout):
            for kernels in kernel_groups(self.n_kernels, entries.stop - entries.start):
                indices = np.arange(kernels.start, kernels.stop)
                yield Chunk(kernels, entries, self._entries(indices, entries))

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Multiply kernels out, one at a time."""
        whole = slice(0, self.layout.n_entries)
        for position in range(len(kernels)):
            entries = self._entries(kernels[position : position + 1], whole)
            yield Rows(np.array([position]), np.zeros(1, dtype=np.intp), entries)

    def diagonals(self) -> Iterator[DiagonalPart]:
        """Return the diagonals, which are kept."""
        found = np.stack([factor.diagonal for factor in self.factors])
        if self.exact is not None:
            found += np.stack([self._rest(kernel) for kernel in range(self.n_kernels)])
        yield DiagonalPart(slice(0, self.n_kernels), slice(0, self.n_points), found)

    def forms_of_rests(self, vectors: Floats) -> Floats:
        """Return the parts of quadratic forms that are due to diagonals, (M, R).

        Parameters
        ----------
        vectors : (n, R) float64
            The vectors.
        """
        squares = vectors**2
        return np.stack([self._rest(kernel) @ squares for kernel in range(self.n_kernels)])

    def _quadratic(self, vectors: Floats, kernels: Sequence[int]) -> Floats:
        """Return ``||G_m'v||^2``."""
        found = np.empty((len(kernels), *vectors.shape[1:]))
        for place, kernel in enumerate(kernels):
            found[place] = self.products.squares(self.factors[kernel].thin, vectors)
            if self.exact is not None:
                found[place] += self._rest(kernel) @ vectors**2
        return found

    def _products(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``G_m (G_m'v)``."""
        self._prefer(kernels)
        found, one = np.empty((len(kernels), *vectors.shape)), np.ones(1)
        for product, kernel in zip(found, kernels.tolist(), strict=True):
            product[...] = self.products.times([self.factors[kernel].thin], one, vectors)
            if self.exact is not None:
                product += (self._rest(kernel) * vectors.T).T
        return found

    def _sum(self, weights: Floats, kernels: Ints | None) -> FactoredMatrix:
        """Return the operator of a combination, of its kernels of non-zero weight."""
        kept = np.flatnonzero(weights)
        chosen = kept if kernels is None else kernels[kept]
        self._prefer(chosen)
        factors = [self.factors[kernel].thin for kernel in chosen.tolist()]
        ridge: float | Floats = 0.0
        if self.exact is not None:
            rests = (self._rest(kernel) for kernel in chosen.tolist())
            none = np.zeros(self.n_points)
            ridge = sum((w * r for w, r in zip(weights[kept], rests, strict=True)), none)
        own = [self.factors[kernel].diagonal for kernel in chosen.tolist()]
        diagonals = np.array(own).reshape(len(chosen), self.n_points)
        return FactoredMatrix(
            weights[kept], factors, diagonals, self.n_points, ridge, self.products
        )

    def _prefer(self, kernels: Ints) -> None:
        """Let the factors of some kernels stay in memory: solvers come back to them."""
        if self.shelf is not None:
            self.shelf.prefer([self.factors[kernel] for kernel in kernels.tolist()])

    def _rest(self, kernel: int) -> Floats:
        """Return what is added to the diagonal of the product of a factor, (n,)."""
        if self.exact is None:
            return np.zeros(self.n_points)
        lacking = np.maximum(self.exact[kernel] - self.factors[kernel].diagonal, 0.0)
        return np.asarray(self.times[kernel] * lacking)

    def _entries(self, kernels: Ints, entries: slice) -> Floating:
        """Return entries of some kernels, (k, e), the padding zero."""
        layout = self.layout
        tiles = slice(entries.start // layout.tile_entries, entries.stop // layout.tile_entries)
        places = [index[tiles].tolist() for index in layout.coordinates]
        values = np.zeros((len(kernels), len(places[0]), layout.tile, layout.tile))
        for of_kernel, kernel in zip(values, kernels.tolist(), strict=True):
            factor = self.factors[kernel].values
            for tile, i, j in zip(of_kernel, *places, strict=True):
                product = factor[layout.rows_of(i)] @ factor[layout.rows_of(j)].T
                if self.exact is not None and i == j:
                    product += np.diag(self._rest(kernel)[layout.rows_of(i)])
                tile[: product.shape[0], : product.shape[1]] = product
        return values.reshape(len(kernels), -1)


class _Rows:
    """A factor on some of the points: a :class:`~mkldist.optim.pivoted_cholesky.ThinFactor`.

    Its rows of pivots are not triangular, so that it has no coefficients of pivots.
    """

    def __init__(self, factor: ThinFactor, points: Ints) -> None:
        self.thin = factor.on(points)
        self.pivots, self.left, self.rank = factor.pivots, factor.left, factor.rank
        self.diagonal = factor.diagonal[points]

    @property
    def values(self) -> Floats:
        return values_of(self.thin)

    def in_memory(self) -> PivotedFactor:
        return PivotedFactor(self.values, self.pivots, self.left)

    def on(self, points: Ints) -> Thin:
        return self.values[points]

    def on_pivots(self, coefficients: Floats) -> Floats:
        raise ValueError("found a factor on some of the points; expected one on all")


def factorised(
    source: BankSource,
    kernel: int,
    *,
    rank: int,
    seed: int,
    tolerance: float = 0.0,
    number: int | None = None,
    begun: PivotedFactor | None = None,
    kept: KeptPieces | None = None,
    dtype: str = "float64",
) -> PivotedFactor:
    """Return the factor of one kernel of a source.

    Parameters
    ----------
    source : BankSource
        Source of the values.
    kernel : int
        Index of the kernel.
    rank : int
        Most columns.
    seed : int
        Seed of the pivots, which differ from kernel to kernel.
    tolerance : float
        Share of the trace that may be left.
    number : int, optional
        Number of the kernel by which its pivots differ, where the source has some of the kernels of
        another.
    begun : PivotedFactor, optional
        Factor of this kernel that is to have more columns.
    kept, dtype
        See :func:`mkldist.optim.pivoted_cholesky.pivoted_cholesky`.

    Raises
    ------
    mkldist.errors.GramError
        If the kernel has values that are not finite, or too large for `dtype`.
    """

    def between(rows: Ints, columns: Ints | slice) -> Floats:
        values = source.between(kernel, rows, columns)
        check_finite(values.reshape(1, -1), kernel, source)
        return values

    diagonal = source.diagonals(slice(kernel, kernel + 1))
    check_finite(diagonal, kernel, source)
    largest = float(np.sqrt(diagonal.max(initial=0.0)))  # of the factor
    if largest > float(np.finfo(dtype).max):
        raise GramError(
            source.name(kernel),
            f"a diagonal of up to {largest**2:.2g}",
            f"entries of a factor of at most {np.finfo(dtype).max:.2g}, the largest {dtype}",
            "Scale the features, or choose float64",
        )
    return pivoted_cholesky(
        diagonal[0],
        between,
        rank=rank,
        tolerance=tolerance,
        seed=(seed, kernel if number is None else number),
        begun=begun,
        kept=kept,
        dtype=dtype,
    )
