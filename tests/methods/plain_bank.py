"""Answers to a solver's requests by plain numpy on a (M, n, n) stack."""

from collections.abc import Callable
from typing import Any

import clarabel
import numpy as np
from scipy import sparse

from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii, Request
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution, Steps
from mkldist.solvers.lockstep import RequestCount


def reply(grams: np.ndarray, request: Request) -> np.ndarray:
    match request:
        case Combine(weights, np.ndarray() as kernels):
            return reply(grams[kernels], Combine(weights))
        case Combine(weights):
            return np.einsum("...m,mij->...ij", weights, grams)
        case Quadratic(vectors, np.ndarray() as kernels):
            return reply(grams[kernels], Quadratic(vectors))
        case Quadratic(vectors):
            if vectors.ndim == 1:
                return np.einsum("i,mij,j->m", vectors, grams, vectors)
            return np.einsum("ir,mij,jr->mr", vectors, grams, vectors)
        case Inner(matrices):
            return np.einsum("mij,rij->mr", grams, matrices)
        case Matvec(kernels, vectors):
            return grams[kernels] @ vectors
        case Diagonal(weights):
            return np.einsum("mii,ir->mr", grams, weights)
        case Radii(index):
            return squared_radii(grams if index is None else grams[:, index[:, None], index])


def run(
    steps: Steps, grams: np.ndarray, watch: Callable[[Request, Any], None] | None = None
) -> Solution:
    answer: Any = None
    count = RequestCount(len(grams))
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            return count.of(end.value) if isinstance(end.value, Solution) else end.value
        count.count(request)
        answer = reply(grams, request)
        if watch is not None:
            watch(request, answer)


def problem(grams: np.ndarray, y: np.ndarray, laplacian: Any = None, groups: Any = None) -> Problem:
    return Problem(y=y, n_kernels=len(grams), laplacian=laplacian, groups=groups)


def solve(
    method: str, grams: np.ndarray, y: np.ndarray, watch=None, laplacian=None, groups=None, **params
) -> Solution:
    """Solve a problem by a method, by its name."""
    own = METHODS[method]
    return run(own.solve(problem(grams, y, laplacian, groups), own.params(**params)), grams, watch)


_KNOWN: dict[bytes, float] = {}


def squared_radii(grams: np.ndarray) -> np.ndarray:
    """Return the squared radii of (M, n, n) Gram matrices, (M,)."""
    return np.array([squared_radius(K) for K in grams])


def squared_radius(K: np.ndarray) -> float:
    """Return max diag(K)'b - b'Kb over the simplex."""
    name = K.tobytes()
    if name not in _KNOWN:
        _KNOWN[name] = _solved(K)
    return _KNOWN[name]


def _solved(K: np.ndarray) -> float:
    n = len(K)
    centring = np.eye(n) - 1.0 / n
    centred = centring @ K @ centring
    scale = np.trace(centred) / n
    if scale <= 1e-14 * max(np.trace(K), 1e-300):
        return 0.0
    centred = centred / scale
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(2.0 * centred)),
        -np.diag(centred),
        sparse.csc_matrix(np.vstack([np.ones(n), -np.eye(n)])),
        np.concatenate([[1.0], np.zeros(n)]),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    b = np.maximum(solution.x, 0.0)
    b /= b.sum()
    return scale * float(np.diag(centred) @ b - b @ centred @ b)
