"""Gram matrices that a user gives: converted, checked, and packed into a bank."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Array, Bools, Floating, Floats, read_only
from mkldist.blas_threads import single_threaded
from mkldist.compiled import compiled
from mkldist.data.gram_checks import (
    LARGEST,
    LARGEST_SINGLE,
    check_diagonal,
    check_finite,
    check_stack,
    check_symmetric,
    semidefinite,
    tolerance_of,
)
from mkldist.errors import GramError, SpecError
from mkldist.fit.inputs import real_array, refuse_masked
from mkldist.gram.bank import MemoryBank
from mkldist.gram.layout import TileLayout
from mkldist.lapack import factorise, load_for
from mkldist.processors import n_processors

FEW_ENTRIES = 2**20  # entries of matrices that one thread has done before others have started
PART_ENTRIES = 2**19
MOST_THREADS = 8


def side_by_side(work: Callable[[slice], None], n_kernels: int, entries: int) -> None:
    """Call ``work(kernels)`` for parts of all kernels, in a few threads.

    Beside other threads, each has one thread of linear algebra.

    Parameters
    ----------
    work : callable
        Work on a slice of kernels, which releases the interpreter's lock.
    n_kernels : int
        Number M of kernels.
    entries : int
        Entries of one kernel's matrix.

    Raises
    ------
    Exception
        The first exception in the order of the kernels; parts that have not begun are dropped.
    """
    step = max(1, PART_ENTRIES // entries)
    parts = [slice(at, min(at + step, n_kernels)) for at in range(0, n_kernels, step)]
    threads = min(n_processors(), MOST_THREADS, len(parts))
    if threads == 1 or n_kernels * entries < FEW_ENTRIES:
        for part in parts:
            work(part)
        return
    from concurrent.futures import ThreadPoolExecutor

    with single_threaded(), ThreadPoolExecutor(threads, "mkldist-grams") as pool:
        futures = [pool.submit(work, part) for part in parts]
        try:
            for future in futures:
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)


EPS = float(np.finfo(np.float64).eps)
AT_ONCE = 2**17  # entries of the matrices that are factorised while they are in the cache


def can_be_read(stack: npt.NDArray[Any], packed: npt.NDArray[Any]) -> bool:
    """Return True if the loop knows the type of a stack, and of the bank."""
    return stack.dtype == packed.dtype == np.float64 and stack.flags.c_contiguous


def pack_sound(
    stack: npt.NDArray[Any],
    layout: TileLayout,
    packed: Floats,
    *,
    symmetric: bool,
    factorised: bool,
) -> list[int]:
    """Pack matrices, and return the indices of those that do not pass.

    A matrix passes that is finite, and has no entry on its diagonal that is negative or too large.

    Parameters
    ----------
    stack : (k, n, n) float64
        The matrices, contiguous.
    layout : TileLayout
        Of n points.
    packed : (k, E) float64
        Overwritten by their kept entries.
    symmetric : bool
        True to require equality with the transpose, too.
    factorised : bool
        True to require a Cholesky factor of ``K + n u trace(K) I`` too, with u the machine epsilon.
    """
    n, edge = layout.n_points, layout.tile
    step = max(1, AT_ONCE // n**2)
    triangles = np.empty((step if factorised else 0, n, n))
    grams, others = read_only(np.asarray(stack)), []
    for start in range(0, len(grams), step):
        part = grams[start : start + step]
        passed = np.zeros(len(part), dtype=bool)
        _pack(part, layout.side, edge, packed[start : start + step], symmetric, triangles, passed)
        if factorised:
            pairs = zip(passed, triangles[: len(part)], strict=True)
            passed &= [bool(sound) and factorise(one) for sound, one in pairs]
        others += (start + np.flatnonzero(~passed)).tolist()
    return others


@compiled
def _pack(
    grams: Floats,
    side: int,
    edge: int,
    packed: Floats,
    symmetric: bool,
    triangles: Floats,
    passed: Bools,
) -> None:
    """Pack matrices, and write which pass; where triangles are wanted, copy each with its ridge."""
    for k in range(len(grams)):
        sound = _pack_tiles(grams[k], side, edge, packed[k], symmetric)
        passed[k] = sound and _is_usable(grams[k])
        if passed[k] and len(triangles):
            _copy_triangle(grams[k], triangles[k])


@compiled
def _pack_tiles(matrix: Floats, side: int, edge: int, packed: Floats, symmetric: bool) -> bool:
    """Pack a matrix by rows of its upper tiles; return True if it is finite, and symmetric.

    Where it must be symmetric, a row of tiles that is not ends the packing.
    """
    n, place, unequal = len(matrix), 0, 0
    above = below = 0.0
    for row in range(side):
        if symmetric and unequal > 0:
            return False
        for col in range(row, side):
            left, width = col * edge, min(edge, n - col * edge)
            height = min(edge, n - row * edge)
            for i in range(row * edge, row * edge + height):
                for j in range(width):
                    packed[place + j] = matrix[i, left + j]
                    above += matrix[i, left + j]
                    below += matrix[left + j, i]
                    unequal += matrix[i, left + j] != matrix[left + j, i]
                for j in range(width, edge):
                    packed[place + j] = 0.0
                place += edge
            for _ in range((edge - height) * edge):
                packed[place] = 0.0
                place += 1
    return np.isfinite(above + below) and not (symmetric and unequal > 0)


@compiled
def _is_usable(matrix: Floats) -> bool:
    """Return True if no entry of the diagonal is negative or too large."""
    most = least = 0.0
    for i in range(len(matrix)):
        most, least = max(most, matrix[i, i]), min(least, matrix[i, i])
    return most <= LARGEST and least >= 0.0


@compiled
def _copy_triangle(matrix: Floats, triangle: Floats) -> None:
    """Copy the upper triangle of a matrix, and add ``n u trace(K)`` to its diagonal."""
    n, trace = len(matrix), 0.0
    for i in range(n):
        trace += matrix[i, i]
        for j in range(i, n):
            triangle[i, j] = matrix[i, j]
    for i in range(n):
        triangle[i, i] += n * EPS * trace


Check = Literal["full", "active", "none"]
MANY_ENTRIES = 2**20  # of a stack, from which on compiled code pays


def gram_stack(given: Any, where: str = "grams") -> Array:
    """Return an array-like as M square matrices of numbers, in their own type where they have one.

    Raises
    ------
    mkldist.errors.GramError
        For anything else.
    """
    refuse_masked(given, where)
    if not isinstance(given, np.ndarray) or given.dtype.kind not in "fiub":
        given = real_array(given, where, "(M, n, n) numbers: M Gram matrices of one size")
    check_stack(given, where)
    return np.asarray(given)


@dataclass(frozen=True)
class Inspection:
    """Checks of single Gram matrices before a solver sees them.

    Parameters
    ----------
    check : {"full", "active", "none"}
        ``"full"`` requires finite, symmetric and positive semi-definite matrices, and sets
        eigenvalues slightly below zero to zero.  ``"active"`` requires finite and symmetric
        matrices without negative entries on the diagonal.  ``"none"`` requires finite ones.
    tolerance : float
        Asymmetry relative to the largest entry, and negative eigenvalues relative to the trace,
        that rounding explains.
    where : str
        The place to name in a message.
    """

    check: Check
    tolerance: float
    where: str = "grams"

    @classmethod
    def of(cls, check: str, dtype: np.dtype[Any]) -> Inspection:
        """Return the checks of this name for matrices that were stored in a type.

        Raises
        ------
        mkldist.errors.SpecError
            For an unknown name.
        """
        for known in get_args(Check):
            if check == known:
                return cls(known, tolerance_of(dtype))
        raise SpecError("check", f"{check!r}", "'full', 'active' or 'none'")

    def prepare(self, n_points: int) -> None:
        """Load what the checks of matrices over n points need, before threads make them."""
        if self.check == "full":
            load_for(n_points)

    def inspected(self, matrix: Floats, kernel: int) -> Floats:
        """Return a matrix that passes, changed where the check sets eigenvalues to zero.

        Parameters
        ----------
        matrix : (n, n) float64
            The matrix; not changed.
        kernel : int
            Index of its kernel, for messages.

        Raises
        ------
        mkldist.errors.GramError
            If it does not pass.
        """
        place = f"{self.where}: kernel {kernel}"
        if self.check == "none":
            check_finite(matrix, place)
            return matrix
        check_symmetric(matrix, self.tolerance, place)
        if self.check == "active":
            check_diagonal(matrix, self.tolerance, place)
            return matrix
        return semidefinite(matrix, self.tolerance, place)

    def require_semidefinite(self, matrix: Floats, kernel: int) -> None:
        """Raise GramError if a symmetric matrix has eigenvalues below zero, beyond rounding."""
        place = f"{self.where}: kernel {kernel}"
        if semidefinite(matrix, self.tolerance, place) is not matrix:
            raise GramError(
                place,
                "eigenvalues slightly below zero, and a positive weight",
                "a positive semi-definite matrix",
                "Set check='full', which sets such eigenvalues to zero before the method starts",
            )


def packed_bank(
    stack: npt.NDArray[Any], inspection: Inspection, dtype: npt.DTypeLike = np.float64
) -> MemoryBank:
    """Check matrices and pack them, several side by side.

    Parameters
    ----------
    stack : (M, n, n) array of numbers
        The matrices, possibly memory-mapped; only a few are copied at a time.
    inspection : Inspection
        The checks.
    dtype : dtype
        float32 or float64, in which the bank keeps them.

    Raises
    ------
    mkldist.errors.GramError
        Naming the first kernel that does not pass.
    """
    layout = TileLayout.for_points(stack.shape[1])
    values: Floating = np.empty((len(stack), layout.n_entries), dtype=dtype)

    def work(kernels: slice) -> None:
        for m in _to_inspect(stack, kernels, inspection, layout, values):
            matrix = np.asarray(stack[m], dtype=np.float64)
            if values.dtype == np.float32:
                check_finite(matrix, f"{inspection.where}: kernel {m}", LARGEST_SINGLE)
            layout.pack(inspection.inspected(matrix, m), out=values[m])

    inspection.prepare(layout.n_points)
    side_by_side(work, len(stack), stack.shape[1] ** 2)
    return MemoryBank(values, layout)


def _to_inspect(
    stack: npt.NDArray[Any],
    kernels: slice,
    inspection: Inspection,
    layout: TileLayout,
    values: Array,
) -> Iterable[int]:
    """Pack those of some matrices that compiled code knows to pass; return the others."""
    if stack.size < MANY_ENTRIES or not can_be_read(stack, values):
        return range(kernels.start, kernels.stop)
    others = pack_sound(
        stack[kernels],
        layout,
        values[kernels],
        symmetric=inspection.check != "none",
        factorised=inspection.check == "full",
    )
    return [kernels.start + m for m in others]


def inspected_stack(stack: npt.NDArray[Any], inspection: Inspection) -> npt.NDArray[Any]:
    """Return matrices that pass; `stack` itself where no matrix changes, else a copy.

    Raises
    ------
    mkldist.errors.GramError
        Naming the first kernel that does not pass.
    """
    changed: dict[int, Floats] = {}

    def work(kernels: slice) -> None:
        for m in range(kernels.start, kernels.stop):
            matrix = np.asarray(stack[m], dtype=np.float64)
            passed = inspection.inspected(matrix, m)
            if passed is not matrix:
                changed[m] = passed

    inspection.prepare(stack.shape[1])
    side_by_side(work, len(stack), stack.shape[1] ** 2)
    if not changed:
        return stack
    result = np.array(stack, dtype=np.float64)
    for m, matrix in changed.items():
        result[m] = matrix
    return result
