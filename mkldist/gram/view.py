"""What one split sees of a bank: some of its points, with every kernel normalised on them.

The bank is never changed.  With ``S`` the selection of the view's n points, ``H = I - 11'/n`` and
a factor ``s_m`` per kernel, the view's kernels are ``s_m S'K_m S`` or ``s_m H S'K_m S H``.  Both
are questions to the bank with other vectors or weights, so requests of different views share a
pass: :meth:`BankView.translate` a request, answer it on the bank, then
:meth:`BankView.interpret` the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mkldist.errors import SpecError, nearest
from mkldist.gram.bank import Bank
from mkldist.gram.operands import Diagonal
from mkldist.gram.passes import answer
from mkldist.gram.requests import Combine, Inner, Matvec, Quadratic, Radii, Request

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

NORMALISATIONS = ("trace", "centre", "variance")


@dataclass(frozen=True, eq=False)
class BankView:
    """A bank restricted to some points and normalised there.

    Parameters
    ----------
    bank : Bank
        The bank, over N points.
    index : (n,) intp, or None
        Points of the view, each at most once; None for all points in order.
    scale : (M,) float64
        Factor of each kernel; 0 where a kernel vanishes on these points.
    centred : bool
        Whether the kernels are centred in feature space on these points.
    """

    bank: Bank
    index: Ints | None
    scale: Floats
    centred: bool

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
        """Return the view of all points and of kernels as they are stored."""
        return cls(bank, None, np.ones(bank.n_kernels), centred=False)

    def translate(self, request: Request) -> Request:
        """Return the request to the bank whose answer :meth:`interpret` understands."""
        match request:
            case Combine(weights):
                return Combine(weights * self.scale)
            case Quadratic(vectors):
                return Quadratic(self._spread(vectors))
            case Matvec(kernels, vectors):
                return Matvec(kernels, self._spread(vectors))
            case Inner(matrices):
                return Inner(self._spread_matrices(matrices))
            case Radii(index):  # distances do not change when the view is centred
                return Radii(self._points(index))

    def interpret(self, request: Request, bank_answer: Floats) -> Floats:
        """Return the view's answer to `request`, given the bank's to the translated one.

        May overwrite `bank_answer`.
        """
        match request:
            case Combine():
                return self._gather_matrices(bank_answer)
            case Quadratic() | Inner() | Radii():
                return (self.scale * bank_answer.T).T
            case Matvec(kernels, _):
                taken = bank_answer if self.index is None else bank_answer[:, self.index]
                if self.centred:
                    taken = taken - taken.mean(axis=1, keepdims=True)
                return (self.scale[kernels] * taken.T).T

    def answer(self, requests: Sequence[Request]) -> list[Floats]:
        """Answer the requests of this view alone, by one pass at most."""
        answers = answer(self.bank, [self.translate(request) for request in requests])
        return [self.interpret(r, a) for r, a in zip(requests, answers, strict=True)]

    def _points(self, index: Ints | None) -> Ints | None:
        """Return which of the bank's points these points of the view are."""
        if self.index is None or index is None:
            return index if self.index is None else self.index
        return self.index[index]

    def padded(self, vectors: Floats) -> Floats:
        """Return (n, ...) vectors on the bank's points, zero at those beyond the view."""
        if self.index is None:
            return vectors
        padded = np.zeros((self.bank.n_points, *vectors.shape[1:]))
        padded[self.index] = vectors
        return padded

    def _spread(self, vectors: Floats) -> Floats:
        """Centre vectors if the view is centred and put them on the bank's points."""
        return self.padded(vectors - vectors.mean(axis=0) if self.centred else vectors)

    def _spread_matrices(self, matrices: Floats) -> Floats:
        if self.centred:
            matrices = _centred(matrices.copy())
        if self.index is None:
            return matrices
        n = self.bank.n_points
        padded = np.zeros((len(matrices), n, n))
        padded[:, self.index[:, None], self.index] = matrices
        return padded

    def _gather_matrices(self, matrices: Floats) -> Floats:
        if self.index is not None:
            matrices = matrices[..., self.index[:, None], self.index]
        return _centred(matrices) if self.centred else matrices


def make_views(
    bank: Bank, indices: Sequence[Ints | None], normalisations: Sequence[str]
) -> list[BankView]:
    """Return a view for each set of points; one pass fits the factors of all of them.

    Normalisations act in the order given: ``trace`` divides a kernel by its trace, ``centre``
    centres it in feature space, ``variance`` divides it by ``trace / n - mean``, which is the
    variance of the points in feature space.  A kernel whose trace or variance is zero up to
    rounding is given the factor 0.

    Parameters
    ----------
    bank : Bank
        The bank, over N points.
    indices : sequence of (n,) intp or None
        Points of each view, each at most once; None for all points.
    normalisations : sequence of str
        Some of ``trace``, ``centre``, ``variance``.

    Raises
    ------
    mkldist.errors.SpecError
        For a normalisation of another name.
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
    if not indices or not {"trace", "variance"} & set(normalisations):
        return [BankView(bank, index, np.ones(bank.n_kernels), centred) for index in indices]
    membership = np.zeros((bank.n_points, len(indices)))
    for column, index in enumerate(indices):
        membership[slice(None) if index is None else index, column] = 1.0
    traces, totals = answer(bank, [Diagonal(membership), Quadratic(membership)])
    sizes = membership.sum(axis=0)
    return [
        BankView(bank, index, _fitted(bank, trace, total, n, normalisations), centred)
        for index, trace, total, n in zip(indices, traces.T, totals.T, sizes, strict=True)
    ]


def _fitted(
    bank: Bank, traces: Floats, totals: Floats, n: float, normalisations: Sequence[str]
) -> Floats:
    """Return the factors of kernels with these traces and sums of all entries over n points.

    A factor makes the trace or variance 1 whatever the factor before it was, so the last one
    named decides, but a kernel that any of them finds zero stays zero.
    """
    noise = (16 * np.finfo(bank.dtype).eps + n * np.finfo(np.float64).eps) * np.abs(traces)
    centred_traces = traces - totals / n
    size = np.ones(len(traces))
    alive = np.ones(len(traces), dtype=bool)
    for place, name in enumerate(normalisations):
        if name == "centre":
            continue
        centred = name == "variance" or "centre" in normalisations[:place]
        trace = centred_traces if centred else traces
        alive &= trace > noise
        size = trace / n if name == "variance" else trace
    return np.divide(1.0, size, out=np.zeros(len(traces)), where=alive)


def _centred(matrices: Floats) -> Floats:
    """Return ``H W H`` for symmetric (..., n, n) matrices, overwriting them."""
    means = matrices.mean(axis=-1)
    overall = means.mean(axis=-1)[..., None, None]
    matrices -= means[..., None, :]
    matrices -= means[..., :, None]
    matrices += overall
    return matrices
