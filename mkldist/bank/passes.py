"""Bank passes: answer the requests of many solvers by one traversal of the bank.

All sums are accumulated in float64.  With few right-hand sides memory limits the speed of a pass,
with many the multiplications do.  Therefore the right-hand sides of all requests are stacked and
multiplied with each block while it is in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import ArrayBank, Bank, DiagonalPart, diagonal_part, slabs
from mkldist.bank.products import (
    ColumnRequest,
    Columns,
    WeightedSum,
    add_dots,
    add_rows,
    combine_few,
    products,
    weighted_sums,
)
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii, Request
from mkldist.core.arrays import Floating, Floats, Ints
from mkldist.core.checksums import array_id
from mkldist.optim.box_qp import newton_steps, pair_updates


class DiagonalSums:
    """The answer to a :class:`Diagonal`, gathered part by part.

    Each sum adds one point after the other, so it does not depend on the sizes of the parts.

    `sums` (M, R): sums over the parts so far.
    """

    def __init__(self, request: Diagonal, n_kernels: int) -> None:
        self._weights = request.weights
        self.sums = np.zeros((n_kernels, request.weights.shape[1]))

    def add(self, part: DiagonalPart) -> None:
        """Add some points of some kernels."""
        _add(part.values, self._weights[part.points], self.sums[part.kernels])


def read_diagonals(bank: Bank, gathered: Iterable[DiagonalSums]) -> None:
    """Gather sums without a pass."""
    takers = list(gathered)
    for part in bank.diagonals():
        for taker in takers:
            taker.add(part)
    bank.counter.diagonals += 1


def _add(values: Floating, weights: Floats, sums: Floats) -> None:
    """Add ``values @ weights`` to `sums`, (k, R), term by term."""
    terms = np.empty((len(values), len(weights) + 1))
    for r in range(weights.shape[1]):
        terms[:, 0] = sums[:, r]
        np.multiply(values, weights[:, r], out=terms[:, 1:])
        sums[:, r] = np.add.accumulate(terms, axis=1, out=terms)[:, -1]


TOLERANCE = 5e-11
ROUNDS = 300
FIRST_VIOLATION = 1e-6


def squared_radius(K: Floats) -> float:
    """Return the squared radius of the smallest ball around the points of a Gram matrix.

    `K` (n, n): symmetric positive semi-definite. Returns a lower bound within a relative 1e-10 of
    the squared radius; within 1e-6 where entries rounded to float32 make K indefinite; 0 if the
    points coincide up to rounding.
    """
    n, trace = len(K), float(np.trace(K))
    means = K.mean(axis=0)
    centred = K - means - means[:, None] + means.mean()
    spread = float(np.trace(centred)) / n
    if not spread > np.finfo(np.float64).eps * abs(trace):
        return 0.0
    beta = _centre(centred / spread)
    dual = float(beta @ (np.diagonal(centred) - centred @ beta))
    return max(dual, 0.0)


def _centre(centred: Floats) -> Floats:
    """Return the convex combination of the points that is the centre of their ball.

    Pair updates find the points on the sphere approximately.  Newton steps then find the centre for
    these points and drop those whose coefficients reach zero, and one pair update at a time admits
    another point: several would admit neighbours that must then be dropped one by one.

    The matrix is centred and has mean diagonal 1, the scale that the pair updates expect.  As the
    coefficients sum to one, a constant may be added to it: with it the Newton steps' system stays
    regular when all points are on the sphere.
    """
    n = len(centred)
    linear, K = 0.5 * np.diagonal(centred), centred + 1.0
    diagonal = np.ascontiguousarray(np.diagonal(K))
    beta, lower, upper = np.full(n, 1.0 / n), np.zeros(n), np.full(n, np.inf)
    slack = linear - K @ beta
    pair_updates(K, diagonal, beta, slack, lower, upper, FIRST_VIOLATION, 50 * n)
    for _ in range(ROUNDS):
        beta /= beta.sum()
        slack = linear - K @ beta
        if _gap(slack, beta) <= TOLERANCE:
            break
        steps = newton_steps(K, beta, slack, lower, upper, n)
        if _gap(slack, beta) > TOLERANCE:
            pair_updates(K, diagonal, beta, slack, lower, upper, 0.0, 1 if steps else n)
    return beta


def _gap(slack: Floats, beta: Floats) -> float:
    """Return the squared distance of the farthest point from the centre, less the dual value."""
    return 2.0 * float(slack.max() - slack @ beta)


def points_id(index: Ints | None, n_points: int) -> str:
    """Return the name of a set of points, the same whatever their order."""
    points = np.arange(n_points) if index is None else np.sort(index)
    return array_id(points.astype("<i8"))


def answer_radii(bank: Bank, requests: Sequence[Radii]) -> list[Floats]:
    """Answer requests for radii by one traversal for all sets of points that are not known yet."""
    wanted = {points_id(r.index, bank.n_points): r.index for r in requests}
    unknown = {name: i for name, i in wanted.items() if name not in bank.known_radii}
    if unknown:
        computed = _computed(bank, list(unknown.values()))
        bank.known_radii.update(zip(unknown, computed, strict=True))
    return [bank.known_radii[points_id(r.index, bank.n_points)].copy() for r in requests]


def _computed(bank: Bank, indices: Sequence[Ints | None]) -> Floats:
    """Return the (sets, M) squared radii of all kernels on some sets of points."""
    squared_radii = np.empty((len(indices), bank.n_kernels))
    matrix = np.empty((bank.n_points, bank.n_points))
    for rows in bank.rows(np.arange(bank.n_kernels)):
        for kernel, line in zip(rows.positions, rows.lines, strict=True):
            bank.layout.unpack(rows.values[line], out=matrix)
            for found, index in zip(squared_radii, indices, strict=True):
                part = matrix if index is None else matrix[index[:, None], index]
                found[kernel] = squared_radius(part)
    bank.counter.passes += 1
    bank.counter.radii += len(indices)
    return squared_radii


Result = TypeVar("Result")


def answer(bank: Bank, requests: Sequence[Request]) -> list[Floats]:
    """Answer requests; all that need every kernel share one traversal of the bank.

    Radii that the bank does not know yet take a traversal of their own, kernel by kernel.  What a
    bank answers without its entries takes no traversal.  Combinations with at most
    ``bank.sparse_limit`` non-zero weights, and requests that name their kernels, read only these
    kernels.  Diagonals are read alone unless another request causes a traversal.

    An answer is the same to the last bit whatever other requests share the pass.

    Returns one answer per request, in order, of the shape that the request documents; an operator
    where a combination takes one and the bank has it.
    """
    for request in requests:
        check(bank.n_points, bank.n_kernels, request)
    answers: dict[int, Any] = {**bank.own_answers(requests)}
    columns: dict[int, ColumnRequest] = {}
    weights: dict[int, Combine] = {}
    radii: dict[int, Radii] = {}
    traces: dict[int, DiagonalSums] = {}
    for position, request in enumerate(requests):
        match request:
            case _ if position in answers:
                continue
            case Combine():
                weights[position] = request
            case Matvec() | Quadratic(_, np.ndarray()):
                answers[position] = products(bank, request)
            case Radii():
                radii[position] = request
            case Diagonal():
                traces[position] = DiagonalSums(request, bank.n_kernels)
            case _:
                columns[position] = request
    answers |= _combinations(bank, weights, columns, list(traces.values()))
    answers |= {position: gathered.sums for position, gathered in traces.items()}
    answers |= zip(radii, answer_radii(bank, list(radii.values())), strict=True)
    return [answers[position] for position in range(len(requests))]


def answered(bank: Bank, steps: Generator[Request, Any, Result]) -> Result:
    """Run a generator of requests to its end, answer each request alone, and return its result."""
    return driven(steps, lambda request: answer(bank, [request])[0])


def driven(steps: Generator[Request, Any, Result], reply_to: Callable[[Request], Floats]) -> Result:
    """Run a generator of requests to its end, and return its result."""
    reply: Floats | None = None
    while True:
        try:
            request = steps.send(reply)
        except StopIteration as end:
            result: Result = end.value
            return result
        reply = reply_to(request)


def needs_pass(bank: Bank, request: Request) -> bool:
    """Return True if a request visits every kernel, or more than cost less one by one."""
    match request:
        case Matvec() | Quadratic(_, np.ndarray()) | Combine(_, np.ndarray()) | Diagonal():
            return False
        case Combine(weights):
            rows = np.atleast_2d(weights)
            return any(np.count_nonzero(row) > bank.sparse_limit for row in rows)
        case Radii(index):
            return points_id(index, bank.n_points) not in bank.known_radii
        case _:
            return True


def check(n: int, m: int, request: Request) -> None:
    """Raise ValueError if a request does not fit m kernels on n points."""
    match request:
        case Radii(index):
            _check_points(index, n)
            return
        case Combine(weights, kernels):
            size = m if kernels is None else len(kernels)
            found, good, expected = weights.shape, weights.shape[-1:] == (size,), f"(..., {size})"
        case Quadratic(vectors, _) | Matvec(_, vectors) | Diagonal(vectors):
            found, good, expected = vectors.shape, vectors.shape[:1] == (n,), f"({n}, ...)"
        case Inner(matrices):
            good = matrices.ndim == 3 and matrices.shape[1:] == (n, n)
            found, expected = matrices.shape, f"(R, {n}, {n})"
    if not good or len(found) > (3 if isinstance(request, Inner) else 2):
        raise ValueError(f"{type(request).__name__}: found shape {found}; expected {expected}")
    if isinstance(request, Combine | Quadratic | Matvec) and request.kernels is not None:
        _check_kernels(request.kernels, m)


def _check_kernels(kernels: npt.NDArray[np.intp], m: int) -> None:
    """Raise ValueError if indices are not of m kernels."""
    if kernels.ndim != 1 or kernels.dtype.kind not in "iu":
        found = f"{kernels.dtype} of shape {kernels.shape}"
        raise ValueError(f"kernels: found {found}; expected a vector of integers")
    if len(kernels) and (kernels.min() < 0 or kernels.max() >= m):
        found = f"{kernels.min()} to {kernels.max()}"
        raise ValueError(f"kernels: found {found}; expected indices of 0..{m - 1}")


def _check_points(index: npt.NDArray[np.intp] | None, n: int) -> None:
    """Raise ValueError if an index lies outside n points."""
    if index is None:
        return
    if index.ndim != 1 or not len(index) or index.min() < 0 or index.max() >= n:
        raise ValueError(f"Radii: found points of shape {index.shape}; expected some of 0..{n - 1}")


def _combinations(
    bank: Bank,
    combines: dict[int, Combine],
    columns: dict[int, ColumnRequest],
    traces: list[DiagonalSums],
) -> dict[int, Floats]:
    """Answer combinations and column requests, and gather traces, by one pass if any needs it."""
    answers, dense = combine_sparse(bank, combines)
    if dense or columns:
        answers |= _traverse(bank, dense, columns, traces)
    elif traces:
        read_diagonals(bank, traces)
    return answers


def combine_sparse(
    bank: Bank, combines: dict[int, Combine]
) -> tuple[dict[int, Floats], list[WeightedSum]]:
    """Write the combinations of few kernels, and return those that are left.

    Returns `answers`: the arrays of all answers, by the positions of the requests. Returns `dense`:
    combinations of many kernels, whose targets in `answers` are not written yet.
    """
    answers: dict[int, Floats] = {}
    sparse: list[WeightedSum] = []
    dense: list[WeightedSum] = []
    for position, request in combines.items():
        sums, answers[position] = weighted_sums(request, bank.n_points)
        for wanted in sums:
            few = request.kernels is not None or len(wanted.kernels) <= bank.sparse_limit
            (sparse if few else dense).append(wanted)
    if sparse:
        combine_few(bank, sparse)
    return answers, dense


def _traverse(
    bank: Bank,
    dense: list[WeightedSum],
    requests: dict[int, ColumnRequest],
    traces: list[DiagonalSums],
) -> dict[int, Floats]:
    """Make one pass: write combinations to their targets, and return the answers of columns."""
    columns = Columns(bank.layout, list(requests.values()))
    sums = np.zeros((bank.n_kernels, columns.n_columns))
    weights = weight_rows(dense, bank.n_kernels)
    combined = np.zeros((len(dense), bank.layout.n_entries))
    entries = slice(0, 0)
    for chunk in bank.chunks():
        if chunk.entries != entries:
            entries = chunk.entries
            right = columns.over(entries)
        for gathered in traces:
            gathered.add(diagonal_part(bank.layout, chunk))
        lines = np.arange(len(chunk.values))
        if requests:
            add_dots(chunk.values, lines, right, sums[chunk.kernels])
        if dense:
            add_rows(chunk.values, lines, weights[:, chunk.kernels], combined, entries.start)
    bank.counter.passes += 1
    for wanted, entries_of in zip(dense, combined, strict=True):
        bank.layout.unpack(entries_of, out=wanted.target)
    return {
        position: _shaped(request, sums[:, where])
        for (position, request), where in zip(requests.items(), columns.slices, strict=True)
    }


def add_combinations(bank: ArrayBank, weights: Floats, entries: slice, sums: Floats) -> Floats:
    """Return sums to which combinations of all kernels are added, as a pass adds them.

    `weights` (R, M): weights of its kernels. `sums` (R, e): sums over the kernels before these.
    The result is in memory of its own.
    """
    combined = np.array(sums, dtype=np.float64)
    kernels = slice(0, bank.n_kernels)
    for slab in slabs(bank.layout, entries):
        values = bank.slab_of(kernels, slab).values
        add_rows(values, np.arange(len(values)), weights, combined, slab.start - entries.start)
    return combined


def weight_rows(sums: Sequence[WeightedSum], n_kernels: int) -> Floats:
    """Return the weights of some combinations, (R, M)."""
    rows = np.zeros((len(sums), n_kernels))
    for row, wanted in zip(rows, sums, strict=True):
        row[wanted.kernels] = wanted.weights
    return rows


def _shaped(request: ColumnRequest, sums: Floats) -> Floats:
    """Give (M, R) sums the shape that the request documents, in memory of their own."""
    if isinstance(request, Quadratic) and request.vectors.ndim == 1:
        return sums[:, 0].copy()
    return np.ascontiguousarray(sums)
