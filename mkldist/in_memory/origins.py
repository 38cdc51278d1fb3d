"""Origins of the kernels of a bank: features and functions, or given Gram matrices.

An origin knows what a bank does not hold: the names of its kernels, and their values at new points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.counted import counted
from mkldist.errors import GramError
from mkldist.gram.cross_values import NewPoints
from mkldist.gram.plain_source import PlainSource
from mkldist.gram.predictor import RawPredictor
from mkldist.gram.sources import FeatureSource
from mkldist.gram.view import BankView
from mkldist.in_memory.given_arrays import real_array
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.in_memory.expansion import Expansion
    from mkldist.in_memory.given_features import Features


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
class FeatureOrigin:
    """Kernel functions on features.

    Parameters
    ----------
    features : Features
        The points.
    kernels : KernelList
        The M kernels.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    """

    features: Features
    kernels: KernelList
    cosine: bool

    @cached_property
    def source(self) -> FeatureSource | PlainSource:
        """Source of the values of the bank."""
        kind = PlainSource if is_sparse(self.features.points) else FeatureSource
        return kind(self.features.points, self.kernels, self.cosine)

    def select(self, kernels: Ints) -> FeatureOrigin:
        """See :meth:`Origin.select`."""
        return replace(self, kernels=self.kernels.select(kernels))

    def table(self) -> pd.DataFrame:
        """See :meth:`Origin.table`."""
        return function_table(self.kernels, self.features.names)

    def groups(self) -> Ints:
        """Return the feature subset of each kernel, (M,)."""
        return self.kernels.groups

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points, given by the same features as those of the bank."""
        from mkldist.kernels.point_checks import check_points

        _refuse_grams(grams)
        rows = self.features.like(new)
        check_points(self.kernels, rows, self.features.names, "X_new")

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            chosen, known = self.kernels.select(kernels), self.features.points[support]
            yield from evaluate(chosen, rows[points], known, cosine=self.cosine)

        return NewPoints(view, rows.shape[0], values)

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """See :meth:`Origin.expansion`."""
        from mkldist.in_memory.expansion import Expansion

        return Expansion.of(self.kernels, self.cosine, self.features.points, predictors)


def function_table(kernels: KernelList, names: Sequence[str]) -> pd.DataFrame:
    """Return a description of kernel functions, one row a kernel.

    Parameters
    ----------
    kernels : KernelList
        The kernels.
    names : sequence of str
        Names of the features or of the columns of texts.
    """
    import pandas as pd

    ends = kernels.subset_indptr
    subsets = np.empty(len(ends) - 1, dtype=object)
    for s in range(len(subsets)):
        columns = kernels.subset_indices[ends[s] : ends[s + 1]]
        subsets[s] = tuple(names[column] for column in columns.tolist())
    missing = np.full(len(kernels), np.nan)
    usual = dict.fromkeys(("function", "width", "degree", "offset"), missing)
    return pd.DataFrame(
        {
            **(usual | kernels.columns()),
            "features": subsets[kernels.subset],
            "name": kernels.names(names),
        }
    )


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
        _refuse_grams(grams)
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


def _refuse_grams(grams: Mapping[str, Any] | None) -> None:
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
