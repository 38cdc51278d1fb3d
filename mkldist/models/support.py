"""Support vectors of several decision functions as arrays of a file, each vector once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.data.texts import as_arrays, from_arrays
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.sealed import Arrays

TEXTS = ("texts.content", "texts.ends")
SPARSE = ("points.data", "points.indices", "points.indptr", "points.shape")


def packed_points(
    parts: Sequence[Floats], texts: Sequence[Array] | None = None
) -> tuple[list[Ints], Arrays]:
    """Return the places of each part's points among all, and the arrays of these.

    Points are the same where all of their bits are: NaN marks features that a point lacks.

    Parameters
    ----------
    parts : sequence of (s, d) float64 array or csr_array
        Points, all dense or all sparse.
    texts : sequence of (s, t) array of str objects, optional
        Texts of these points.
    """
    first: dict[tuple[bytes, tuple[str, ...]], int] = {}
    kept: list[tuple[int, int]] = []
    places = []
    for number, points in enumerate(parts):
        own = np.empty(points.shape[0], dtype=np.int64)
        for row in range(points.shape[0]):
            own_texts = () if texts is None else tuple(texts[number][row].tolist())
            key = _content(points, row), own_texts
            if key not in first:
                first[key] = len(first)
                kept.append((number, row))
            own[row] = first[key]
        places.append(own)
    rows = [np.array([r for n, r in kept if n == number], int) for number in range(len(parts))]
    chosen = [points[own] for points, own in zip(parts, rows, strict=True)]
    if not is_sparse(parts[0]):
        arrays = {"points": np.concatenate(chosen)}
        if texts is not None:
            kept_texts = np.concatenate([own[r] for own, r in zip(texts, rows, strict=True)])
            arrays |= dict(zip(TEXTS, as_arrays(kept_texts), strict=True))
        return places, arrays
    from scipy.sparse import csr_array, vstack

    together = csr_array(vstack(chosen))
    parts_of = (together.data, together.indices, together.indptr, np.array(together.shape))
    return places, dict(zip(SPARSE, parts_of, strict=True))


def unpacked_points(arrays: Arrays) -> Any:
    """Return the points of :func:`packed_points`."""
    if "points" in arrays:
        return arrays["points"]
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (arrays[name] for name in SPARSE)
    return csr_array((data, indices, indptr), shape=tuple(shape.tolist()))


def unpacked_texts(arrays: Arrays) -> Array | None:
    """Return the texts of :func:`packed_points`; None without any."""
    if TEXTS[0] not in arrays:
        return None
    content, ends = (arrays[name] for name in TEXTS)
    return from_arrays(content, ends)


def points_at(points: Any, rows: Ints) -> Any:
    """Return some of the points."""
    return points[rows] if is_sparse(points) else np.ascontiguousarray(points[rows])


def _content(points: Any, row: int) -> bytes:
    """Return the bits of a point."""
    if not is_sparse(points):
        return bytes(points[row].tobytes())
    entries = slice(points.indptr[row], points.indptr[row + 1])
    return bytes(points.indices[entries].tobytes() + points.data[entries].tobytes())
