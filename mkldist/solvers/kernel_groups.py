"""Groups of kernels: a method on M kernels made one on the sums of G groups of them.

The least ``(sum_{m in g} ||f_m||^2)^(1/2)`` over functions f_m of a group that add up to f is the
norm of f by the group's sum of kernels.  A penalty on these norms, l2 within groups, is therefore
any method's penalty on the norms of G kernels, each the sum of a group.  :func:`on_groups` runs the
method on them: it turns each request for group kernels into one for the bank's kernels, so that no
sum is ever stored.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Request
from mkldist.solvers.base import Solution, Steps

Result = TypeVar("Result")


class KernelGroups:
    """Groups of a bank's kernels, and the factor of each kernel in the sum of its group.

    Parameters
    ----------
    labels : (M,) array
        Group of each kernel; kernels of equal labels form a group.
    mean : bool
        True for the mean of a group's kernels in place of their sum.

    Attributes
    ----------
    group : (M,) intp
        Number of each kernel's group, from 0 in the order of the labels.
    factor : (M,) float64
        Factor of each kernel: 1, or 1 / (size of its group).
    """

    def __init__(self, labels: Ints, *, mean: bool) -> None:
        _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        self.group: Ints = group.reshape(-1).astype(np.intp)
        self.factor: Floats = 1.0 / sizes[self.group] if mean else np.ones(len(self.group))
        self._sizes: Ints = sizes.astype(np.intp)

    def __len__(self) -> int:
        return len(self._sizes)

    @cached_property
    def _members(self) -> tuple[Ints, Ints]:
        """The kernels in order of their groups, (M,), and where each group begins, (G,)."""
        return np.argsort(self.group, kind="stable"), np.cumsum(self._sizes) - self._sizes

    def members(self, groups: Ints) -> Ints:
        """Return the kernels of some groups, one group after the other."""
        order, begins = self._members
        parts = [order[begins[g] : begins[g] + self._sizes[g]] for g in groups.tolist()]
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])

    def spread(self, weights: Floats) -> Floats:
        """Return weights (..., G) of group kernels as weights (..., M) of the bank's kernels."""
        return weights[..., self.group] * self.factor

    def sums(self, answer: Floats) -> Floats:
        """Return the sums over groups, (G, ...), of an answer (M, ...) linear in the kernels."""
        order, begins = self._members
        scaled = (self.factor * answer.T).T
        return np.add.reduceat(scaled[order], begins, axis=0)


def on_groups(steps: Steps, groups: KernelGroups) -> Generator[Request, Any, Solution]:
    """Run a solver on group kernels by requests to the bank; return its solution on its kernels.

    The state of the solution stays that of the group kernels.

    Parameters
    ----------
    steps : generator
        A solver on ``len(groups)`` kernels, which asks for no radii.
    groups : KernelGroups
        The groups.
    """
    solution = yield from asked_of_groups(steps, groups)
    return replace(solution, kernel_weights=groups.spread(solution.kernel_weights))


def asked_of_groups(
    steps: Generator[Request, Any, Result], groups: KernelGroups
) -> Generator[Request, Any, Result]:
    """Turn the requests of a generator for group kernels into those for the bank's kernels.

    Parameters
    ----------
    steps : generator
        Asks ``len(groups)`` kernels, and for no radii.
    groups : KernelGroups
        The groups.
    """
    answer: Any = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result
        answer = yield from _answered(request, groups)


def _answered(request: Request, groups: KernelGroups) -> Generator[Request, Any, Floats]:
    """Answer a request for group kernels by requests for the bank's kernels."""
    match request:
        case Combine(weights, None):
            found: Floats = yield replace(request, weights=groups.spread(weights))
            return found
        case Combine(weights, np.ndarray() as asked):
            members = groups.members(asked)
            of_groups = np.zeros((*weights.shape[:-1], len(groups)))
            of_groups[..., asked] = weights
            of_members = groups.spread(of_groups)[..., members]
            found = yield replace(request, weights=of_members, kernels=members)
            return found
        case Quadratic(vectors, None):
            return groups.sums((yield Quadratic(vectors)))
        case Quadratic(vectors, np.ndarray() as asked):
            products = yield from _products(asked, vectors, groups)
            forms: Floats = np.einsum("n...,sn...->s...", vectors, products)
            return forms
        case Matvec(asked, vectors):
            return (yield from _products(asked, vectors, groups))
        case Inner() | Diagonal():
            return groups.sums((yield request))
        case _:
            raise TypeError(f"{type(request).__name__} of a sum is no sum over its kernels")


def _products(
    asked: Ints, vectors: Floats, groups: KernelGroups
) -> Generator[Request, Any, Floats]:
    """Return ``K_g v`` of some groups, (S, n) or (S, n, R), by one sum of kernels after another."""
    products: Floats = np.empty((len(asked), *vectors.shape))
    memory: Floats | None = None
    for product, g in zip(products, asked.tolist(), strict=True):
        members = groups.members(np.array([g]))
        K = yield Combine(groups.factor[members], members, memory, thin=True)
        product[...] = K @ vectors
        memory = K if isinstance(K, np.ndarray) else None
    return products
