"""Stacks of Gram matrices that a user gives: converted, checked, and packed into a bank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Array, Floating, Floats
from mkldist.data.gram_checks import (
    LARGEST_SINGLE,
    check_diagonal,
    check_finite,
    check_stack,
    check_symmetric,
    semidefinite,
    tolerance_of,
)
from mkldist.errors import GramError, SpecError
from mkldist.gram.bank import MemoryBank
from mkldist.gram.layout import TileLayout
from mkldist.in_memory.given_arrays import real_array, refuse_masked
from mkldist.in_memory.side_by_side import side_by_side
from mkldist.in_memory.sound_grams import can_be_read, pack_sound
from mkldist.lapack import load_for

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
