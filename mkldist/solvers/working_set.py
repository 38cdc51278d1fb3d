"""Working set: the few kernels on which a simplex-weighted method works between its passes.

Of thousands of kernels some dozens get a weight.  A method solves its problem on a working set of
kernels, which costs only these, and then makes a pass over the bank to find kernels that the
working set lacks.  For a dual point alpha of the inner machine,

    1'alpha - 1/2 max_m q_m(alpha*y) <= optimum,

so that the same pass certifies the solution if it finds none.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from mkldist.bank.requests import Combine, Quadratic, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.solvers.screening import Candidates

FIRST_KERNELS = 20
# At most M / PASS_SHARE kernels join at once: solving for them costs little compared with a pass.
PASS_SHARE = 2000
SMALL = 40  # number of kernels up to which passes are cheap, and a working set saves nothing
# The working set is solved to the first share of the gap that the last pass found before the next
# pass, but never to less than the second share of the tolerance.
SOLVED = 0.3
SOLVED_TOL = 0.7


class WorkingSet:
    """The S of a bank's M kernels on which a method works.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    everything : bool
        Work on all kernels, and make every request a pass.

    Attributes
    ----------
    everything : bool
        True if the method works on all kernels from the start, as it does if they are few.  False
        for a working set that has grown to all kernels, whose kernels stand in order of joining.
    kernels : (S,) intp
        Indices of the kernels at work, in the order in which they joined.
    candidates : Candidates
        Kernels that are not proven inactive; the passes visit these.
    """

    def __init__(self, n_kernels: int, *, everything: bool) -> None:
        self._n_kernels = n_kernels
        self.everything = everything or n_kernels <= SMALL
        self.kernels: Ints = np.arange(n_kernels if self.everything else 0)
        self.candidates = Candidates(n_kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def spread(self, weights: Floats) -> Floats:
        """Return weights (S,) of the working set as weights (M,) of all kernels."""
        if self.everything:
            return weights
        dense = np.zeros(self._n_kernels)
        dense[self.kernels] = weights
        return dense

    def combination(self, weights: Floats, *, thin: bool = False) -> Combine:
        """Return the request for the sum of the working set's kernels with weights (S,).

        With `thin`, an operator may answer it, see :class:`~mkldist.bank.requests.Combine`.
        """
        return Combine(weights, None if self.everything else self.kernels, thin=thin)

    def quadratic(self, point: Floats) -> Generator[Request, Any, Floats]:
        """Ask for ``q_m(alpha*y)`` on the working set, added up over classes.

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
        """Ask for ``q_m(alpha_j*y)`` of all kernels at some points, by one pass.

        It is zero for kernels that are proven inactive.

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
        """Return the kernels outside whose q_m exceeds a threshold, largest q_m first.

        At most :func:`most_newcomers` are returned.

        Parameters
        ----------
        q : (M,) float64
            ``q_m(alpha*y)`` of all kernels.
        threshold : float
            Value to exceed.

        Returns
        -------
        (K,) intp
        """
        outside = q > threshold
        outside[self.kernels] = False
        candidates = np.flatnonzero(outside)
        order = np.argsort(-q[candidates], kind="stable")
        return candidates[order[: most_newcomers(self._n_kernels, len(self.kernels))]]

    def take_first(self, y: Floats, ridges: Floats | float = 0.0) -> Generator[Request, Any, None]:
        """Take the kernels of the largest q_m where alpha is equal within each class, by one pass.

        Parameters
        ----------
        y : (n,) or (n, k) float64
            Labels.
        ridges : (M,) float64, optional
            Number that is added to the diagonal of each kernel.
        """
        positive = y > 0
        alpha = np.where(positive, 1.0 / positive.sum(axis=0), 1.0 / (~positive).sum(axis=0))
        q = yield from self.visit_all(alpha[None] * y)
        self.take(self.newcomers(q[:, 0] + ridges * float(np.vdot(alpha, alpha)), -math.inf))

    def take(self, kernels: Ints) -> None:
        """Take kernels (S,) into the working set."""
        self.kernels = np.concatenate([self.kernels, kernels])

    def enlarge(self, kernels: Ints, points: Floats) -> Generator[Request, Any, Floats]:
        """Take kernels into the working set; ask for their ``q_m(alpha_j*y)``.

        Parameters
        ----------
        kernels : (K,) intp
            Kernels outside.
        points : (J, n) or (J, n, k) float64
            ``alpha_j * y`` of the points whose q is known on the working set.

        Returns
        -------
        (J, K) float64
        """
        self.take(kernels)
        if not len(points):
            return np.zeros((0, len(kernels)))
        columns = np.moveaxis(points, 1, 0).reshape(points.shape[1], -1)
        q: Floats = yield Quadratic(columns, kernels)
        by_point: Floats = q.T.reshape(len(points), -1, len(kernels)).sum(axis=1)
        return by_point


def most_newcomers(n_kernels: int, size: int, first: int = FIRST_KERNELS) -> int:
    """Return the number of kernels that may join a working set at once.

    The working set may double.  If the bank has very many kernels, more of them may join, for
    their cost is small beside that of a pass over all.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    size : int
        Kernels in the working set.
    first : int
        Number of kernels that it starts from.
    """
    return max(first, n_kernels // PASS_SHARE, size)


def solved(tol: float, gap_of_pass: float, share: float = SOLVED) -> float:
    """Return the relative gap on the working set at which the next pass is due.

    Parameters
    ----------
    tol : float
        Relative gap asked for.
    gap_of_pass : float
        Gap on all kernels that the last pass found.
    share : float
        Share of `gap_of_pass` that may be left on the working set.
    """
    return max(SOLVED_TOL * tol, share * gap_of_pass)
