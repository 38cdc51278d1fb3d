"""Kernels beside a bank of thin factors of them, which grow where they are too short.

The factors of all kernels begin with few columns.  What solvers find on them says which kernels
need more: only the factors of these go on.

What factors lack of their kernels at some vectors is computed, or estimated from samples of the
points: the diagonal of ``R = K - G G'``, where a narrow kernel has all of it, exactly, and for two
points i, j drawn with probabilities ``p_i`` in proportion to |v_i|, and counted where they differ,

    v_i R_ij v_j / (p_i p_j)    estimates    sum_{i != j} v_i R_ij v_j    without bias.

So does its mean over all pairs of different draws of a group, whose kernel values are those of the
group's points alone.  Several groups tell the error of the mean over them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mkldist.bank.bank import PassCounter
from mkldist.bank.build import StoredPieces
from mkldist.bank.factor_bank import FactorBank, FactorCache, factorised
from mkldist.bank.recomputed import PointBank, RecomputedBank, has_point_products, point_products
from mkldist.bank.requests import Diagonal, Quadratic, Request
from mkldist.bank.sources import BankSource, SelectedSource, check_finite, passes_of
from mkldist.bank.store import BankStore
from mkldist.bank.view import BankView, answer_views, make_views, takes_pass
from mkldist.core.arrays import Floats, Ints
from mkldist.core.threads import single_threaded
from mkldist.optim.factored_matrix import ON_HOST, ThinProducts
from mkldist.optim.pivoted_cholesky import PIECE, ThinFactor, factor_bytes

VARIANCE_POINTS = 5000  # that a variance takes at most
VALUES = 2**22  # kernel values that a thread has at once


def expansion(
    source: BankSource,
    weights: Floats,
    vectors: Floats,
    counter: PassCounter,
    threads: int,
    rows: Ints | None = None,
) -> Floats:
    """Return some rows of ``sum_m w_m K_m V``, (r, R).

    `weights` (M,): weights of the kernels; those of weight zero are not computed. `vectors` (n, R):
    V; no values are computed for its rows of zeros. `rows` (r,): the rows; None for all.
    """
    used, kernels = np.flatnonzero(vectors.any(axis=1)), np.flatnonzero(weights)
    asked = np.arange(len(vectors)) if rows is None else rows
    whole = point_products(source, counter, threads)
    if whole is not None:
        return whole.expansion(kernels, weights[kernels], vectors, asked)
    n, of_used = len(asked), vectors[used]
    found = np.zeros((n, vectors.shape[1]))
    step = max(1, VALUES // max(len(used), 1))

    def work(start: int) -> float:
        begun = time.thread_time()
        part = slice(start, start + step)
        for kernel in kernels.tolist():
            values = source.between(kernel, asked[part], used)
            check_finite(values.reshape(1, -1), kernel, source)
            found[part] += weights[kernel] * (values @ of_used)
        return time.thread_time() - begun

    with single_threaded(), ThreadPoolExecutor(threads, "mkldist-expansions") as pool:
        seconds = sum(pool.map(work, range(0, n if len(used) else 0, step)))
    counter.bytes_computed += 8 * len(kernels) * len(used) * n
    counter.threads_cpu_seconds += seconds
    return found


FIRST_RANK = 100  # columns of a factor before any solution asks for more
LEAST_GROWTH, MOST_GROWTH = 1.5, 4.0  # of ranks from one solution to the next
MANY = 5000  # points from which on factors take diagonals rather than so many columns
MOST_CHANGES = 3  # of diagonals, before ranks grow after all
TOLERANCE = 1e-3
IN_MAKING = 3  # times the memory of a factor in the making, with that which it replaces
PASS_VALUES = 2e12  # about an hour of one processor


@dataclass(frozen=True)
class FactorLimits:
    """Limits of the factors of a bank."""

    rank: int | None = None  # most columns of a factor; by default as many as there are points
    tolerance: float = TOLERANCE
    """Share of a kernel's trace that its factor may lack before any solution asks for more."""
    n_bytes: int | None = None  # most in memory, None without a limit; others lie in a file
    pass_values: float = PASS_VALUES
    """Most kernel values that a pass over all kernels may compute for a certificate; where there
    are more, the certificate takes a sample."""

    @classmethod
    def of(cls, rank: int | None, tolerance: float | None) -> FactorLimits:
        """Return the limits of a bank's settings, None for the defaults."""
        return cls(rank, TOLERANCE if tolerance is None else tolerance)

    def most(self, n_points: int) -> int:
        """Return the most columns of a factor of n rows."""
        return n_points if self.rank is None else min(self.rank, n_points)

    def first(self, n_points: int) -> int:
        """Return the most columns with which a factor of n rows begins."""
        return min(FIRST_RANK, self.most(n_points))


def least_bytes(n_points: int, limits: FactorLimits) -> int:
    """Return the bytes in which the first factor of a kernel can be made, on one thread."""
    return factor_bytes(n_points, IN_MAKING * limits.first(n_points) + 2 * PIECE)


@dataclass(frozen=True, eq=False)
class FactoredKernels:
    """Kernels, and factors of them."""

    source: BankSource
    scale: Floats  # (M,), by which each kernel is normalised
    factors: FactorBank  # of the kernels as the source has them
    limits: FactorLimits
    numbers: Ints  # (M,) of the kernels among all those of a store, by which their pivots differ
    seed: int = 0
    threads: int = 1  # kernels that are factorised, or parts of a pass computed, at the same time
    store: BankStore | None = None  # which has what the factors lack here, or takes it
    counter: PassCounter = field(default_factory=PassCounter)  # of passes over the kernels

    @property
    def view(self) -> BankView:
        """The factors as solvers see them."""
        return BankView(self.factors, None, self.scale, centred=False)

    def views(
        self,
        indices: Sequence[Ints | None],
        normalisations: Sequence[str],
        weights: Floats | None = None,
    ) -> list[BankView]:
        """Return views of the factors, each kernel normalised as it would be itself.

        A pass over many points would take longer than a solver does.  Variances over more than
        5,000 points are therefore those of 5,000 of them, which the seed draws.

        `indices`: points of each view; None for all points. `weights`: as for :func:`make_views`.
        """
        if takes_pass(normalisations) and self.source.n_points > VARIANCE_POINTS:
            scales = [self._drawn_scale(one, normalisations[-1:], weights) for one in indices]
        else:
            scales = self._scales(self.source, indices, normalisations, weights)
        return [
            BankView(self.factors, index, scale, centred=False)
            for index, scale in zip(indices, scales, strict=True)
        ]

    def _drawn_scale(
        self, index: Ints | None, normalisations: Sequence[str], weights: Floats | None
    ) -> Floats:
        """Return the factors on some points by as many of them as a variance takes."""
        drawn = np.arange(self.source.n_points) if index is None else index
        if len(drawn) > VARIANCE_POINTS and takes_pass(normalisations):
            rng = np.random.default_rng(self.seed)
            drawn = np.sort(rng.choice(drawn, VARIANCE_POINTS, replace=False))
        own = None if weights is None else weights[drawn]
        [scale] = self._scales(self.source.at(drawn), [None], normalisations, own)
        return scale

    def _scales(
        self,
        source: BankSource,
        indices: Sequence[Ints | None],
        normalisations: Sequence[str],
        weights: Floats | None,
    ) -> list[Floats]:
        """Return the factors of the kernels themselves on each set of points."""
        kind = PointBank if self.by_points else RecomputedBank
        bank = kind(source, threads=self.threads)
        found = make_views(bank, indices, normalisations, None, source.presence, weights)
        return [view.scale for view in found]

    def select(self, kernels: Ints) -> FactoredKernels:
        """Return some of the kernels, whose factors are shared until they are made longer."""
        return replace(
            self,
            source=SelectedSource(self.source, kernels),
            scale=self.scale[kernels],
            factors=self.factors.select(kernels),
            numbers=self.numbers[kernels],
        )

    def exactly(self, request: Request) -> Floats:
        """Answer a request by the kernels themselves, computed in one pass at most.

        Quadratic forms take their values between the points alone where vectors are not zero.
        """
        source = self.source
        if isinstance(request, Quadratic):
            used = np.flatnonzero(request.vectors.reshape(source.n_points, -1).any(axis=1))
            if 0 < len(used) < source.n_points:
                source = source.at(used)
                request = replace(request, vectors=request.vectors[used])
        fast = isinstance(request, Quadratic) and self.by_points
        bank = (PointBank if fast else RecomputedBank)(source, threads=self.threads)
        [found] = answer_views([(BankView(bank, None, self.scale, centred=False), request)])
        self.counter.bytes_computed += bank.counter.bytes_computed
        self.counter.threads_cpu_seconds += bank.counter.threads_cpu_seconds
        return found

    @property
    def by_points(self) -> bool:
        """True if loops or a device compute products of the kernels from the points."""
        return has_point_products(self.source)

    def copy(self) -> FactoredKernels:
        """Return the same kernels and factors, which grow by themselves."""
        return replace(self, factors=self.factors.copy())

    def with_diagonals(self, times: Floats) -> FactoredKernels:
        """Return the same kernels, with factors to which what they lack of diagonals is added.

        `times` (M,): factors by which what they lack is multiplied.
        """
        exact = self.factors.exact
        if exact is None:
            exact = self.source.diagonals(slice(0, self.source.n_kernels))
        own = self.factors
        return replace(self, factors=FactorBank(own.factors, exact, times, own.cache, own.products))

    def expansion(self, weights: Floats, vectors: Floats, rows: Ints | None = None) -> Floats:
        """Return ``sum_m w_m K_m V`` with the kernels themselves, (n, R), or some rows of it.

        `weights` (M,): weights of the kernels. `vectors` (n, R): V; kernel values are computed
        where it is not zero. `rows` (r,): the rows; None for all.
        """
        return expansion(
            self.source, weights * self.scale, vectors, self.counter, self.threads, rows
        )

    def lacking(self, kernels: Ints, vectors: Floats) -> Floats:
        """Return ``v'(K_m - G_m G_m')v`` of some kernels by a pass over these, (S,) or (S, R).

        `kernels` (S,): the kernels. `vectors` (n,) or (n, R): the vectors v.
        """
        part = self.select(kernels)
        [found] = answer_views([(part.view, Quadratic(vectors))])
        return part.exactly(Quadratic(vectors)) - found

    def lengthen(self, ranks: Mapping[int, int]) -> list[int]:
        """Make factors longer as far as the limits allow; return the kernels whose rank rose.

        The bank keeps its place, so that views of it have the longer factors.  No solver may be at
        work on it.
        """
        bank, before = self.factors, [factor.rank for factor in self.factors.factors]
        most = min(self.limits.most(self.source.n_points), self._most_in_memory)
        numbers = self.numbers.tolist()
        longer = [
            _Wanted(m, numbers[m], min(rank, most), 0.0)
            for m, rank in ranks.items()
            if min(rank, most) > before[m]
        ]
        made = _made(self.source, longer, self.seed, self.threads, self.store, bank.cache, bank)
        for wanted, factor in zip(longer, made, strict=True):
            bank.put(wanted.kernel, factor)  # which gives the memory of the shorter one back
        return [one.kernel for one in longer if bank.factors[one.kernel].rank > before[one.kernel]]

    def limit_on(self, kernels: Iterable[int]) -> str:
        """Return what keeps the factors of some kernels from more columns.

        It is ``"rank"`` or ``"memory"``, or ``"rounding"`` where a factor is its kernel already.
        """
        least = min(self.factors.factors[m].rank for m in kernels)
        if least >= self.limits.most(self.source.n_points):
            return "rank"
        return "memory" if least >= self._most_in_memory else "rounding"

    @property
    def _most_in_memory(self) -> int:
        """Most columns of a factor that memory holds while it is made."""
        n = self.source.n_points
        if self.limits.n_bytes is None:
            return n
        columns = self.limits.n_bytes // factor_bytes(n, 1) - 2 * PIECE * (self.store is not None)
        return max(columns, 0) // IN_MAKING


def begin_factors(
    source: BankSource,
    limits: FactorLimits,
    seed: int = 0,
    threads: int = 1,
    store: BankStore | None = None,
    folder: Path | None = None,
    dtype: str = "float64",
) -> FactoredKernels:
    """Factorise all kernels of a source as they are, to few columns each.

    `folder`: folder of this machine for the factors that memory does not hold, made when it is
    needed; by default that for temporary files. `dtype`: precision to which factors are rounded,
    that of the store if there is one.
    """
    as_they_are = limits.n_bytes is None and dtype == "float64"
    cache = None if as_they_are else FactorCache(limits.n_bytes, folder, dtype)
    first = limits.first(source.n_points)
    numbers = np.arange(source.n_kernels)
    wanted = [_Wanted(m, m, first, limits.tolerance) for m in numbers.tolist()]
    made = list(_made(source, wanted, seed, threads, store, cache))
    passes = passes_of(source)
    products = ON_HOST if passes is None else ThinProducts(passes.device)
    factors = FactorBank(made, cache=cache, products=products)
    scale = np.ones(source.n_kernels)
    return FactoredKernels(source, scale, factors, limits, numbers, seed, threads, store)


class _Wanted(NamedTuple):
    """A factor to be made."""

    kernel: int
    number: int
    rank: int
    tolerance: float


def _made(
    source: BankSource,
    wanted: Sequence[_Wanted],
    seed: int,
    threads: int,
    store: BankStore | None,
    cache: FactorCache | None,
    begun: FactorBank | None = None,
) -> Iterator[ThinFactor]:
    """Make factors in order, or take them from the store, several at once as memory allows.

    Those that are begun go on.
    """

    def work(one: _Wanted) -> ThinFactor:
        factor = factorised(
            source,
            one.kernel,
            rank=one.rank,
            seed=seed,
            tolerance=one.tolerance,
            number=one.number,
            begun=None if begun is None else begun.factors[one.kernel].in_memory(),
            kept=None if store is None else StoredPieces(store, one.number),
            dtype="float64" if cache is None else cache.dtype.name,
        )
        return factor if cache is None else cache.put(factor, preferred=begun is not None)

    leaving: AbstractContextManager[None] = nullcontext()
    if cache is not None and cache.n_bytes is not None:
        rank = max((one.rank for one in wanted), default=0)
        each = factor_bytes(source.n_points, IN_MAKING * rank + 2 * PIECE * (store is not None))
        threads = max(1, min(threads, cache.n_bytes // max(each, 1)))
        leaving = cache.leaving(threads * each)
    with (
        single_threaded(),
        leaving,
        ThreadPoolExecutor(threads, thread_name_prefix="mkldist-factors") as pool,
    ):
        yield from pool.map(work, wanted)


DRAWN = 2000  # points of a group
GROUPS = 8


@dataclass(frozen=True, eq=False)
class SampledForms:
    """Estimates of ``v'(K_m - G_m G_m')v``, at least 0, and their standard errors, (S, R)."""

    lacking: Floats
    errors: Floats


def sampled_values(n_drawn: int) -> float:
    """Return the values of a kernel that an estimate computes."""
    return GROUPS * n_drawn**2 / 2


def sampled_forms(
    kernels: FactoredKernels, chosen: Ints, vectors: Floats, n_drawn: int, seed: int
) -> SampledForms:
    """Estimate what the factors of the `chosen` kernels (S,) lack at `vectors` (n, R)."""
    sizes = np.abs(vectors).sum(axis=1)
    if not sizes.any():
        none = np.zeros((len(chosen), vectors.shape[1]))
        return SampledForms(none, none.copy())
    rng, part = np.random.default_rng(seed), kernels.select(chosen)
    energy = Diagonal(vectors**2)
    [thin] = answer_views([(part.view, energy)])
    own = part.exactly(energy) - thin
    found = np.empty((GROUPS, len(chosen), vectors.shape[1]))
    for of_group in found:
        drawn = rng.choice(len(sizes), size=n_drawn, p=sizes / sizes.sum())
        points, times = np.unique(drawn, return_counts=True)
        weighted = vectors[points] * (times * sizes.sum() / (n_drawn * sizes[points]))[:, None]
        of_group[...] = _pairs(part, points, weighted) * (n_drawn / (n_drawn - 1.0))
    errors = found.std(axis=0, ddof=1) / np.sqrt(GROUPS)
    lacking = own + found.mean(axis=0)
    below = kernels.factors.lies_below
    return SampledForms(np.maximum(lacking, 0.0) if below else lacking, errors)


def _pairs(kernels: FactoredKernels, points: Ints, vectors: Floats) -> Floats:
    """Return ``v'R v`` between some points without its diagonal, (S, R)."""
    bank = RecomputedBank(kernels.source.at(points), 0, kernels.threads)
    thin = kernels.factors.on(points)
    with_both = Quadratic(vectors), Diagonal(vectors**2)
    views = [BankView(one, None, kernels.scale, centred=False) for one in (bank, thin)]
    exact, of_exact = answer_views([(views[0], request) for request in with_both])
    found, of_found = answer_views([(views[1], request) for request in with_both])
    kernels.counter.bytes_computed += bank.counter.bytes_computed
    kernels.counter.threads_cpu_seconds += bank.counter.threads_cpu_seconds
    return (exact - of_exact) - (found - of_found)
