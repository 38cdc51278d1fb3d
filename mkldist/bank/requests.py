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
    """Ask for ``sum_m weights[m] K_m``, over all kernels or a few.

    Parameters
    ----------
    weights : (M,) or (R, M) float64
        One weight vector, answered by one (n, n) float64 matrix, or R vectors, answered by
        (R, n, n).  The answer belongs to the solver, which may overwrite it.
    kernels : (S,) intp, optional
        Indices, in any order and each once, of the kernels that have these weights, which are (S,)
        or (R, S) then.  They are read one by one, however many they are.  All kernels by default.
    memory : (n, n) float64, optional
        Array to which a single matrix may be written: a former answer, whose pages the system
        need not provide again.
    thin : bool
        True if the solver takes a :class:`~mkldist.optim.factored_matrix.FactoredMatrix` in place
        of each matrix.  A bank of factors answers with one, or with a list of R.
    """

    weights: Floats
    kernels: Ints | None = None
    memory: Floats | None = None
    thin: bool = False


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Ask for ``q_m(v) = v' K_m v`` for every kernel m, or for a few.

    Parameters
    ----------
    vectors : (n,) or (n, R) float64
        Answered by (M,) or (M, R) float64.
    kernels : (S,) intp, optional
        Indices of the kernels, in any order, which are read one by one.  The answer is (S,) or
        (S, R) float64 then.  All kernels by default.
    """

    vectors: Floats
    kernels: Ints | None = None


@dataclass(frozen=True, eq=False)
class Inner:
    """Ask for the Frobenius products ``<K_m, W_r>`` for every kernel m, e.g. traces and alignments.

    Parameters
    ----------
    matrices : (R, n, n) float64
        Symmetric matrices; answered by (M, R) float64.
    """

    matrices: Floats


@dataclass(frozen=True, eq=False)
class Matvec:
    """Ask for ``K_m v`` for a few kernels m.

    Parameters
    ----------
    kernels : (S,) intp
        Indices of the kernels, in any order.
    vectors : (n,) or (n, R) float64
        Answered by (S, n) or (S, n, R) float64.
    """

    kernels: Ints
    vectors: Floats


@dataclass(frozen=True, eq=False)
class Radii:
    """Ask for the squared radius of the smallest ball around the points, for every kernel m.

    ``R_m^2 = max { sum_i beta_i K_m[i, i] - beta' K_m beta : beta >= 0, 1'beta = 1 }``, answered
    by (M,) float64 to a relative 1e-10, or to about the rounding of float32 entries.

    Parameters
    ----------
    index : (n,) intp, optional
        Points that the ball encloses, each at most once; all by default.
    """

    index: Ints | None = None


@dataclass(frozen=True, eq=False)
class Diagonal:
    """Ask for ``sum_i weights[i] K_m[i, i]`` for every kernel m, e.g. traces on subsets of points.

    Centring leaves the answer as it is: the diagonal is that of the kernel before.

    Parameters
    ----------
    weights : (n, R) float64
        Answered by (M, R) float64.
    """

    weights: Floats


Request = Combine | Quadratic | Inner | Matvec | Radii | Diagonal
