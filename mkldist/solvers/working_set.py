"""The few kernels that a simplex-weighted method works on between its passes over all of them.

Of thousands of kernels some dozens get a weight.  A method solves its problem on a working set of
kernels, which costs only these, and makes a pass over the bank to see whether others belong to it.
For a dual point alpha of the inner machine,

    1'alpha - 1/2 max_m q_m(alpha*y) <= optimum,

so that the pass which looks for such kernels certifies the solution when there are none.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.requests import Combine, Matvec, Quadratic, Request
from mkldist.solvers.screening import Candidates

FIRST_KERNELS = 20
PASS_SHARE = 2000  # of all kernels, that are taken at once where a pass costs far more than they
SMALL = 40  # kernels, of which a working set is not worth its trouble
SOLVED = 0.3  # of the gap of the last pass, to which the working set is solved before the next
SOLVED_TOL = 0.7  # of the tolerance, to which it need not be solved any better


class WorkingSet:
    """Some of M kernels.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    everything : bool
        Work on all of them, and make every question a pass.

    Attributes
    ----------
    everything : bool
        Whether it was so from the start, as it is of few kernels; a working set that has grown to
        all kernels has them in an order of its own and stays one.
    kernels : (S,) intp
        Those taken, in the order in which they were.
    """

    def __init__(self, n_kernels: int, *, everything: bool) -> None:
        self._n_kernels = n_kernels
        self.everything = everything or n_kernels <= SMALL
        self.kernels: Ints = np.arange(n_kernels if self.everything else 0)
        self.candidates = Candidates(n_kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    @property
    def passes(self) -> int:
        """Passes made."""
        return self.candidates.passes

    def spread(self, weights: Floats) -> Floats:
        """Return weights (S,) of the working set as weights (M,) of all kernels."""
        if self.everything:
            return weights
        dense = np.zeros(self._n_kernels)
        dense[self.kernels] = weights
        return dense

    def combination(self, weights: Floats) -> Combine:
        """Return the request for the sum of the working set's kernels with weights (S,)."""
        return Combine(weights, None if self.everything else self.kernels)

    def quadratic(self, point: Floats) -> Generator[Request, Any, Floats]:
        """Return ``q_m(alpha*y)`` on the working set, added up over classes.

        Parameters
        ----------
        point : (n,) or (n, k) float64
            ``alpha * y``, of one machine or of one for each class.

        Returns
        -------
        (S,) float64
        """
        if self.everything:
            q = yield from self.visit_all(point[None])
            return q[:, 0]
        q = yield Quadratic(point.reshape(len(point), -1), self.kernels)
        forms: Floats = q.sum(axis=1)
        return forms

    def visit_all(self, points: Floats) -> Generator[Request, Any, Floats]:
        """Return ``q_m(alpha_j*y)`` of all kernels at some points: one pass.

        Of kernels that were screened it is zero.

        Parameters
        ----------
        points : (J, n) or (J, n, k) float64
            ``alpha_j * y``.

        Returns
        -------
        (M, J) float64
        """
        columns = np.moveaxis(points, 1, 0).reshape(points.shape[1], -1)
        q = yield from self.candidates.quadratic(columns)
        by_point: Floats = q.reshape(self._n_kernels, len(points), -1).sum(axis=2)
        return by_point

    def newcomers(self, q: Floats, threshold: float) -> Ints:
        """Return kernels outside whose q_m exceeds a threshold, largest first.

        They are not so many that the working set more than doubles.
        """
        outside = q > threshold
        outside[self.kernels] = False
        candidates = np.flatnonzero(outside)
        order = np.argsort(-q[candidates], kind="stable")
        return candidates[order[: most_newcomers(self._n_kernels, len(self.kernels))]]

    def take(self, kernels: Ints) -> None:
        """Take kernels (S,) into the working set."""
        self.kernels = np.concatenate([self.kernels, kernels])

    def enlarge(self, kernels: Ints, points: Floats) -> Generator[Request, Any, Floats]:
        """Take kernels into the working set; return their ``q_m(alpha_j*y)``.

        Parameters
        ----------
        kernels : (S,) intp
            Kernels outside.
        points : (J, n) or (J, n, k) float64
            ``alpha_j * y`` of the points that the working set was asked about.

        Returns
        -------
        (J, S) float64
        """
        self.take(kernels)
        if not len(points):
            return np.zeros((0, len(kernels)))
        columns = np.moveaxis(points, 1, 0).reshape(points.shape[1], -1)
        products: Floats = yield Matvec(kernels, columns)
        q = np.einsum("nc,snc->cs", columns, products).reshape(len(points), -1, len(kernels))
        by_point: Floats = q.sum(axis=1)
        return by_point


def most_newcomers(n_kernels: int, size: int, first: int = FIRST_KERNELS) -> int:
    """Return how many kernels a working set may take at once.

    It may double; and of very many kernels, which all cost a pass, some cost little.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    size : int
        Kernels in the working set.
    first : int
        Kernels that it starts from.
    """
    return max(first, n_kernels // PASS_SHARE, size)


def solved(tol: float, gap_of_pass: float, share: float = SOLVED) -> float:
    """Return the relative gap on the working set at which a pass is due.

    Parameters
    ----------
    tol : float
        Relative gap asked for.
    gap_of_pass : float
        Gap on all kernels that the last pass found.
    share : float
        What of that may be left on the working set.
    """
    return max(SOLVED_TOL * tol, share * gap_of_pass)
