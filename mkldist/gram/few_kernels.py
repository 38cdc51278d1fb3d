"""Questions about few kernels, which are read one by one and not by a pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mkldist.gram.bank import PassCounter, Rows
from mkldist.gram.layout import TileLayout
from mkldist.gram.requests import Combine, Matvec, Quadratic
from mkldist.gram.tile_products import add_rows, multiply, quadratic_forms

Floats = npt.NDArray[np.float64]


class KernelRows(Protocol):
    """What can say single kernels: a bank, or the part of one that a view keeps."""

    @property
    def layout(self) -> TileLayout:
        """Which entries of a kernel are kept, and where."""

    @property
    def counter(self) -> PassCounter:
        """Work done."""

    def rows(self, kernels: npt.NDArray[np.intp]) -> Iterator[Rows]:
        """Read the kernels of the given indices, some at a time, each place exactly once."""


def answer_few(source: KernelRows, request: Combine | Matvec | Quadratic) -> Floats:
    """Answer a question about few kernels, which are read one by one.

    Parameters
    ----------
    source : KernelRows
        What has the kernels.
    request : Combine, Matvec or Quadratic
        The question; a `Quadratic` names its kernels.
    """
    started = time.perf_counter()
    if not isinstance(request, Combine):
        found = products(source, request)
    else:
        rows, matrices, found = rows_and_targets(request, source.layout.n_points)
        combine_few(source, WeightRows(list(rows), list(matrices)))
    source.counter.seconds += time.perf_counter() - started
    return found


@dataclass(frozen=True, eq=False)
class WeightRows:
    """Weight vectors, and the (n, n) matrices that their combinations go to."""

    rows: list[Floats] = field(default_factory=list)
    targets: list[Floats] = field(default_factory=list)

    def append(self, row: Floats, target: Floats) -> None:
        """Add a weight vector and its matrix."""
        self.rows.append(row)
        self.targets.append(target)


def rows_and_targets(request: Combine, n: int) -> tuple[Floats, Floats, Floats]:
    """Return weight vectors, the (n, n) matrices to write their combinations to, and the answer."""
    rows = np.atleast_2d(request.weights)
    matrices = np.empty((len(rows), n, n))
    return rows, matrices, matrices[0] if request.weights.ndim == 1 else matrices


def combine_few(source: KernelRows, sparse: WeightRows) -> None:
    """Write combinations of few kernels to their targets; each kernel is read once for all.

    Kernels are added one after the other, so that a sum does not depend on the other sums.
    """
    weights = np.stack(sparse.rows)
    active = np.flatnonzero(weights.any(axis=0))
    packed = np.zeros((len(weights), source.layout.n_entries))
    for rows in source.rows(active):
        for total, row in zip(packed, weights[:, active[rows.positions]], strict=True):
            used = np.flatnonzero(row)
            add_rows(rows.values, rows.lines[used], row[used], total)
    for target, entries in zip(sparse.targets, packed, strict=True):
        source.layout.unpack(entries, out=target)
    source.counter.combines += len(weights)


def products(source: KernelRows, request: Matvec | Quadratic) -> Floats:
    """Multiply the kernels that the request names, on one side or on both."""
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
