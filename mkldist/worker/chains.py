"""Chains of subproblems, in which each solver starts from the solution of the one before."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from mkldist.worker.subproblems import Subproblem


def chains_of(subproblems: Iterable[Iterable[Subproblem]]) -> list[tuple[Subproblem, ...]]:
    """Return the subproblems of runs in chains, each in the order in which they are solved.

    The runs of a path are solved from the strongest regularisation to the weakest, and every class
    and inner fold of them has a chain of its own.  A subproblem of any other run is a chain by
    itself.

    Parameters
    ----------
    subproblems : iterable of iterables of Subproblem
        The subproblems of each run.
    """
    chains: dict[tuple[object, ...], list[Subproblem]] = {}
    for subproblem in chain.from_iterable(subproblems):
        key = subproblem.run.chain, subproblem.training_view, subproblem.class_number
        chains.setdefault(key, []).append(subproblem)
    return [
        tuple(sorted(links, key=lambda subproblem: subproblem.run.order))
        for links in chains.values()
    ]
