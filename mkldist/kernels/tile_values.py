"""Values of kernels on tiles of a Gram matrix: compiled where there is a loop, else by tile.

Only the loop knows many kernels at a time.  Kernels of other functions take a few temporary arrays
of the size of a tile.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mkldist.core.arrays import Bools, Floating, Floats, Ints
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.gram_tiles import COMPILED, evaluate_gram_tiles
from mkldist.kernels.kernel_list import KernelList


def fill_tiles(
    kernels: KernelList,
    columns: Floats,
    rows: Ints,
    cols: Ints,
    out: Floating,
    *,
    cosine: bool = False,
) -> None:
    """Write the values of M kernels on t tiles of their Gram matrices to `out`.

    Parameters, exact symmetry and zeros behind the last point are those of
    :func:`mkldist.kernels.gram_tiles.evaluate_gram_tiles`, for all kernel functions.
    """
    for some, is_compiled in _stretches(kernels):
        chosen = kernels.select(some) if some != slice(0, len(kernels)) else kernels
        if is_compiled:
            evaluate_gram_tiles(chosen, columns, rows, cols, out[some], cosine=cosine)
        else:
            _fill_plainly(chosen, columns, rows, cols, out[some], cosine=cosine)


def _stretches(kernels: KernelList) -> Iterator[tuple[slice, bool]]:
    """Yield the slices of adjacent kernels that are all compiled or all not, and which it is."""
    compiled: Bools = kernels.function < len(COMPILED)
    starts = [0, *(np.flatnonzero(compiled[1:] != compiled[:-1]) + 1).tolist(), len(kernels)]
    for start, stop in itertools.pairwise(starts):
        if start < stop:
            yield slice(start, stop), bool(compiled[start])


def _fill_plainly(
    kernels: KernelList, columns: Floats, rows: Ints, cols: Ints, out: Floating, *, cosine: bool
) -> None:
    """Write the values of kernels without a loop, tile by tile."""
    edge = out.shape[2]
    for t, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
        left, right = (columns[:, side * edge : (side + 1) * edge].T for side in (i, j))
        r, c = len(left), len(right)
        out[:, t, r:] = 0.0
        out[:, t, :r, c:] = 0.0
        evaluate(kernels, left, right, cosine=cosine, symmetric=bool(i == j), out=out[:, t, :r, :c])
