"""Chains of solvers: which solver starts from the solution of which."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from mkldist.worker.subproblems import Piece


def chains_of(pieces: Iterable[Iterable[Piece]]) -> list[tuple[Piece, ...]]:
    """Return the pieces of runs in chains, each in the order in which they start.

    The runs of a path are solved from the strongest regularisation to the weakest, each of their
    classes and inner folds on its own.  Every other piece is a chain by itself.

    Parameters
    ----------
    pieces : iterable of iterables of Piece
        The pieces of each run.
    """
    chains: dict[tuple[object, ...], list[Piece]] = {}
    for piece in chain.from_iterable(pieces):
        key = piece.run.chain, piece.sight, piece.number
        chains.setdefault(key, []).append(piece)
    return [tuple(sorted(links, key=lambda piece: piece.run.order)) for links in chains.values()]
