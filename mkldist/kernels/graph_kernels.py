"""Kernels of graphs, the pseudo-inverses of their Laplacians.

The kernel of a graph with Laplacian L is ``G = L^+``.  Its functions are smooth on the graph: their
norm is that of the graph, ``f'G^+ f = f'L f``, for f without the components that L leaves free,
the constants on each connected component.  Several graphs, of other distances or numbers of
neighbours, are several kernels, which a method of multiple kernel learning combines.

A kernel of a graph is known on the points of the graph alone.

References
----------
A. Argyriou, M. Herbster, M. Pontil, Combining graph Laplacians for semi-supervised learning,
NIPS 18, 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from mkldist.arrays import Floats
from mkldist.kernels.graph import graph_laplacians
from mkldist.spec.graph import GraphSpec


def graph_kernels(x: Any, specs: Sequence[GraphSpec]) -> Floats:
    """Return the kernels of graphs between points, the pseudo-inverses of their Laplacians.

    Parameters
    ----------
    x : (n, d) array-like or scipy sparse
        Points, as for :func:`mkldist.kernels.graph.graph_laplacian`.
    specs : sequence of GraphSpec
        The M graphs.

    Returns
    -------
    (M, n, n) float64
        Symmetric and positive semi-definite; zero between points of different components.

    Raises
    ------
    mkldist.errors.DataError
        If the points have no such graph.

    Examples
    --------
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
