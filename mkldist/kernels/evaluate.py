"""Values of many kernels at once, feature subset by feature subset.

The bases of a subset (inner products, distances) are computed once and every kernel of the subset
is one or two passes over them, in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from mkldist.kernels import functions
from mkldist.kernels.functions import Base
from mkldist.kernels.kernel_list import KernelList

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TilePoints:
    """The points of t tiles: tile i is ``rows[row_index[i]]`` against ``cols[col_index[i]]``.

    Parameters
    ----------
    rows : (n, d) float64
        Points along the rows.
    cols : (m, d) float64
        Points along the columns; the same array as `rows` for a Gram matrix.
    row_index : (t, r) intp
        Rows of each tile.
    col_index : (t, c) intp
        Columns of each tile.
    diagonal : (D,) intp
        Tiles that lie on the diagonal of a Gram matrix, ``row_index == col_index``.
    """

    rows: Floats
    cols: Floats
    row_index: Ints
    col_index: Ints
    diagonal: Ints

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape (t, r, c) of a stack of tiles."""
        return (*self.row_index.shape, self.col_index.shape[1])


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
    rows : (r, d) float64
        Points x.
    cols : (c, d) float64
        Points z.
    cosine : bool
        Divide by ``sqrt(k(x, x) k(z, z))``; a point of zero self-similarity gets zeros.
    symmetric : bool
        `rows` and `cols` are equal: make the result exactly symmetric, and exactly 1 on the
        diagonal for gaussian, laplacian-rbf and cosine kernels.  Implied by ``rows is cols``.
    out : (M, r, c) float array, optional
        Where to write; float32 is rounded to from float64.

    Returns
    -------
    (M, r, c) float64, or `out`
    """
    symmetric = symmetric or rows is cols
    shape = (len(kernels), len(rows), len(cols))
    result = np.empty(shape) if out is None else out
    points = TilePoints(
        rows,
        cols,
        np.arange(len(rows))[None],
        np.arange(len(cols))[None],
        np.arange(1 if symmetric else 0),
    )
    evaluate_tiles(kernels, points, result[:, None], cosine=cosine)
    return result


def evaluate_tiles(
    kernels: KernelList,
    points: TilePoints,
    out: npt.NDArray[np.floating],
    *,
    cosine: bool = False,
) -> None:
    """Write the values of M kernels on t tiles to `out`, (M, t, r, c) float32 or float64.

    Values that overflow become infinite without a warning.
    """
    workspace = _Workspace(points)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for run in kernels.runs():
            workspace.enter(kernels.features_of(run.start))
            for m in range(run.start, run.stop):
                _evaluate_kernel(kernels, m, workspace, out[m], cosine=cosine)


@dataclass(eq=False)
class _Workspace:
    """The points of one feature subset at a time, and the bases computed from them so far."""

    points: TilePoints
    left: Floats = field(init=False)
    right: Floats = field(init=False)
    centre: Floats = field(init=False)
    known: set[Base] = field(default_factory=set)
    buffers: dict[Base, Floats] = field(default_factory=dict)
    scratch: Floats | None = None

    def enter(self, columns: npt.NDArray[np.int32]) -> None:
        """Turn to the features of `columns`."""
        points = self.points
        rows, cols = points.rows[:, columns], points.cols[:, columns]
        self.left, self.right = rows[points.row_index], cols[points.col_index]
        self.centre = cols.mean(axis=0) if len(cols) else np.zeros(len(columns))
        self.known.clear()

    def base(self, base: Base) -> Floats:
        """Return one base of the current features, (t, r, c), computed at the first call."""
        if base not in self.buffers:
            self.buffers[base] = np.empty(self.points.shape)
        out = self.buffers[base]
        if base not in self.known:
            self._compute(base, out)
            self.known.add(base)
        return out

    def target(self, out: npt.NDArray[np.floating]) -> Floats:
        """Return `out` if float64 can be written to it, else a scratch array of its shape."""
        if out.dtype == np.float64:
            return cast("Floats", out)
        if self.scratch is None:
            self.scratch = np.empty(self.points.shape)
        return self.scratch

    def _compute(self, base: Base, out: Floats) -> None:
        if base is Base.INNER_PRODUCT:
            functions.inner_products(self.left, self.right, out)
        elif base is Base.SQUARED_DISTANCE:
            functions.squared_distances(self.left, self.right, self.centre, out)
        else:
            functions.city_block_distances(self.left, self.right, out)
        for tile in self.points.diagonal:
            _mirror(out[tile])
            if base is not Base.INNER_PRODUCT:
                np.fill_diagonal(out[tile], 0.0)


def _evaluate_kernel(
    kernels: KernelList,
    m: int,
    workspace: _Workspace,
    out: npt.NDArray[np.floating],
    *,
    cosine: bool,
) -> None:
    """Write one kernel's values, (t, r, c), to `out`."""
    function = kernels.function_of(m)
    parameter, offset = float(kernels.parameter[m]), float(kernels.offset[m])
    target = workspace.target(out)
    functions.apply(function, workspace.base(function.base), parameter, offset, target)
    if cosine and function.base is Base.INNER_PRODUCT:

        def lengths(points: Floats) -> Floats:
            norms = np.einsum("trs,trs->tr", points, points)
            return functions.self_similarities(function, norms, parameter, offset)

        _divide_by_lengths(target, workspace, lengths)
    if target is not out:
        out[...] = target


def _divide_by_lengths(
    values: Floats, workspace: _Workspace, squared_lengths: Callable[[Floats], Floats]
) -> None:
    """Turn inner products in feature space into cosines, in place."""
    left = _inverse_roots(squared_lengths(workspace.left))
    right = _inverse_roots(squared_lengths(workspace.right))
    # The product of both factors first: it is the same for (x, z) and (z, x).
    values *= left[:, :, None] * right[:, None, :]
    for tile in workspace.points.diagonal:
        np.fill_diagonal(values[tile], np.where(left[tile] > 0, 1.0, 0.0))


def _inverse_roots(values: Floats) -> Floats:
    """Return ``1 / sqrt(value)``, 0 where a value is 0."""
    return np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)


def _mirror(square: Floats) -> None:
    """Copy the upper triangle of a square matrix to the lower, in place."""
    upper = np.triu(square, 1)
    np.copyto(square, upper.T, where=np.tri(len(square), k=-1, dtype=bool))
