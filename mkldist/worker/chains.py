"""Chains of solvers: which solver starts from the solution of which."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from mkldist.worker.subproblems import Subproblem


def chains_of(subproblems: Iterable[Iterable[Subproblem]]) -> list[tuple[Subproblem, ...]]:
    """Return the subproblems of runs in chains, each in the order in which they start.

    The runs of a path are solved from the strongest regularisation to the weakest, each of their
    classes and inner folds on its own.  Every other subproblem is a chain by itself.

    Parameters
    ----------
    subproblems : iterable of iterables of Subproblem
        The subproblems of each run.
    """
    chains: dict[tuple[object, ...], list[Subproblem]] = {}
    for subproblem in chain.from_iterable(subproblems):
        key = subproblem.run.chain, subproblem.training_view, subproblem.number
        chains.setdefault(key, []).append(subproblem)
    return [
        tuple(sorted(links, key=lambda subproblem: subproblem.run.order))
        for links in chains.values()
    ]
