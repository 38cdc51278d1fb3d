"""Graph Laplacians, by which semi-supervised methods use points without labels, and their kernels.

Edges join each point to its k nearest neighbours, or to all points within a distance epsilon.  With
the weights w_ij >= 0 of the edges and the degrees ``D_ii = sum_j w_ij``, the Laplacian L is

    combinatorial: D - W,               f'Lf = 1/2 sum_ij w_ij (f_i - f_j)²
    normalised:    D^-1/2 (D - W) D^-1/2,  f'Lf = 1/2 sum_ij w_ij (f_i/√D_ii - f_j/√D_jj)²

Both are symmetric and positive semi-definite, and so is the power ``L^p``, the iterated Laplacian.

* An edge joins i and j if either is among the k nearest points of the other (Argyriou et al. 2005,
  whose experiments Hao et al. 2012 repeat).  A point is not its own neighbour, but its duplicates
  are its neighbours.  The choice among equally distant points is arbitrary.
* Heat weights are ``exp(-d_ij² / (2 width²))``.  The default width is the mean of d_ij over all
  points and their neighbours, before symmetrisation.
* A point without neighbours, which occurs only in epsilon graphs, has a zero row and column in
  both Laplacians: they leave the value of f there free.
* The cosine distance is ``d = 1 - cosine``; a zero vector has distance 1 from all other points.
* Precomputed distances (n, n) take the place of points: symmetric, not negative, 0 from itself.

The kernel of a graph with Laplacian L is ``G = L^+``.  Its functions are smooth on the graph: their
norm is that of the graph, ``f'G^+ f = f'L f``, for f without the components that L leaves free,
the constants on each connected component.  Several graphs, of other distances or numbers of
neighbours, are several kernels, which a method of multiple kernel learning combines.  A kernel of a
graph is known on the points of the graph alone.

References
----------
L. Guo, L. Jin, Laplacian support vector machines with multi-kernel learning, IEICE Transactions on
Information and Systems E94-D, 2011, step 3 of the algorithm (L = P - W).
Z. Hao, G. Yuan, X. Yang, Z. Chen, A primal method for multiple kernel learning, 2012, section 5.3
(k = 10).
A. Argyriou, M. Herbster, M. Pontil, Combining graph Laplacians for semi-supervised learning,
NIPS 18, 2005.
M. Belkin, P. Niyogi, V. Sindhwani, Manifold regularization, JMLR 7, 2006 (heat weights, L^p).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from pydantic import ValidationError

from mkldist.core.arrays import Array, Floats, Ints
from mkldist.errors import DataError
from mkldist.spec.datasets import GraphSpec

ROUNDING = 1e-6  # of distances in single precision, relative to the largest

__all__ = ["GraphSpec", "adjacency", "as_points", "graph_laplacian", "graph_spec"]


def graph_spec(options: Mapping[str, Any]) -> GraphSpec:
    """Return the graph that `options` describe, as in ``[graph]`` of a sweep file, checked."""
    try:
        return GraphSpec.model_validate(dict(options))
    except ValidationError as error:
        from mkldist.spec.load import most_telling, spec_error

        first = most_telling(error.errors())
        place = ".".join(["graph", *map(str, first["loc"])])
        raise spec_error(first, place, GraphSpec) from None


def graph_laplacian(x: Any, spec: GraphSpec) -> scipy.sparse.csr_array:
    """Return the graph Laplacian (n, n) of points (n, d), dense or sparse, to the power of `spec`.

    Where the distance of `spec` is precomputed, `x` are the distances (n, n).  The result is
    symmetric and positive semi-definite; higher powers have more nonzero entries.
    """
    [laplacian] = graph_laplacians(x, [spec])
    return laplacian


def graph_laplacians(x: Any, specs: Sequence[GraphSpec]) -> list[scipy.sparse.csr_array]:
    """Return the Laplacians of several graphs of the same points, as :func:`graph_laplacian` does.

    Graphs that differ in the number of neighbours, in weights or in the Laplacian share one search
    of neighbours, that of the largest number.
    """
    points = as_points(x)
    widest: dict[tuple[Any, ...], GraphSpec] = {}
    for spec in specs:
        search = _search(spec)
        if search not in widest or spec.neighbours > widest[search].neighbours:
            widest[search] = spec
    found = {search: _neighbours(points, spec) for search, spec in widest.items()}
    return [_laplacian(_edges(*found[_search(spec)], spec), spec) for spec in specs]


def _search(spec: GraphSpec) -> tuple[Any, ...]:
    """Return what decides the neighbours of a graph, apart from their number."""
    return spec.distance, spec.kind, spec.epsilon


def _laplacian(weights: scipy.sparse.csr_array, spec: GraphSpec) -> scipy.sparse.csr_array:
    """Return the Laplacian of the weights of edges, raised to the power of `spec`."""
    first: Any = scipy.sparse.csgraph.laplacian(weights, normed=spec.laplacian == "normalised")
    laplacian = scipy.sparse.csr_array(first)
    power = laplacian
    for _ in range(spec.power - 1):
        power = laplacian @ power
    symmetric = scipy.sparse.csr_array((power + power.T) * 0.5)
    symmetric.sort_indices()
    return symmetric


def adjacency(x: Any, spec: GraphSpec) -> scipy.sparse.csr_array:
    """Return the weights of the edges, (n, n), symmetric with a zero diagonal."""
    return _edges(*_neighbours(as_points(x), spec), spec)


def _edges(
    lengths: Sequence[Floats], columns: Sequence[Ints], spec: GraphSpec
) -> scipy.sparse.csr_array:
    """Return the weights of the edges between points and the first of their neighbours found."""
    n = len(columns)
    if spec.kind == "knn":
        lengths = [found[: spec.neighbours] for found in lengths]
        columns = [found[: spec.neighbours] for found in columns]
    rows = np.repeat(np.arange(n), [len(found) for found in columns])
    distance = np.concatenate([*lengths, np.empty(0)])
    entries = (_weights(distance, spec), (rows, np.concatenate([*columns, np.empty(0, np.intp)])))
    directed = scipy.sparse.csr_array(entries, shape=(n, n))
    return scipy.sparse.csr_array(directed.maximum(directed.T))


def as_points(x: Any) -> Any:
    """Return points, finite numbers, as a float64 array or as a csr_array in canonical form."""
    try:
        if _is_sparse(x):
            points: Any = scipy.sparse.csr_array(x, dtype=np.float64, copy=True)
            points.sum_duplicates()
            values: Any = points.data
        else:
            points = values = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        found = f"values that cannot be read as numbers: {error}"
        raise DataError("x", found, "numbers", "Encode text and categories") from error
    if points.ndim != 2 or 0 in points.shape:
        raise DataError("x", f"shape {points.shape}", "(n, d)", "Give one row per point")
    if not np.isfinite(values).all():
        raise DataError("x", "values that are not finite", "finite numbers", "Impute them first")
    return points


def _neighbours(points: Any, spec: GraphSpec) -> tuple[list[Floats], list[Ints]]:
    """Return each point's distances to its neighbours, and the neighbours' indices."""
    from sklearn.neighbors import NearestNeighbors

    n = points.shape[0]
    if spec.kind == "knn" and spec.neighbours >= n:
        found = f"{spec.neighbours} neighbours among {n} points"
        raise DataError("graph.neighbours", found, f"at most {n - 1}", "Lower it")
    if spec.distance == "precomputed":
        points = checked_distances(points, n, "x")
    search = NearestNeighbors(metric=spec.distance).fit(points)
    if spec.kind == "knn":
        lengths, columns = search.kneighbors(n_neighbors=spec.neighbours)
    else:
        lengths, columns = search.radius_neighbors(radius=spec.epsilon)
    return list(lengths), list(columns)


def checked_distances(distances: Array, n: int, where: str) -> Floats:
    """Return the distances between n points; refuse an array that cannot be such."""
    if distances.shape != (n, n) or _is_sparse(distances) or distances.dtype.kind not in "fiu":
        kind = "a sparse array" if _is_sparse(distances) else f"{distances.dtype}"
        raise DataError(
            where,
            f"{kind} of shape {distances.shape}",
            f"numbers of shape ({n}, {n}), the distances between the {n} points",
            "Compute them of the points that are left, in the order of the data",
        )
    found = np.asarray(distances, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # of numbers that are not finite, which are refused first
        least = ROUNDING * np.abs(found).max()
        for wrong, expected in (
            (~np.isfinite(found), "finite numbers"),
            (found < 0.0, "no distance below 0"),
            (np.diag(found.diagonal() > least), "0 on the diagonal"),
            (np.abs(found - found.T) > least, "the same distance as that of the opposite entry"),
        ):
            if wrong.any():
                i, j = np.argwhere(wrong)[0]
                entry, hint = f"entry ({i}, {j}) of {found[i, j]:g}", "Check that it is a distance"
                raise DataError(where, entry, expected, hint)
    return found


def _weights(distance: Floats, spec: GraphSpec) -> Floats:
    """Return the weights of edges, given their lengths."""
    if spec.weights == "binary" or not len(distance):
        return np.ones_like(distance)
    width = float(distance.mean()) if spec.width is None else spec.width
    # The width is 0 only if all neighbours are duplicates: every edge then has length 0, weight 1.
    return np.asarray(np.exp(-0.5 * (distance / width) ** 2)) if width else np.ones_like(distance)


def _is_sparse(x: Any) -> bool:
    return bool(scipy.sparse.issparse(x))


def graph_kernels(x: Any, specs: Sequence[GraphSpec]) -> Floats:
    """Return the kernels of M graphs between points, the pseudo-inverses of their Laplacians.

    They are (M, n, n), and zero between points of different components.

    >>> from mkldist.kernels.graph import graph_spec
    >>> x = [[0.0], [1.0], [2.0]]
    >>> graph_kernels(x, [graph_spec({"neighbours": 1})])[0].round(3).tolist()[0]
    [0.556, -0.111, -0.444]
    """
    laplacians = graph_laplacians(x, specs)
    n = laplacians[0].shape[0]
    kernels = np.empty((len(laplacians), n, n))
    for kernel, laplacian in zip(kernels, laplacians, strict=True):
        inverse = scipy.linalg.pinvh(laplacian.toarray())
        kernel[...] = 0.5 * (inverse + inverse.T)
    return kernels
