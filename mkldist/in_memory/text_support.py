"""Kernels of texts in decision functions, and the texts of the support points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.gram.cross_values import GROUP_BYTES
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList


@dataclass(frozen=True, eq=False)
class TextSupport:
    """Kernels of texts, and the texts of the support points.

    Parameters
    ----------
    kernels : KernelList
        The kernels.
    points : (s, t) array of str objects
        The texts; empty where a point has none.
    """

    kernels: KernelList
    points: Array

    def select(self, kernels: Ints, points: Ints) -> TextSupport:
        """Return some of the kernels at some of the points."""
        return TextSupport(self.kernels.select(kernels), self.points[points])

    def on_columns(self, columns: Ints) -> TextSupport:
        """Return the same of some columns of texts alone, which contain all that kernels use.

        Parameters
        ----------
        columns : (c,) intp
            The columns, ascending.
        """
        indices = np.searchsorted(columns, self.kernels.subset_indices).astype(np.int32)
        return TextSupport(replace(self.kernels, subset_indices=indices), self.points[:, columns])

    def values(self, texts: Array, *, cosine: bool) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the values of each kernel between some texts and the support points.

        Parameters
        ----------
        texts : (n, t) array of str objects
            The texts; kernels are zero where one is empty.
        cosine : bool
            True if kernels are scaled to unit self-similarities.

        Yields
        ------
        slice, int, and (r, s) float64
            Rows of `texts`, the kernel, and its values.
        """
        step = max(1, GROUP_BYTES // (8 * max(1, len(self.points))))
        for start in range(0, len(texts), step):
            rows = slice(start, min(start + step, len(texts)))
            for m in range(len(self.kernels)):
                one = self.kernels.select([m])
                yield rows, m, evaluate(one, texts[rows], self.points, cosine=cosine)[0]
