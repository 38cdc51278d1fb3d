"""Values of many kernels at once, feature subset by feature subset.

The bases of a subset (inner products, distances) are computed once.  Each kernel of the subset then
takes one or two passes over a base.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.kernels import functions
from mkldist.kernels.functions import Base
from mkldist.kernels.gaps import gaps_of, without_gaps, zero_gaps
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.sparse_points import is_sparse, squared_lengths


def evaluate(
    kernels: KernelList,
    rows: Floats,
    cols: Floats,
    *,
    cosine: bool = False,
    symmetric: bool = False,
    out: Floats | None = None,
) -> Floats:
    """Return ``k_m(x, z)`` for every kernel, row and column.

    Parameters
    ----------
    kernels : KernelList
        M kernels.
    rows : (r, d) float64 array or csr_array
        Points x.  A kernel is zero where a point lacks one of its features, which is then NaN.
    cols : (c, d) float64 array or csr_array
        Points z, of the kind of x.  Kernels of city-block distances take no sparse points.
    cosine : bool
        Divide by ``sqrt(k(x, x) k(z, z))``; values of points with ``k(x, x) = 0`` become 0.
    symmetric : bool
        True if `rows` and `cols` are equal: the result is then exactly symmetric, and exactly 1 on
        the diagonal of gaussian, laplacian-rbf and cosine kernels.  Implied by ``rows is cols``.
    out : (M, r, c) float array, optional
        Array to write to; float64 values are rounded if it is float32.

    Returns
    -------
    (M, r, c) float64, or `out`
    """
    result = np.empty((len(kernels), rows.shape[0], cols.shape[0])) if out is None else out
    if gaps_of(rows) is not None or gaps_of(cols) is not None:
        filled = without_gaps(rows)
        others = filled if symmetric or rows is cols else without_gaps(cols)
        evaluate(kernels, filled, others, cosine=cosine, out=result)
        zero_gaps(kernels, rows, cols, result)
        return result
    workspace = _Workspace(rows, cols, symmetric or rows is cols)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for run in kernels.runs():
            workspace.enter(kernels.features_of(run.start))
            for m in range(run.start, run.stop):
                _evaluate_kernel(kernels, m, workspace, result[m], cosine=cosine)
    return result


@dataclass(eq=False)
class _Workspace:
    """Points restricted to one feature subset at a time, and the bases computed so far."""

    rows: Floats
    cols: Floats
    symmetric: bool
    left: Floats = field(init=False)
    right: Floats = field(init=False)
    centre: Floats = field(init=False)
    known: set[Base] = field(default_factory=set)
    buffers: dict[Base, Floats] = field(default_factory=dict)
    scratch: Floats | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The shape (r, c) of one kernel's values."""
        return self.rows.shape[0], self.cols.shape[0]

    def enter(self, columns: npt.NDArray[np.int32]) -> None:
        """Restrict the points to the features of `columns`, and forget the bases."""
        self.known.clear()
        if is_sparse(self.rows):
            whole = len(columns) == self.rows.shape[1]
            self.left = self.rows if whole else self.rows[:, columns]
            self.right = self.cols if whole else self.cols[:, columns]
            self.centre = np.zeros(0)
            return
        rows, cols = self.rows[:, columns], self.cols[:, columns]
        self.centre = cols.mean(axis=0) if len(cols) else np.zeros(len(columns))
        self.left, self.right = np.ascontiguousarray(rows), np.ascontiguousarray(cols)

    def base(self, base: Base) -> Floats:
        """Return one base of the current features, (r, c); the first call computes it."""
        if base not in self.buffers:
            self.buffers[base] = np.empty(self.shape)
        out = self.buffers[base]
        if base not in self.known:
            self._compute(base, out)
            self.known.add(base)
        return out

    def target(self, out: npt.NDArray[np.floating]) -> Floats:
        """Return `out` if it is float64, else a float64 scratch array of its shape."""
        if out.dtype == np.float64:
            return cast("Floats", out)
        if self.scratch is None:
            self.scratch = np.empty(self.shape)
        return self.scratch

    def _compute(self, base: Base, out: Floats) -> None:
        if base is Base.INNER_PRODUCT:
            functions.inner_products(self.left, self.right, out)
        elif base is Base.SQUARED_DISTANCE:
            functions.squared_distances(self.left, self.right, self.centre, out)
        else:
            functions.city_block_distances(self.left, self.right, out)
        if self.symmetric:
            _mirror(out)
            if base is not Base.INNER_PRODUCT:
                np.fill_diagonal(out, 0.0)


def _evaluate_kernel(
    kernels: KernelList,
    m: int,
    workspace: _Workspace,
    out: npt.NDArray[np.floating],
    *,
    cosine: bool,
) -> None:
    """Write one kernel's values, (r, c), to `out`."""
    function = kernels.function_of(m)
    parameter, offset = float(kernels.parameter[m]), float(kernels.offset[m])
    target = workspace.target(out)
    functions.apply(function, workspace.base(function.base), parameter, offset, target)
    if cosine and function.base is Base.INNER_PRODUCT:

        def lengths(points: Floats) -> Floats:
            norms = squared_lengths(points)
            return functions.self_similarities(function, norms, parameter, offset)

        _divide_by_lengths(target, workspace, lengths)
    if target is not out:
        out[...] = target


def _divide_by_lengths(
    values: Floats, workspace: _Workspace, squared_lengths: Callable[[Floats], Floats]
) -> None:
    """Turn inner products in feature space into cosines, in place."""
    left = functions.inverse_lengths(squared_lengths(workspace.left))
    right = functions.inverse_lengths(squared_lengths(workspace.right))
    # The product of both factors comes first: it is the same number for (x, z) and (z, x), so that
    # the result is exactly symmetric.
    values *= left[:, None] * right
    if workspace.symmetric:
        np.fill_diagonal(values, np.where(left > 0, 1.0, 0.0))


def _mirror(square: Floats) -> None:
    """Copy the upper triangle of a square matrix to the lower, in place."""
    upper = np.triu(square, 1)
    np.copyto(square, upper.T, where=np.tri(len(square), k=-1, dtype=bool))
