"""Randomly pivoted partial Cholesky factorisation of a matrix that is computed column by column.

Of a symmetric positive semi-definite K (n, n), r pivot columns and the diagonal suffice for a thin
factor G (n, r) with

    G G' <= K,    (G G')_ij = K_ij  if i or j is a pivot.

``G G'`` is the Nystroem approximation of the pivots, and ``K - G G'`` is positive semi-definite: it
is what is left of K after elimination.  Pivots are drawn in proportion to the diagonal that is
left, and the expected trace of ``K - G G'`` is then near the least of any factor of that rank.

Drawing pivots one by one leaves no products of matrices.  Here a block of proposals is drawn at
once, and rejection makes the accepted ones those of the one-by-one algorithm (Epperly, Tropp &
Webber 2024, "Embrace rejection", arXiv:2410.03969, Algorithm 2.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from mkldist.arrays import Floats, Ints

PROPOSALS = 100  # pivots proposed at once
NOISE = 4.0  # of the diagonal in units of eps n: what is left below it is rounding
EPS = float(np.finfo(np.float64).eps)

Between = Callable[[Ints, Ints | slice], Floats]
"""Function that returns the (p, q) entries of K in some rows and columns."""


@dataclass(frozen=True, eq=False)
class PivotedFactor:
    """Thin factor G of a symmetric positive semi-definite matrix, with ``G G' <= K``.

    Parameters
    ----------
    values : (n, r) float64
        The factor G, C-contiguous.
    pivots : (r,) intp
        The pivots in order; rows `pivots` of G are lower triangular.
    left : float
        Trace of ``K - G G'`` over the trace of K; 0 for a matrix of zeros.
    """

    values: Floats
    pivots: Ints
    left: float

    @property
    def rank(self) -> int:
        """Number r of columns."""
        return len(self.pivots)

    def on_pivots(self, coefficients: Floats) -> Floats:
        """Return coefficients of pivots alone that have the same product with K, (n, ...).

        The pivots P satisfy ``K[:, P] = G G[P]'``.  So ``K a = G G'c`` where a is
        ``G[P]'^-1 G'c`` at the pivots and zero elsewhere, and ``a'K a = c'G G'c``: the expansion a
        with the whole kernel is the function that c expands with the factor.

        Parameters
        ----------
        coefficients : (n, ...) float64
            The coefficients c.
        """
        found = np.zeros_like(coefficients)
        triangle = self.values[self.pivots]
        found[self.pivots] = scipy.linalg.solve_triangular(
            triangle, self.values.T @ coefficients, lower=True, trans=1
        )
        return found


def factor_bytes(n_points: int, rank: int) -> int:
    """Return the bytes of a factor G (n, r)."""
    return 8 * n_points * rank


def pivoted_cholesky(
    diagonal: Floats,
    between: Between,
    *,
    rank: int,
    tolerance: float,
    rng: np.random.Generator,
    begun: PivotedFactor | None = None,
) -> PivotedFactor:
    """Factorise a matrix until little of its trace is left.

    Memory is two factors of rank `rank`, one of them only as far as it is filled, beside the one
    that was begun.

    Parameters
    ----------
    diagonal : (n,) float64
        Diagonal of K, non-negative.
    between : callable
        Returns entries of K.  It is asked for some hundred columns at most at a time.
    rank : int
        Most columns of G.
    tolerance : float
        Share of the trace that may be left.
    rng : numpy.random.Generator
        Source of the pivots.
    begun : PivotedFactor, optional
        Factor of the same matrix, whose columns are the first of the new one.

    Returns
    -------
    PivotedFactor
        Of rank `rank`, or of less where `tolerance`, or rounding, ends it before.
    """
    n, total = len(diagonal), float(diagonal.sum())
    rank, left, noise = min(rank, n), diagonal.copy(), NOISE * EPS * n * diagonal
    r, everything = 0 if begun is None else begun.rank, slice(0, n)
    rank = max(rank, r)
    rows, pivots = np.empty((rank, n)), np.empty(rank, dtype=np.intp)  # G' and its pivots
    if begun is not None:
        rows[:r], pivots[:r] = begun.values.T, begun.pivots
        left -= np.einsum("nr,nr->n", begun.values, begun.values)
        left[left <= noise] = 0.0
    while r < rank and left.sum() > tolerance * total:
        proposed = rng.choice(n, size=PROPOSALS, p=left / left.sum())
        at_proposed = rows[:r, proposed]
        rest = between(proposed, proposed) - at_proposed.T @ at_proposed
        accepted, triangle = _accept(rest, noise[proposed], rank - r, rng)
        new = proposed[accepted]
        if not len(new):  # the diagonal of all of them is rounding
            left[proposed] = 0.0
            continue
        part = between(new, everything) - rows[:r, new].T @ rows[:r]
        stop = r + len(new)
        rows[r:stop] = scipy.linalg.solve_triangular(triangle, part, lower=True)
        left -= np.einsum("rn,rn->n", rows[r:stop], rows[r:stop])
        left[left <= noise] = 0.0
        pivots[r:stop], r = new, stop
    share = max(1.0 - float(np.vdot(rows[:r], rows[:r])) / total, 0.0) if total > 0.0 else 0.0
    return PivotedFactor(np.ascontiguousarray(rows[:r].T), pivots[:r].copy(), share)


def _accept(
    rest: Floats, noise: Floats, most: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Accept proposals by what is left of their diagonal once the accepted ones are eliminated.

    Parameters
    ----------
    rest : (b, b) float64
        What is left of K at the proposals, which were drawn in proportion to its diagonal.  It is
        overwritten.
    noise : (b,) float64
        Diagonal below which a proposal is rejected.
    most : int
        Most proposals to accept.
    rng : numpy.random.Generator
        Source of the rejections.

    Returns
    -------
    accepted : (t,) intp
        Places of the accepted proposals.
    triangle : (t, t) float64
        Lower Cholesky factor of what was left of K there.
    """
    limits = rng.random(len(rest)) * np.diagonal(rest)
    accepted: list[int] = []
    factor = np.zeros((len(rest), min(most, len(rest))))
    for i in range(len(rest)):
        if len(accepted) == most:
            break
        if rest[i, i] > max(limits[i], noise[i]):
            column = rest[:, i] / np.sqrt(rest[i, i])
            factor[:, len(accepted)] = column
            rest -= np.outer(column, column)
            accepted.append(i)
    places = np.array(accepted, dtype=np.intp)
    return places, np.tril(factor[places, : len(places)])
