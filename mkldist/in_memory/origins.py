"""Origins of the kernels of a bank, and that of given Gram matrices.

An origin knows what a bank does not hold: the names of its kernels, and their values at new points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.counted import counted
from mkldist.errors import GramError
from mkldist.gram.cross_values import NewPoints
from mkldist.gram.predictor import RawPredictor
from mkldist.gram.view import BankView
from mkldist.in_memory.given_arrays import real_array

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.in_memory.expansion import Expansion


class Origin(Protocol):
    """Source of the names of kernels and of their values at new points."""

    def select(self, kernels: Ints) -> Origin:
        """Return the origin of some of the kernels."""

    def table(self) -> pd.DataFrame:
        """Return a description of the kernels, one row a kernel."""

    def groups(self) -> Ints | None:
        """Return the group of each kernel, (M,): its features; None where kernels have none."""

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points for decision functions on a view of the bank."""

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """Return decision functions of the bank apart from it."""


@dataclass(frozen=True, eq=False)
class GramOrigin:
    """Gram matrices that were given.

    Parameters
    ----------
    n_points : int
        Number of points n.
    names : tuple of str
        Names of the M kernels.
    """

    n_points: int
    names: tuple[str, ...]

    def select(self, kernels: Ints) -> GramOrigin:
        """See :meth:`Origin.select`."""
        return replace(self, names=tuple(self.names[kernel] for kernel in kernels.tolist()))

    def table(self) -> pd.DataFrame:
        """See :meth:`Origin.table`."""
        import pandas as pd

        return pd.DataFrame({"name": list(self.names)})

    def groups(self) -> None:
        """Return None: each matrix is by itself."""

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points, given by their kernel values, (M, n_new, n)."""
        refuse_grams(grams)
        between = _cross_grams(new, len(self.names), self.n_points)

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            for kernel in kernels.tolist():
                yield np.asarray(between[kernel][points][:, support], dtype=np.float64)

        return NewPoints(view, between.shape[1], values)

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """Refuse: matrices know no points."""
        raise no_points()


def no_points() -> GramError:
    """Return the error of decision functions that would need the points of Gram matrices."""
    return GramError("bank", "given Gram matrices", "kernels of features and of texts alone")


def refuse_grams(grams: Mapping[str, Any] | None) -> None:
    """Refuse kernel values by the names of views for a bank without such views."""
    if grams:
        raise GramError(
            "grams",
            f"matrices of {', '.join(map(repr, grams))}",
            "none: the bank has no kernel mkldist.kernels.Precomputed",
        )


def _cross_grams(given: Any, n_kernels: int, n_points: int) -> Array:
    """Return kernel values between new points and those of a bank, possibly memory-mapped."""
    expected = f"(M, n_new, n) = ({n_kernels}, n_new, {n_points})"
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub":
        grams: Array = given
    else:
        grams = real_array(given, "X_new", expected)
    if grams.ndim != 3 or (grams.shape[0], grams.shape[2]) != (n_kernels, n_points):
        raise GramError("X_new", f"shape {grams.shape}", expected)
    return grams


def default_names(n_kernels: int) -> tuple[str, ...]:
    """Return the names of given Gram matrices, as sweeps call them."""
    return tuple(f"gram[{m}]" for m in range(n_kernels))


def given_names(names: Sequence[str] | None, n_kernels: int) -> tuple[str, ...]:
    """Return the names that a user gives Gram matrices, or default ones for None.

    Raises
    ------
    mkldist.errors.GramError
        For another number of names than matrices.
    """
    if names is None:
        return default_names(n_kernels)
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise GramError("names", f"{names!r:.60}", "a list of names, one a matrix")
    if len(names) != n_kernels:
        raise GramError(
            "names",
            f"{counted(len(names), 'name')} for {counted(n_kernels, 'matrix', 'matrices')}",
            "one a matrix",
        )
    return tuple(map(str, names))
