"""Views of a bank: some of its points, with every kernel normalised on them, as a split needs it.

A view never changes the bank.  With ``S`` the selection of the view's n points, ``H = I - 1p'``,
where ``p`` are the points' shares of all weights, ``1/n`` without weights, and a factor ``s_m`` per
kernel, the view's kernels are ``s_m S'K_m S`` or ``s_m H S'K_m S H'``.
Requests for either are requests to the bank with other vectors or weights, so that the requests of
different views share a pass (:func:`answer_views`).  If the view has much fewer points than the
bank, requests for few kernels are answered from copies on the view's points.  A view that was
normalised by traces caches them, since many solvers ask for them when they begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkldist.bank.bank import Bank, MemoryBudget, RowCache, Rows, TileLayout
from mkldist.bank.passes import answer, check, needs_pass
from mkldist.bank.products import answer_few
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii, Request
from mkldist.core.arrays import Floating, Floats, Ints
from mkldist.core.checksums import array_id
from mkldist.errors import SpecError, nearest
from mkldist.kernels.evaluate import Presence
from mkldist.optim.factored_matrix import FactoredMatrix

LARGEST_SHARE = 0.7  # of a kernel's entries; a larger copy saves too little


class ViewKernels:
    """Kernels of a bank on some of its points, each copied at its first request.

    `index` (n,): the points. `centred`: True if kernels are centred in feature space on these
    points, of which `shares` are those of the mean. `budget`: memory of the copies, shared with
    other views.
    """

    def __init__(
        self,
        bank: Bank,
        index: Ints,
        *,
        centred: bool,
        budget: MemoryBudget,
        shares: Floats | None = None,
    ) -> None:
        self.counter = bank.counter
        self.layout = TileLayout.for_points(len(index))
        self._bank, self._index, self._centred, self._shares = bank, index, centred, shares
        dtype = np.float64 if centred else bank.dtype
        self._kept = RowCache(self.layout.n_entries, dtype, budget)

    @staticmethod
    def pays(n_points: int, bank: Bank) -> bool:
        """Return True if kernels on so many of a bank's points are much smaller than on all."""
        return n_points**2 <= LARGEST_SHARE * bank.n_points**2

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Return some kernels, some at a time, each position exactly once."""
        yield from self._kept.rows(kernels, self._fetch)

    def _fetch(self, kernels: list[int], rows: list[Floating]) -> None:
        """Read kernels of the bank and keep the part on the view's points."""
        for whole in self._bank.rows(np.array(kernels)):
            for position, line in zip(whole.positions, whole.lines, strict=True):
                matrix = self._bank.layout.submatrix(whole.values[line], self._index)
                if self._centred:
                    matrix = centred_matrices(matrix, self._shares)
                self.layout.pack(matrix, out=rows[position])


def centred_matrices(matrices: Floats, shares: Floats | None = None) -> Floats:
    """Return ``H W H'``, ``H = I - 1p'``, for symmetric (..., n, n) matrices, overwriting them.

    `shares` are p, (n,), of sum 1; by default 1/n.
    """
    means = np.average(matrices, axis=-1, weights=shares)
    overall = np.average(means, axis=-1, weights=shares)[..., None, None]
    matrices -= means[..., None, :]
    matrices -= means[..., :, None]
    matrices += overall
    return matrices


NORMALISATIONS = ("trace", "centre", "variance")


def divisors(normalisations: Sequence[str]) -> list[tuple[str, bool]]:
    """Return each trace or variance in order, with True if it is that of centred kernels."""
    return [
        (name, name == "variance" or "centre" in normalisations[:place])
        for place, name in enumerate(normalisations)
        if name in ("trace", "variance")
    ]


def takes_pass(normalisations: Sequence[str]) -> bool:
    """Return True if a divisor depends on entries off the diagonal."""
    return any(centred for _, centred in divisors(normalisations))


def check_uncentred(normalisations: Sequence[str], where: str) -> None:
    """Refuse to centre the kernels of a bank in which some points lack some kernels."""
    if "centre" in normalisations:
        raise SpecError(
            where,
            "'centre' for kernels that some points lack",
            "'trace', 'variance', 'cosine' or 'none'",
            "'variance' divides by the variance of the points that have a kernel",
        )


@dataclass(frozen=True, eq=False)
class BankView:
    """A bank restricted to some points and normalised there."""

    bank: Bank
    index: Ints | None  # (n,) points of the view, each at most once; None for all in order
    scale: Floats  # (M,), by kernel; 0 for one that vanishes on these points
    centred: bool  # True if the kernels are centred in feature space on these points
    kernels: ViewKernels | None = None  # copies; by default single kernels are read from the bank
    traces: Floats | None = None  # (M,) of the bank's kernels here; by default the bank is asked
    shares: Floats | None = None  # (n,) of the points in the mean; by default equal

    @property
    def id(self) -> str:
        """Content hash of all that tells the view's kernels from those of other views of the bank.

        Views of the same points have the same kernels, up to scale.
        """
        shares = () if self.shares is None else (self.shares,)
        return array_id(self.index, self.scale, np.array(self.centred), *shares)

    @property
    def n_points(self) -> int:
        """Number of points n of the view."""
        return self.bank.n_points if self.index is None else len(self.index)

    @property
    def n_kernels(self) -> int:
        """Number of kernels M."""
        return self.bank.n_kernels

    @classmethod
    def whole(cls, bank: Bank) -> BankView:
        """Return the view of all points, with the kernels as stored."""
        return cls(bank, None, np.ones(bank.n_kernels), centred=False)

    def needs_pass(self, request: Request) -> bool:
        """Return True if a request needs a traversal of the bank."""
        match request:
            case Combine():
                return needs_pass(self.bank, self._scaled(request))
            case Radii(index):
                return needs_pass(self.bank, Radii(self._points(index)))
            case _:
                return needs_pass(self.bank, request)

    def _own_answer(self, request: Request) -> Floats | None:
        """Answer a request for known traces, or for few kernels from copies; else return None."""
        if isinstance(request, Diagonal):
            check(self.n_points, self.n_kernels, request)
            return self._known_traces(request.weights)
        if self.kernels is None:
            return None
        check(self.n_points, self.n_kernels, request)
        match request:
            case Combine() if not self.needs_pass(request):
                return answer_few(self.kernels, self._scaled(request))
            case Matvec(np.ndarray() as kernels, _) | Quadratic(_, np.ndarray() as kernels) if (
                len(kernels) <= self.bank.sparse_limit
            ):
                return (self.scale[kernels] * answer_few(self.kernels, request).T).T
            case _:
                return None

    def _known_traces(self, weights: Floats) -> Floats | None:
        """Return the traces, (M, 1), if they are known and what these weights ask for."""
        if self.traces is None or weights.shape[1] != 1 or (weights != 1.0).any():
            return None
        return (self.scale * self.traces)[:, None]

    def _scaled(self, request: Combine) -> Combine:
        """Return the same combination in terms of the bank's kernels."""
        scale = self.scale if request.kernels is None else self.scale[request.kernels]
        return replace(request, weights=request.weights * scale)

    def _translated(self, request: Request) -> Request:
        """Return the request to the bank; :meth:`_interpreted` converts the bank's answer."""
        match request:
            case Combine():
                return self._scaled(request)
            case Quadratic(vectors, kernels):
                return Quadratic(self._spread(vectors), kernels)
            case Matvec(kernels, vectors):
                return Matvec(kernels, self._spread(vectors))
            case Inner(matrices):
                return Inner(self._spread_matrices(matrices))
            case Radii(index):  # centring does not change distances
                return Radii(self._points(index))
            case Diagonal(weights):
                return Diagonal(self.padded(weights))

    def _interpreted(self, request: Request, bank_answer: Any) -> Any:
        """Return the view's answer to `request` from the bank's answer to the translated one."""
        match request:
            case Combine():
                return self._gathered(bank_answer)
            case Quadratic(_, np.ndarray() as kernels):
                return (self.scale[kernels] * bank_answer.T).T
            case Quadratic() | Inner() | Radii() | Diagonal():
                return (self.scale * bank_answer.T).T
            case Matvec(kernels, _):
                taken = bank_answer if self.index is None else bank_answer[:, self.index]
                if self.centred and taken.size:
                    taken = taken - np.average(taken, axis=1, weights=self.shares, keepdims=True)
                return (self.scale[kernels] * taken.T).T

    def _points(self, index: Ints | None) -> Ints | None:
        """Return the bank's indices of some points of the view."""
        if self.index is None or index is None:
            return index if self.index is None else self.index
        return self.index[index]

    def padded(self, vectors: Floats) -> Floats:
        """Return (n, ...) vectors extended to the bank's points by zeros."""
        if self.index is None:
            return vectors
        padded = np.zeros((self.bank.n_points, *vectors.shape[1:]))
        padded[self.index] = vectors
        return padded

    def _spread(self, vectors: Floats) -> Floats:
        """Centre vectors if the view is centred, and extend them to the bank's points."""
        return self.padded(self.from_centred(vectors) if self.centred else vectors)

    def from_centred(self, vectors: Floats) -> Floats:
        """Return ``H'v`` of vectors (n, ...), which kernels multiply as they do v once centred."""
        found: Floats = vectors - vectors.mean(axis=0)
        if self.shares is not None:
            found = vectors - np.multiply.outer(self.shares, vectors.sum(axis=0))
        return found

    def _spread_matrices(self, matrices: Floats) -> Floats:
        if self.centred and self.shares is None:
            matrices = centred_matrices(matrices.copy())
        elif self.centred:
            matrices = np.array([self.from_centred(self.from_centred(W).T) for W in matrices])
        if self.index is None:
            return matrices
        n = self.bank.n_points
        padded = np.zeros((len(matrices), n, n))
        padded[:, self.index[:, None], self.index] = matrices
        return padded

    def _gathered(self, combined: Any) -> Any:
        """Return combinations on the view's points: matrices, an operator, or a list of these."""
        if isinstance(combined, list):
            return [self._gathered(one) for one in combined]
        if isinstance(combined, FactoredMatrix):  # of kernels that are not centred
            return combined if self.index is None else combined.on(self.index)
        if self.index is not None:
            combined = combined[..., self.index[:, None], self.index]
        return centred_matrices(combined, self.shares) if self.centred else combined


def answer_views(asked: Sequence[tuple[BankView, Request]]) -> list[Floats]:
    """Answer requests of views of one bank; all that need every kernel share one pass."""
    answers = [view._own_answer(request) for view, request in asked]
    left = [place for place, found in enumerate(answers) if found is None]
    if left:
        requests = [view._translated(request) for view, request in map(asked.__getitem__, left)]
        of_bank = answer(asked[0][0].bank, requests)
        of_bank.reverse()
        for place in left:
            view, request = asked[place]
            answers[place] = view._interpreted(request, of_bank.pop())
    return [found for found in answers if found is not None]


def make_views(
    bank: Bank,
    indices: Sequence[Ints | None],
    normalisations: Sequence[str],
    budget: MemoryBudget | None = None,
    presence: Presence | None = None,
    weights: Floats | None = None,
) -> list[BankView]:
    """Return a view for each set of points; the factors of all of them are fitted together.

    Traces are sums over the diagonals, which are read without a pass.  Variances, and traces of
    centred kernels, take one pass.

    Normalisations act in the order given: ``trace`` divides a kernel by its trace, ``centre``
    centres it in feature space, ``variance`` divides it by ``trace / n - mean``, which is the
    variance of the points in feature space.  A kernel whose trace or variance is zero up to
    rounding is given the factor 0.

    A kernel that only p of the n points of a view have is zero at the others.  Its trace becomes
    ``p / n``, so that the mean of k(x, x) over the points that have it is that of other kernels,
    and its variance is that of these points.  Such kernels cannot be centred: the mean of some
    points would then differ from kernel to kernel, and a pass could not combine them.

    `indices`: points of each view, each at most once; None for all points. `presence`: which of the
    N points have which kernels; by default all have all. `weights` (N,): a point of weight 2 counts
    in traces, variances and means as two points.
    """
    for name in normalisations:
        if name not in NORMALISATIONS:
            raise SpecError(
                "normalisation",
                f"'{name}'",
                ", ".join(NORMALISATIONS),
                nearest(name, NORMALISATIONS),
            )
    centred = "centre" in normalisations
    if centred and presence is not None:
        check_uncentred(normalisations, "normalisation")
    views = []
    scales = _scales(bank, indices, normalisations, presence, weights)
    for index, (scale, traces) in zip(indices, scales, strict=True):
        shares, own = None, None
        if centred and weights is not None:
            shares = weights if index is None else weights[index]
            shares = shares / shares.sum()
        if index is not None and budget is not None and ViewKernels.pays(len(index), bank):
            own = ViewKernels(bank, index, centred=centred, budget=budget, shares=shares)
        views.append(BankView(bank, index, scale, centred, own, traces, shares))
    return views


def _scales(
    bank: Bank,
    indices: Sequence[Ints | None],
    normalisations: Sequence[str],
    presence: Presence | None,
    weights: Floats | None,
) -> list[tuple[Floats, Floats | None]]:
    """Return the factors of all kernels on each set of points, by one pass at most, and traces.

    The traces are None if no factor depends on them, and where points have weights.
    """
    parts = divisors(normalisations)
    if not indices or not parts:
        return [(np.ones(bank.n_kernels), None) for _ in indices]
    membership = np.zeros((bank.n_points, len(indices)))
    for column, index in enumerate(indices):
        chosen = slice(None) if index is None else index
        membership[chosen, column] = 1.0 if weights is None else weights[chosen]
    if takes_pass(normalisations):
        traces, totals = answer(bank, [Diagonal(membership), Quadratic(membership)])
    else:
        [traces] = answer(bank, [Diagonal(membership)])
        totals = np.zeros_like(traces)
    sizes = membership.sum(axis=0)
    found = []
    for column, n in enumerate(sizes):
        trace, total, own = traces[:, column].copy(), totals[:, column], membership[:, column]
        present = n if presence is None else presence.counts(own)
        scale = _fitted(bank, trace, total, n, parts, present)
        found.append((scale, trace if weights is None else None))
    return found


def _fitted(
    bank: Bank,
    traces: Floats,
    totals: Floats,
    n: float,
    parts: Sequence[tuple[str, bool]],
    present: float | Floats,
) -> Floats:
    """Return the factors of kernels with these traces and sums of all entries over n points.

    Of these points, `present` have the kernel, and its entries at the others are zero.  Every
    factor makes the trace ``present / n`` or the variance 1, whatever the one before, so the last
    one named decides.  A kernel whose trace or variance is zero at any of them keeps the factor 0.
    """
    noise = (16 * np.finfo(bank.dtype).eps + n * np.finfo(np.float64).eps) * np.abs(traces)
    present = np.where(np.asarray(present) > 0.0, present, 1.0)
    centred_traces = traces - totals / present
    size = np.ones(len(traces))
    alive = np.ones(len(traces), dtype=bool)
    for name, centred in parts:
        trace = centred_traces if centred else traces
        alive &= trace > noise
        size = trace / present if name == "variance" else trace * (n / present)
    return np.divide(1.0, size, out=np.zeros(len(traces)), where=alive)
