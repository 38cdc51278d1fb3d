"""Origin of kernels of features: their functions, names, and values at new points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.cross_values import NewPoints
from mkldist.gram.plain_source import PlainSource
from mkldist.gram.predictor import RawPredictor
from mkldist.gram.sources import FeatureSource
from mkldist.gram.view import BankView
from mkldist.in_memory.origins import refuse_grams
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.in_memory.expansion import Expansion
    from mkldist.in_memory.given_features import Features


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

        refuse_grams(grams)
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
