"""Requests of solvers to a kernel bank, the only interface between solvers and storage.

A bank holds M Gram matrices ``K_m`` (n × n, symmetric, positive semi-definite) and answers six
kinds of request.  `Quadratic` and `Inner` visit every kernel: they are *passes*.  `Combine` reads
the kernels of non-zero weight; with dense weights it is a pass too.  `Matvec`, and a `Quadratic` or
`Combine` of named kernels, read these kernels only.  The first `Radii` on a set of points is a
pass; the bank keeps its answer for the next.  `Diagonal` reads n of a kernel's n² entries.
"""

from __future__ import annotations

from dataclasses import dataclass

from mkldist.core.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Combine:
    """Ask for ``sum_m weights[m] K_m``, over all kernels or a few."""

    weights: Floats
    """(M,), answered by one (n, n) float64 matrix, or (R, M), answered by (R, n, n).  The answer
    belongs to the solver, which may overwrite it."""
    kernels: Ints | None = None
    """(S,) in any order and each once: the kernels that have these weights, which are (S,) or
    (R, S) then.  They are read one by one, however many they are.  All kernels by default."""
    memory: Floats | None = None
    """(n, n), to which a single matrix may be written: a former answer, whose pages the system need
    not provide again."""
    thin: bool = False
    """True if the solver takes a :class:`~mkldist.optim.factored_matrix.FactoredMatrix` in place of
    each matrix.  A bank of factors answers with one, or with a list of R."""


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Ask for ``q_m(v) = v' K_m v`` for every kernel m, or for a few."""

    vectors: Floats  # (n,) or (n, R), answered by (M,) or (M, R) float64
    kernels: Ints | None = None
    """(S,) in any order, which are read one by one; the answer is (S,) or (S, R) float64 then.  All
    kernels by default."""


@dataclass(frozen=True, eq=False)
class Inner:
    """Ask for the Frobenius products ``<K_m, W_r>`` for every kernel m, e.g. traces, alignments."""

    matrices: Floats  # (R, n, n), symmetric, answered by (M, R) float64


@dataclass(frozen=True, eq=False)
class Matvec:
    """Ask for ``K_m v`` for a few kernels m."""

    kernels: Ints  # (S,), in any order
    vectors: Floats  # (n,) or (n, R), answered by (S, n) or (S, n, R) float64


@dataclass(frozen=True, eq=False)
class Radii:
    """Ask for the squared radius of the smallest ball around the points, for every kernel m.

    ``R_m^2 = max { sum_i beta_i K_m[i, i] - beta' K_m beta : beta >= 0, 1'beta = 1 }``, answered
    by (M,) float64 to a relative 1e-10, or to about the rounding of float32 entries.
    """

    index: Ints | None = None  # (n,) points that the ball encloses, each once; all by default


@dataclass(frozen=True, eq=False)
class Diagonal:
    """Ask for ``sum_i weights[i] K_m[i, i]`` for every kernel m, e.g. traces on subsets of points.

    Centring leaves the answer as it is: the diagonal is that of the kernel before.
    """

    weights: Floats  # (n, R), answered by (M, R) float64


Request = Combine | Quadratic | Inner | Matvec | Radii | Diagonal
