"""Requests for few kernels, which are read one by one and not by a pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.bank import PassCounter, Rows
from mkldist.gram.layout import TileLayout
from mkldist.gram.requests import Combine, Matvec, Quadratic
from mkldist.gram.tile_products import add_rows, multiply, quadratic_forms


class KernelRows(Protocol):
    """Source of single kernels: a bank, or the part of a bank that a view keeps."""

    @property
    def layout(self) -> TileLayout:
        """Places of the entries that are kept of a kernel."""

    @property
    def counter(self) -> PassCounter:
        """Work done."""

    def rows(self, kernels: Ints) -> Iterator[Rows]:
        """Read the kernels of the given indices, some at a time, each position exactly once."""


def answer_few(source: KernelRows, request: Combine | Matvec | Quadratic) -> Floats:
    """Answer a request for few kernels, which are read one by one.

    Parameters
    ----------
    source : KernelRows
        Source of the kernels.
    request : Combine, Matvec or Quadratic
        The request; a `Quadratic` names its kernels.
    """
    if not isinstance(request, Combine):
        return products(source, request)
    sums, found = weighted_sums(request, source.layout.n_points)
    combine_few(source, sums)
    return found


@dataclass(frozen=True, eq=False)
class WeightedSum:
    """Weights of some kernels, and the (n, n) matrix to which their combination is written."""

    kernels: Ints
    weights: Floats
    target: Floats


def weighted_sums(request: Combine, n: int) -> tuple[list[WeightedSum], Floats]:
    """Return the requested sums over kernels of non-zero weight, and the array of the answer."""
    rows = np.atleast_2d(request.weights)
    if request.memory is not None and request.memory.shape == (n, n) and len(rows) == 1:
        matrices = request.memory[None]
    else:
        matrices = np.empty((len(rows), n, n))
    sums = []
    for row, matrix in zip(rows, matrices, strict=True):
        used = np.flatnonzero(row)
        kernels = used if request.kernels is None else request.kernels[used]
        sums.append(WeightedSum(kernels, row[used], matrix))
    return sums, matrices[0] if request.weights.ndim == 1 else matrices


def combine_few(source: KernelRows, sums: Sequence[WeightedSum]) -> None:
    """Write combinations of few kernels to their targets; each kernel is read once for all sums.

    Kernels are added one after the other, so that a sum does not depend on the other sums.
    """
    active, weights = _weights_by_kernel(sums)
    packed = np.zeros((len(sums), source.layout.n_entries))
    for rows in source.rows(active):
        for total, row in zip(packed, weights[:, rows.positions], strict=True):
            used = np.flatnonzero(row)
            add_rows(rows.values, rows.lines[used], row[used], total)
    for wanted, entries in zip(sums, packed, strict=True):
        source.layout.unpack(entries, out=wanted.target)
    source.counter.combines += len(sums)


def _weights_by_kernel(sums: Sequence[WeightedSum]) -> tuple[Ints, Floats]:
    """Return the kernels of some sums, (s,) and ascending, and their weights in each, (R, s)."""
    if len(sums) == 1:
        order = np.argsort(sums[0].kernels)
        return sums[0].kernels[order], sums[0].weights[None, order]
    kernels = np.unique(np.concatenate([wanted.kernels for wanted in sums]))
    weights = np.zeros((len(sums), len(kernels)))
    for row, wanted in zip(weights, sums, strict=True):
        row[np.searchsorted(kernels, wanted.kernels)] = wanted.weights
    return kernels, weights


def products(source: KernelRows, request: Matvec | Quadratic) -> Floats:
    """Return the products ``K V`` or the forms ``v'K v`` of the kernels that a request names."""
    kernels = np.asarray(request.kernels, dtype=np.intp)
    forms = isinstance(request, Quadratic)
    multiplied = quadratic_forms if forms else multiply
    shape = request.vectors.shape[1:] if forms else request.vectors.shape
    answers = np.empty((len(kernels), *shape))
    for rows in source.rows(kernels):
        answers[rows.positions] = multiplied(
            source.layout, rows.values, rows.lines, request.vectors
        )
    source.counter.matvecs += len(kernels)
    return answers
