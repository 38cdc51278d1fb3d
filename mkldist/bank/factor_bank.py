"""A bank of thin factors: every kernel is ``G G'`` with G (n, r), and only G is stored.

The factors are those of :mod:`mkldist.optim.pivoted_cholesky`.  Each kernel of the bank therefore
lies below the kernel that it stands for, ``G G' <= K``, so that every optimum over the bank is an
upper bound of that over the kernels themselves.  Memory and passes grow with n and not with n².

A narrow kernel is near its diagonal, which no thin factor has.  A bank that is given the diagonals
of the kernels adds what the factors lack of them, or a multiple: ``G G' + w diag(K - G G')``.  It
then lies neither below nor above the kernel.  Nor does one whose factors are rounded to float32.

Memory need not hold all factors; a file has the others.  Every answer takes the factors one after
the other, and those of an operator are read again whenever it multiplies.  Whoever reads a factor
from the file gets a copy, which is freed when it is no longer used.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import (
    Answer,
    Bank,
    Chunk,
    DiagonalPart,
    Rows,
    TileLayout,
    kernel_groups,
    slabs,
)
from mkldist.bank.requests import Combine, Matvec, Quadratic, Request
from mkldist.bank.sources import BankSource, check_finite
from mkldist.core.arrays import Floating, Floats, Ints
from mkldist.core.checksums import crc32c
from mkldist.core.durable import make_folder, output_error
from mkldist.errors import GramError
from mkldist.optim.factored_matrix import (
    ON_HOST,
    FactoredMatrix,
    RowsOf,
    Thin,
    ThinProducts,
    values_of,
)
from mkldist.optim.pivoted_cholesky import PieceCache, PivotedFactor, ThinFactor, pivoted_cholesky


class FileRegions:
    """Places of a file, each taken where it fits first."""

    def __init__(self) -> None:
        self.end = 0
        self._free: list[tuple[int, int]] = []  # offset and bytes, ascending, none touching another

    def take(self, n_bytes: int) -> int:
        """Return the offset of a region of some bytes."""
        for i, (offset, free) in enumerate(self._free):
            if free >= n_bytes:
                rest = [(offset + n_bytes, free - n_bytes)] if free > n_bytes else []
                self._free[i : i + 1] = rest
                return offset
        offset, self.end = self.end, self.end + n_bytes
        return offset

    def free(self, offset: int, n_bytes: int) -> None:
        """Give a region back."""
        i = bisect_left(self._free, (offset, 0))
        first, last = i, i
        stop = offset + n_bytes
        if i and sum(self._free[i - 1]) == offset:
            first, offset = i - 1, self._free[i - 1][0]
        if i < len(self._free) and self._free[i][0] == stop:
            last, stop = i + 1, sum(self._free[i])
        if stop == self.end:
            self.end, self._free[first:last] = offset, []
        elif stop > offset:
            self._free[first:last] = [(offset, stop - offset)]


AT_HAND = 2  # copies beside the factors that stay: one in use while the next one is read
HALF_AT_HAND = 1  # of one in float32 that is read, beside its copies in float64


@dataclass(eq=False)
class _Place:
    """Where the values of a factor are: in memory, at a place of the file, or both."""

    shape: tuple[int, int]
    n_bytes: int
    preferred: int = 0  # when it was, by counting
    values: Floating | None = None  # in memory
    offset: int | None = None
    checksum: bytes = b""  # of the values in the file


@dataclass(frozen=True, eq=False)
class CachedFactor:
    """A factor in a cache, which forgets it when nobody has this any more."""

    pivots: Ints  # (r,) in order
    left: float  # share of the trace that the factor lacks
    diagonal: Floats  # (n,) of ``G G'``
    cache: FactorCache
    place: _Place

    @property
    def rank(self) -> int:
        """Number r of columns."""
        return len(self.pivots)

    @property
    def shape(self) -> tuple[int, int]:
        """Points and columns."""
        return len(self.diagonal), self.rank

    @property
    def values(self) -> Floats:
        """The factor G (n, r), C-contiguous, in memory as long as somebody has it."""
        return self.cache.values(self.place)

    @property
    def thin(self) -> Thin:
        """The factor as a part of an operator, which asks for the values when it needs them."""
        return self

    def on(self, points: Ints) -> Thin:
        """Return the rows of some points, a copy where memory holds all factors."""
        return self.values[points] if self.cache.holds_all else RowsOf(self, points)

    def in_memory(self) -> PivotedFactor:
        """Return the factor with its values."""
        return PivotedFactor(self.values, self.pivots, self.left)

    def on_pivots(self, coefficients: Floats) -> Floats:
        """See :meth:`mkldist.optim.pivoted_cholesky.PivotedFactor.on_pivots`."""
        return self.in_memory().on_pivots(coefficients)


class FactorCache:
    """Values of factors, in memory as far as it allows and else in a file.

    `n_bytes`: bytes of memory, those at hand included; None without a limit.  A single factor is at
    hand even if it exceeds them. `folder`: folder of the file, made when it is needed; by default
    that for temporary files. `dtype`: type in which factors are kept, which must have their values.
    `n_read`, `n_written`: factors that were read from the file, and written to it.
    """

    def __init__(
        self, n_bytes: int | None = None, folder: Path | None = None, dtype: str = "float64"
    ) -> None:
        self.n_bytes, self.dtype, self._folder = n_bytes, np.dtype(dtype), folder
        self.n_read = self.n_written = 0
        self._lock = threading.Lock()
        self._places: dict[_Place, None] = {}  # in order
        self._gone: deque[_Place] = deque()
        self._preferences = self._reserved = 0
        self._total = self._cached = self._largest = 0  # bytes
        self._file: IO[bytes] | None = None
        self._regions = FileRegions()

    @property
    def cached_bytes(self) -> int:
        """Bytes of the factors that stay in memory."""
        return self._cached

    @property
    def holds_all(self) -> bool:
        """True if memory holds all factors."""
        return self._capacity is None or self._total <= self._capacity

    def put(self, factor: PivotedFactor, *, preferred: bool = False) -> CachedFactor:
        """Take a factor, `preferred` if it will be read sooner than those that are there."""
        with self._used():
            self._preferences += preferred
            values = factor.values.astype(self.dtype, copy=False)
            order = self._preferences if preferred else 0
            place = _Place(factor.values.shape, values.nbytes, order)
            self._total += place.n_bytes
            self._largest = max(self._largest, place.n_bytes)
            try:
                self._make_room(0)  # for what is at hand
                self._keep(place, values)
                if place.values is None:
                    self._write(place, values)
            except BaseException:
                self._total -= place.n_bytes
                raise
            self._places[place] = None
        cached = CachedFactor(factor.pivots, factor.left, factor.diagonal, self, place)
        weakref.finalize(cached, self._forget, place).atexit = False
        return cached

    def prefer(self, factors: Iterable[ThinFactor]) -> None:
        """Let some factors stay in memory rather than others."""
        with self._used():
            self._preferences += 1
            for factor in factors:
                if isinstance(factor, CachedFactor) and factor.cache is self:
                    factor.place.preferred = self._preferences

    def values(self, place: _Place) -> Floats:
        """Return the values of a factor, in float64."""
        with self._used():
            values = place.values
            if values is None:
                values = self._read(place)
                self._keep(place, values)
        return values.astype(np.float64, copy=False)

    @contextmanager
    def leaving(self, n_bytes: int) -> Iterator[None]:
        """Leave some of the memory to others while a context lasts."""
        with self._used():
            self._reserved += n_bytes
            self._make_room(0)
        try:
            yield
        finally:
            with self._used():
                self._reserved -= n_bytes

    @property
    def _capacity(self) -> int | None:
        """Bytes of factors that may stay: less what is at hand where not all of them do."""
        if self.n_bytes is None:
            return None
        capacity = max(self.n_bytes - self._reserved, 0)
        if self.dtype == np.float64:
            at_hand = AT_HAND * self._largest if self._total > capacity else 0
        else:
            at_hand = (2 * AT_HAND + HALF_AT_HAND) * self._largest
        return max(capacity - at_hand, 0)

    @contextmanager
    def _used(self) -> Iterator[None]:
        """Hold the lock, and forget the factors that are gone."""
        with self._lock:
            self._sweep()
            yield

    def _sweep(self) -> None:
        while self._gone:
            place = self._gone.popleft()
            del self._places[place]
            self._total -= place.n_bytes
            self._cached -= place.n_bytes if place.values is not None else 0
            if place.offset is not None:
                self._regions.free(place.offset, place.n_bytes)
                os.ftruncate(self._opened().fileno(), self._regions.end)

    def _forget(self, place: _Place) -> None:
        """Forget a factor, now or, as garbage may be collected at any time, with the next use."""
        self._gone.append(place)
        if self._lock.acquire(blocking=False):
            try:
                self._sweep()
            finally:
                self._lock.release()

    def _keep(self, place: _Place, values: Floating) -> None:
        """Keep a factor in memory if those that stay leave room for it."""
        if self._make_room(place.n_bytes, place.preferred):
            place.values, self._cached = values, self._cached + place.n_bytes

    def _make_room(self, n_bytes: int, preferred: int | None = None) -> bool:
        """Drop factors until some bytes fit; return False, and drop none, if they cannot.

        Factors that were preferred as late stay, unless None is given.
        """
        capacity = self._capacity
        excess = 0 if capacity is None else self._cached + n_bytes - capacity
        if excess <= 0 or preferred == 0:
            return excess <= 0
        stay = [one for one in self._places if one.values is not None]
        may_go = [one for one in stay if preferred is None or one.preferred < preferred]
        if excess > sum(one.n_bytes for one in may_go):
            return False
        for one in sorted(may_go, key=lambda one: one.preferred):
            if excess <= 0:
                break
            self._drop(one)
            excess -= one.n_bytes
        return True

    def _drop(self, place: _Place) -> None:
        """Drop a factor from memory, once the file has it."""
        if place.offset is None and place.values is not None:
            self._write(place, place.values)
        place.values, self._cached = None, self._cached - place.n_bytes

    def _write(self, place: _Place, values: Floating) -> None:
        offset = self._regions.take(place.n_bytes)
        data = _as_bytes(values).data
        try:
            file, done = self._opened().fileno(), 0
            while done < place.n_bytes:
                done += os.pwrite(file, data[done:], offset + done)
        except OSError as error:
            self._regions.free(offset, place.n_bytes)
            raise output_error(str(self._folder or tempfile.gettempdir()), error) from error
        place.offset, place.checksum = offset, crc32c([_as_bytes(values)])
        self.n_written += 1

    def _read(self, place: _Place) -> Floating:
        values, done = np.empty(place.shape, self.dtype), 0
        data = _as_bytes(values).data
        try:
            while done < place.n_bytes and place.offset is not None:
                n = os.preadv(self._opened().fileno(), [data[done:]], place.offset + done)
                if not n:
                    raise OSError(0, "it is cut short")
                done += n
            if crc32c([_as_bytes(values)]) != place.checksum:
                raise OSError(0, "it reads back damaged")
        except OSError as error:
            raise output_error(str(self._folder or tempfile.gettempdir()), error) from error
        self.n_read += 1
        return values

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            if self._folder is not None:
                make_folder(self._folder, durable=False)
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        return self._file


def _as_bytes(values: Floating) -> npt.NDArray[np.uint8]:
    """Return the bytes of an array."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


FEW_VALUES = 2**16  # of a factor: to call a product takes longer than to multiply them
MOST_VALUES = 2**22  # of factors that are copied next to each other


class FactorBank(Bank):
    """Kernels ``G_m G_m'`` by their factors.

    Quadratic forms and products of kernels take two thin products.  A :class:`Combine` that takes
    an operator is answered by one.  All other requests are answered from entries that are
    multiplied out tile by tile, as of any bank.

    `factors`: the M factors, each of n rows. `exact` (M, n): diagonals of the kernels, of which
    what the factors lack is added to them. `times` (M,): factors w by which that is multiplied; by
    default 1. `cache`: who has the values of factors that are not in memory, and is told which are
    in use.
    """

    def __init__(
        self,
        factors: Sequence[ThinFactor],
        exact: Floats | None = None,
        times: Floats | None = None,
        cache: FactorCache | None = None,
        products: ThinProducts = ON_HOST,
    ) -> None:
        layout = TileLayout.for_points(len(factors[0].diagonal))
        super().__init__(len(factors), layout, np.dtype(np.float64))
        self.factors = tuple(factors)
        self.cache, self.products = cache, products
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
        return np.dtype(np.float64) if self.cache is None else self.cache.dtype

    @property
    def lies_below(self) -> bool:
        """True if ``G G' <= K`` holds, but for rounding to float64."""
        return self.exact is None and self.kept_type == np.float64

    def select(self, kernels: Ints) -> FactorBank:
        """Return a bank of some kernels, in any order, that shares their factors."""
        exact = None if self.exact is None else self.exact[kernels]
        factors = [self.factors[kernel] for kernel in kernels.tolist()]
        return FactorBank(factors, exact, self.times[kernels], self.cache, self.products)

    def copy(self) -> FactorBank:
        """Return a bank of the same factors, of which others may take the place."""
        return FactorBank(self.factors, self.exact, self.times, self.cache, self.products)

    def on(self, points: Ints) -> FactorBank:
        """Return a bank of the same kernels between some of the points, for few requests."""
        exact = None if self.exact is None else self.exact[:, points]
        factors = [_Rows(factor, points) for factor in self.factors]
        return FactorBank(factors, exact, self.times)

    def put(self, kernel: int, factor: ThinFactor) -> None:
        """Replace the factor of a kernel by another of it."""
        before, after = self.factors[:kernel], self.factors[kernel + 1 :]
        self.factors = (*before, factor, *after)
        for name in ("_columns", "_ends", "_thin"):  # made of the old one
            vars(self).pop(name, None)

    @cached_property
    def _columns(self) -> Floats | None:
        """All factors next to each other, (n, R), if they are few values on the host.

        One product with all of them takes less time than one with each.
        """
        most = 8 * min(FEW_VALUES * self.n_kernels, MOST_VALUES)
        if self.cache is not None and self.cache.n_bytes is not None:
            most = min(most, self.cache.n_bytes // 2) if self.cache.holds_all else 0
        on_host = self.products.device is None and self.kept_type == np.float64
        if self.n_bytes > most or not on_host:
            return None
        return np.concatenate([factor.values for factor in self.factors], axis=1)

    @cached_property
    def _ends(self) -> Ints:
        """Where the columns of each factor end, among all, (M,)."""
        return np.cumsum([factor.rank for factor in self.factors], dtype=np.intp)

    @cached_property
    def _thin(self) -> Sequence[Thin]:
        """The factors as parts of operators: those next to each other if there are such."""
        if self._columns is None:
            return [factor.thin for factor in self.factors]
        return np.split(self._columns, self._ends[:-1], axis=1)

    def own_answer(self, request: Request) -> Answer | None:
        """Answer a request by thin products; return None for one that needs entries."""
        match request:
            case Quadratic(vectors, None):
                self.counter.passes += 1
                return self._quadratic(vectors, np.arange(self.n_kernels))
            case Quadratic(vectors, np.ndarray() as kernels):
                self.counter.matvecs += len(kernels)
                return self._quadratic(vectors, kernels)
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
        """Return the parts of quadratic forms of `vectors` (n, R) due to diagonals, (M, R)."""
        squares = vectors**2
        return np.stack([self._rest(kernel) @ squares for kernel in range(self.n_kernels)])

    def _quadratic(self, vectors: Floats, kernels: Ints) -> Floats:
        """Return ``||G_m'v||^2``."""
        found, columns = np.zeros((self.n_kernels, *vectors.shape[1:])), self._columns
        if columns is not None and columns.size <= FEW_VALUES * len(kernels):
            starts = np.r_[0, self._ends[:-1]]
            some = self._ends > starts
            found[some] = np.add.reduceat((columns.T @ vectors) ** 2, starts[some], axis=0)
        else:
            for kernel in kernels.tolist():
                found[kernel] = self.products.squares(self._thin[kernel], vectors)
        found = found[kernels]
        if self.exact is not None:
            rests = (self._rest(kernel) @ vectors**2 for kernel in kernels.tolist())
            found += np.array(list(rests)).reshape(found.shape)
        return found

    def _products(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``G_m (G_m'v)``."""
        self._prefer(kernels)
        found, one = np.empty((len(kernels), *vectors.shape)), np.ones(1)
        for product, kernel in zip(found, kernels.tolist(), strict=True):
            product[...] = self.products.times([self._thin[kernel]], one, vectors)
            if self.exact is not None:
                product += (self._rest(kernel) * vectors.T).T
        return found

    def _sum(self, weights: Floats, kernels: Ints | None) -> FactoredMatrix:
        """Return the operator of a combination, of its kernels of non-zero weight."""
        kept = np.flatnonzero(weights)
        chosen = kept if kernels is None else kernels[kept]
        self._prefer(chosen)
        factors = [self._thin[kernel] for kernel in chosen.tolist()]
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
        if self.cache is not None:
            self.cache.prefer([self.factors[kernel] for kernel in kernels.tolist()])

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
    kept: PieceCache | None = None,
    dtype: str = "float64",
) -> PivotedFactor:
    """Return the factor of one kernel, which may leave the share `tolerance` of its trace."""

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
