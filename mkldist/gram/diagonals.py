"""Weighted traces: sums over the self-similarities of a bank's kernels.

They need only n of a kernel's n² entries.  A bank reads these without a pass
(:meth:`mkldist.gram.bank.Bank.diagonals`); if a pass is made anyway, they are taken from it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mkldist.arrays import Floating, Floats
from mkldist.gram.bank import Bank, DiagonalPart
from mkldist.gram.requests import Diagonal


class DiagonalSums:
    """The answer to a :class:`Diagonal`, gathered part by part.

    Each sum adds one point after the other, so it does not depend on the sizes of the parts.

    Parameters
    ----------
    request : Diagonal
        The request.
    n_kernels : int
        Number M of kernels.

    Attributes
    ----------
    sums : (M, R) float64
        Sums over the parts so far.
    """

    def __init__(self, request: Diagonal, n_kernels: int) -> None:
        self._weights = request.weights
        self.sums = np.zeros((n_kernels, request.weights.shape[1]))

    def add(self, part: DiagonalPart) -> None:
        """Add some points of some kernels."""
        _add(part.values, self._weights[part.points], self.sums[part.kernels])


def read_diagonals(bank: Bank, gathered: Iterable[DiagonalSums]) -> None:
    """Gather sums without a pass.

    Parameters
    ----------
    bank : Bank
        The bank; its counter is advanced.
    gathered : iterable of DiagonalSums
        Answers to which every part is added.
    """
    takers = list(gathered)
    for part in bank.diagonals():
        for taker in takers:
            taker.add(part)
    bank.counter.diagonals += 1


def _add(values: Floating, weights: Floats, sums: Floats) -> None:
    """Add ``values @ weights`` to `sums`, (k, R), term by term."""
    terms = np.empty((len(values), len(weights) + 1))
    for r in range(weights.shape[1]):
        terms[:, 0] = sums[:, r]
        np.multiply(values, weights[:, r], out=terms[:, 1:])
        sums[:, r] = np.add.accumulate(terms, axis=1, out=terms)[:, -1]
