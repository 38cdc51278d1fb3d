"""Small semi-supervised problems: points on curves, a few labels, a graph of nearest neighbours."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

WIDTHS = (0.2, 0.5, 1.0, 3.0)


@dataclass(frozen=True, eq=False)
class Manifold:
    x: np.ndarray
    truth: np.ndarray
    y: np.ndarray
    grams: np.ndarray
    laplacian: sparse.csr_array


def grams_between(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    return np.array([rbf_kernel(x, z, gamma=1 / (2 * s**2)) for s in WIDTHS])


def manifold(name: str, n: int = 120, per_class: int = 2, seed: int = 0) -> Manifold:
    """Return two moons or two circles with `per_class` labels a class."""
    rng = np.random.default_rng(seed)
    if name == "moons":
        x, classes = make_moons(n, noise=0.05, random_state=seed)
    else:
        x, classes = make_circles(n, noise=0.03, factor=0.4, random_state=seed)
    truth = np.where(classes == 1, 1.0, -1.0)
    y = np.zeros(n)
    for sign in (-1.0, 1.0):
        kept = rng.choice(np.flatnonzero(truth == sign), per_class, replace=False)
        y[kept] = sign
    W = kneighbors_graph(x, 6)
    W = W.maximum(W.T)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return Manifold(x, truth, y, grams_between(x, x), sparse.csr_array(sparse.diags(degrees) - W))


def penalised_losses(
    shape: Manifold, d: np.ndarray, alpha: np.ndarray, b: float, gamma_a: float, gamma_i: float
) -> float:
    """F of (18) in plain numpy."""
    v = shape.grams @ alpha
    smooth = np.array([v_m @ (shape.laplacian @ v_m) for v_m in v])
    labelled = shape.y != 0
    slack = np.maximum(0, 1 - shape.y * (d @ v + b))[labelled]
    return 0.5 * (gamma_a * (d @ v) @ alpha + gamma_i * d @ smooth + slack @ slack)


EDGES = ("all labelled", "one label", "zero Laplacian", "zero kernels", "dense Laplacian")


def at_edge(edge: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return Gram matrices, labels and a Laplacian of 50 points, one of them extreme."""
    shape = manifold("moons", n=50, per_class=1 if edge == "one label" else 2)
    grams, y, laplacian = shape.grams, shape.y, shape.laplacian
    match edge:
        case "all labelled":
            y = shape.truth
        case "zero Laplacian":
            laplacian = sparse.csr_array((50, 50))
        case "zero kernels":
            grams = np.zeros_like(grams)
        case "dense Laplacian":
            laplacian = laplacian.toarray()
    return grams, y, laplacian
