"""Products of a matrix kept as upper tiles with few vectors, without unpacking the matrix."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from mkldist.gram.layout import TileLayout

Floats = npt.NDArray[np.float64]

FEW = 4  # vectors, up to which reading the tiles costs more than multiplying them


def multiply(layout: TileLayout, packed: npt.NDArray[np.floating], vectors: Floats) -> Floats:
    """Return ``K V`` for one matrix K.

    Few vectors are multiplied with the tiles as they lie, each entry read once and used for both
    of its places; for many vectors the matrix is unpacked and handed to the BLAS.

    Parameters
    ----------
    layout : TileLayout
        Of n points.
    packed : (E,) float32 or float64
        The kept entries of K.
    vectors : (n,) or (n, R) float64
        V.

    Returns
    -------
    (n,) or (n, R) float64
    """
    if vectors.ndim == 2 and vectors.shape[1] > FEW:
        product: Floats = layout.unpack(packed.astype(np.float64, copy=False)) @ vectors
        return product
    columns = vectors[:, None] if vectors.ndim == 1 else vectors
    padded = np.zeros((columns.shape[1], layout.side * layout.tile))
    padded[:, : layout.n_points] = columns.T
    sums = np.zeros_like(padded)
    tiles = packed.reshape(layout.n_tiles, layout.tile, layout.tile)
    for vector, total in zip(padded, sums, strict=True):
        _add_product(tiles, layout.side, vector, total)
    answer: Floats = sums[:, : layout.n_points].T
    return answer[:, 0] if vectors.ndim == 1 else answer


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator,unused-ignore]
def _add_product(tiles: npt.NDArray[np.floating], side: int, vector: Floats, total: Floats) -> None:
    """Add K @ vector to `total`; both padded to whole tiles."""
    edge = tiles.shape[1]
    t = 0
    for row in range(side):
        for col in range(row, side):
            for i in range(edge):
                line = tiles[t, i]
                here = row * edge + i
                factor = vector[here]
                sum_of_row = 0.0
                if row == col:
                    for j in range(edge):
                        sum_of_row += line[j] * vector[col * edge + j]
                else:
                    for j in range(edge):
                        there = col * edge + j
                        sum_of_row += line[j] * vector[there]
                        total[there] += line[j] * factor
                total[here] += sum_of_row
            t += 1
