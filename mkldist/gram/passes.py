"""Bank passes: answer the requests of many solvers by one traversal of the bank.

Everything is accumulated in float64; float32 entries are widened block by block.  A pass is
bound by memory for few right-hand sides and by multiplications for many, so right-hand sides of
all requests are stacked and multiplied with each block while it is in the processor's cache.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from mkldist.gram.bank import BLOCK_KERNELS, Bank, Chunk, PassCounter, Rows
from mkldist.gram.layout import TileLayout
from mkldist.gram.operands import WIDTH, ColumnRequest, Columns, Diagonal
from mkldist.gram.radii import answer_radii
from mkldist.gram.radius_cache import points_id
from mkldist.gram.requests import Combine, Inner, Matvec, Quadratic, Radii, Request
from mkldist.gram.tile_products import add_rows, multiply, quadratic_forms

Floats = npt.NDArray[np.float64]
AnyRequest = Request | Diagonal
Result = TypeVar("Result")

# 60 · 2048 · 8 products stay below the 10^6 under which OpenBLAS multiplies without packing its
# operands first; packing would cost more than the product itself for 8 columns.
PRODUCT_KERNELS = 60
BLOCK_ENTRIES = 2048


def answer(bank: Bank, requests: Sequence[AnyRequest]) -> list[Floats]:
    """Answer requests; all that need every kernel share one traversal of the bank.

    Radii that nobody asked for before take a traversal of their own, kernel by kernel.
    Combinations with at most ``bank.sparse_limit`` non-zero weights, and what names its kernels,
    read only these.  The answer to a request is the same to the last bit whatever requests share
    the pass with it, provided that the BLAS in use computes a column of a product of fixed shape
    independently of its neighbours, as OpenBLAS does.

    Parameters
    ----------
    bank : Bank
        The bank; its counter is advanced.
    requests : sequence of requests
        Of any kinds.

    Returns
    -------
    list of float64 arrays
        One answer per request, in order, of the shape that the request documents.
    """
    started = time.perf_counter()
    answers: dict[int, Floats] = {}
    columns: dict[int, ColumnRequest] = {}
    weights: dict[int, Combine] = {}
    radii: dict[int, Radii] = {}
    for position, request in enumerate(requests):
        check(bank.n_points, bank.n_kernels, request)
        match request:
            case Combine():
                weights[position] = request
            case Matvec() | Quadratic(_, np.ndarray()):
                answers[position] = _products(bank, request)
            case Radii():
                radii[position] = request
            case _:
                columns[position] = request
    answers |= _combinations(bank, weights, columns)
    answers |= zip(radii, answer_radii(bank, list(radii.values())), strict=True)
    bank.counter.seconds += time.perf_counter() - started
    return [answers[position] for position in range(len(requests))]


def answered(bank: Bank, steps: Generator[Request, Any, Result]) -> Result:
    """Run what asks for one request after the other, answering each by itself."""
    reply: Any = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result
        (reply,) = answer(bank, [request])


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
        found = _products(source, request)
    else:
        weights = np.atleast_2d(request.weights)
        n = source.layout.n_points
        matrices = np.empty((len(weights), n, n))
        _combine_few(source, _WeightRows(list(weights), list(matrices)))
        found = matrices[0] if request.weights.ndim == 1 else matrices
    source.counter.seconds += time.perf_counter() - started
    return found


def needs_pass(bank: Bank, request: AnyRequest) -> bool:
    """Return whether a request visits every kernel, or more than are better read one by one."""
    match request:
        case Matvec() | Quadratic(_, np.ndarray()):
            return False
        case Combine(weights):
            rows = np.atleast_2d(weights)
            return any(np.count_nonzero(row) > bank.sparse_limit for row in rows)
        case Radii(index):
            return points_id(index, bank.n_points) not in bank.known_radii
        case _:
            return True


def check(n: int, m: int, request: AnyRequest) -> None:
    """Raise ValueError when a request does not fit m kernels on n points."""
    match request:
        case Radii(index):
            _check_points(index, n)
            return
        case Combine(weights):
            found, good, expected = weights.shape, weights.shape[-1:] == (m,), f"(..., {m})"
        case Quadratic(vectors, _) | Matvec(_, vectors) | Diagonal(vectors):
            found, good, expected = vectors.shape, vectors.shape[:1] == (n,), f"({n}, ...)"
        case Inner(matrices):
            good = matrices.ndim == 3 and matrices.shape[1:] == (n, n)
            found, expected = matrices.shape, f"(R, {n}, {n})"
    if not good or len(found) > (3 if isinstance(request, Inner) else 2):
        raise ValueError(f"{type(request).__name__}: found shape {found}; expected {expected}")


def _check_points(index: npt.NDArray[np.intp] | None, n: int) -> None:
    """Raise ValueError when these are not some of n points."""
    if index is None:
        return
    if index.ndim != 1 or not len(index) or index.min() < 0 or index.max() >= n:
        raise ValueError(f"Radii: found points of shape {index.shape}; expected some of 0..{n - 1}")


@dataclass(frozen=True, eq=False)
class _WeightRows:
    """Weight vectors, and the (n, n) matrices that their combinations go to."""

    rows: list[Floats] = field(default_factory=list)
    targets: list[Floats] = field(default_factory=list)

    def append(self, row: Floats, target: Floats) -> None:
        self.rows.append(row)
        self.targets.append(target)


def _combinations(
    bank: Bank, combines: dict[int, Combine], columns: dict[int, ColumnRequest]
) -> dict[int, Floats]:
    """Answer everything but `Matvec`; passes are made only when something needs one."""
    n = bank.n_points
    answers: dict[int, Floats] = {}
    sparse, dense = _WeightRows(), _WeightRows()
    for position, request in combines.items():
        rows = np.atleast_2d(request.weights)
        matrices = np.empty((len(rows), n, n))
        for row, matrix in zip(rows, matrices, strict=True):
            few = np.count_nonzero(row) <= bank.sparse_limit
            (sparse if few else dense).append(row, matrix)
        answers[position] = matrices[0] if request.weights.ndim == 1 else matrices
    if sparse.rows:
        _combine_few(bank, sparse)
    if dense.rows or columns:
        answers |= _traverse(bank, dense, columns)
    return answers


def _traverse(
    bank: Bank, dense: _WeightRows, requests: dict[int, ColumnRequest]
) -> dict[int, Floats]:
    """Make one pass: write the combinations to their targets, return the columns' answers."""
    columns = Columns(bank.layout, list(requests.values()))
    sums = np.zeros((columns.n_groups, bank.n_kernels, WIDTH))
    weights = _grouped(dense.rows, bank.n_kernels)
    combined = np.zeros((len(weights), WIDTH, bank.layout.n_entries))
    buffer = np.empty((BLOCK_KERNELS, BLOCK_ENTRIES))
    entries = slice(0, 0)
    for chunk in bank.chunks():
        if chunk.entries != entries:
            entries = chunk.entries
            right = columns.over(entries)
        for block in _blocks(chunk, buffer):
            within = slice(block.entries.start - entries.start, block.entries.stop - entries.start)
            _add_products(block, right[:, within], sums)
            _add_combinations(block, weights, combined)
    bank.counter.passes += 1
    packed = combined.reshape(-1, bank.layout.n_entries)
    for target, entries_of in zip(dense.targets, packed, strict=False):
        bank.layout.unpack(entries_of, out=target)
    flat = sums.transpose(1, 0, 2).reshape(bank.n_kernels, -1)
    return {
        position: _shaped(request, flat[:, where])
        for (position, request), where in zip(requests.items(), columns.slices, strict=True)
    }


def _blocks(chunk: Chunk, buffer: Floats) -> Iterator[Chunk]:
    """Cut a chunk into float64 blocks that fit the processor's cache."""
    n_kernels, n_entries = chunk.values.shape
    for e in range(0, n_entries, BLOCK_ENTRIES):
        for k in range(0, n_kernels, BLOCK_KERNELS):
            values = chunk.values[k : k + BLOCK_KERNELS, e : e + BLOCK_ENTRIES]
            if values.dtype != np.float64:
                wide = buffer[: values.shape[0], : values.shape[1]]
                np.copyto(wide, values)
                values = wide
            kernels = slice(chunk.kernels.start + k, chunk.kernels.start + k + values.shape[0])
            start = chunk.entries.start + e
            yield Chunk(kernels, slice(start, start + values.shape[1]), values)


def _add_products(block: Chunk, right: Floats, sums: Floats) -> None:
    """Add block @ right to the (groups, M, 8) sums; right is (groups, e, 8)."""
    first = block.kernels.start
    for k in range(0, len(block.values), PRODUCT_KERNELS):
        values = block.values[k : k + PRODUCT_KERNELS]
        kernels = slice(first + k, first + k + len(values))
        for group, columns in zip(sums, right, strict=True):
            group[kernels] += values @ columns


def _add_combinations(block: Chunk, weights: Floats, combined: Floats) -> None:
    """Add weights @ block to the (groups, 8, E) combinations; weights are (groups, 8, M)."""
    for group, rows in zip(combined, weights, strict=True):
        group[:, block.entries] += rows[:, block.kernels] @ block.values


def _grouped(rows: list[Floats], n_kernels: int) -> Floats:
    """Stack (M,) vectors to (groups, 8, M), the last group filled up with zeros."""
    groups = -(-len(rows) // WIDTH)
    stack = np.zeros((groups * WIDTH, n_kernels))
    for row, vector in zip(stack, rows, strict=False):
        row[:] = vector
    return stack.reshape(groups, WIDTH, n_kernels)


def _shaped(request: ColumnRequest, sums: Floats) -> Floats:
    """Give (M, R) sums the shape that the request documents, in memory of their own."""
    if isinstance(request, Quadratic) and request.vectors.ndim == 1:
        return sums[:, 0].copy()
    return np.ascontiguousarray(sums)


def _combine_few(source: KernelRows, sparse: _WeightRows) -> None:
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


def _products(source: KernelRows, request: Matvec | Quadratic) -> Floats:
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
