"""Answers to a solver's requests by plain numpy on a (M, n, n) stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii, Request
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Problem, Solution, Steps
from mkldist.solvers.lockstep import RequestCount
from tests.methods.balls import squared_radii


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


def solve(method: str, grams: np.ndarray, y: np.ndarray, watch=None, **params: Any) -> Solution:
    """Solve a problem by a method, by its name."""
    own = METHODS[method]
    return run(own.solve(problem(grams, y), own.params(**params)), grams, watch)
