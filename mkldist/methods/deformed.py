"""Kernels deformed by a graph Laplacian (Sindhwani, Niyogi & Belkin 2005).

On n points, labelled or not, the two norms of manifold regularisation are one norm.  With
``f = K a``,

    gamma_a f'K^-1 f + gamma_i f'L f = f'Kd^-1 f,     Kd = K (gamma_a I + gamma_i L K)^-1.

Only the labelled points carry a loss; the matrix J selects them.  A semi-supervised machine is
therefore the supervised one on the labelled block of Kd.  Its dual variables c give coefficients on
all points,

    a = (gamma_a I + gamma_i L K)^-1 J'c = (J'c - gamma_i L Kd J'c) / gamma_a.

With these, ``f(x) = k(x, .)'a`` predicts off the points as well: the deformed kernel there is
``k(x, .)(gamma_a I + gamma_i L K)^-1``.

The matrix to be inverted is not symmetric.  With the pivoted Cholesky factor F of K = FF',

    Kd = F (gamma_a I + gamma_i F'L F)^-1 F',

which is symmetric and positive semi-definite in floating point too, whatever the rank of K.

Rounding.  Where F'L F nearly vanishes, rounding changes Kd by a share ``eps gamma_i ||L|| ||K|| /
gamma_a``.  The bounds of the methods stay valid nevertheless.  Coefficients are refined against K
and L themselves.  Lower bounds take ``c'Kd c`` from :meth:`DeformedKernel.norm`, which no error of
F can make too small.  Upper bounds add the most that rounding may have taken off them,
:meth:`Deformation.rounding`.  A run whose tolerance is out of reach for this reason has stalled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from pydantic import Field

from mkldist.core.arrays import Floats, Ints, Target
from mkldist.core.checksums import array_id
from mkldist.core.memory import MATRICES_PER_SOLVER, ProblemSize, SolverMemory
from mkldist.solvers.base import ArrayCache, Problem
from mkldist.solvers.solver_params import SolverParams

EPS = float(np.finfo(np.float64).eps)
# Factor, product with the Laplacian, system, root, and its inverse, beside those of any solver.
MATRICES = MATRICES_PER_SOLVER + 5
LEAST, LARGEST = 1e-15, 1e15  # range of the weights of the two norms
REFINEMENTS, SLOW = 6, 0.5  # a refinement that leaves a larger share of the error is the last
Solver = Callable[[Floats], Floats]
"""Function that solves a linear system for right sides (n, ...)."""


class AmbientParams(SolverParams):
    """Parameters of every method for partly labelled points."""

    gamma_a: float = Field(1.0, ge=LEAST, le=LARGEST, description="weight of the ambient norm")

    @property
    def target(self) -> Target:
        """Kind of labels: two classes, 0 for a point without a label."""
        return Target.PARTIAL


class ManifoldParams(AmbientParams):
    """Parameters of every method with an ambient and an intrinsic norm."""

    gamma_i: float = Field(1.0, ge=0, le=LARGEST, description="weight of the intrinsic norm")


@dataclass(frozen=True, eq=False)
class Deformation:
    """The two norms, the graph and the labelled points."""

    laplacian: Any  # (n, n) graph Laplacian L; None where `gamma_i` is 0
    gamma_a: float  # weight of the ambient norm, positive
    gamma_i: float  # of the intrinsic norm, not negative
    labelled: Ints  # (l,) the labelled points
    # keeps what depends on kernels, graph and weights alone, for solvers of other labels and of
    # other weights
    kept: ArrayCache | None = None

    @classmethod
    def of(cls, problem: Problem, params: ManifoldParams) -> Deformation:
        """Return the deformation of a problem."""
        labelled = np.flatnonzero(problem.y)
        return cls(problem.laplacian, params.gamma_a, params.gamma_i, labelled, problem.kept)

    @cached_property
    def graph_id(self) -> str:
        """Content hash of the graph Laplacian."""
        L = self.laplacian
        if isinstance(L, np.ndarray):
            return array_id(L)
        sparse = scipy.sparse.csr_array(L)
        return array_id(sparse.data, sparse.indices, sparse.indptr)

    def divided(self, divisor: float) -> Deformation:
        """Return the deformation that divides each deformed kernel by a positive number."""
        return replace(self, gamma_a=divisor * self.gamma_a, gamma_i=divisor * self.gamma_i)

    def doubt(self, K: Floats) -> float:
        """Return the most that rounding may change in quadratic forms of Kd, as a share of them.

        It is the error of a factorisation of ``gamma_a I + gamma_i F'L F``, whose largest
        eigenvalue is at most ``gamma_a + 2 gamma_i max_i L_ii tr K`` for the Laplacian of a graph.
        """
        if self.gamma_i == 0.0:
            return 0.0
        stiff = 2.0 * float(self.stiffness(len(K)).max()) * float(np.trace(K))
        return EPS * len(K) * (1.0 + stiff / self.gamma_a)

    def smoothed(self, f: Floats) -> Floats:
        """Return ``gamma_i L f`` for `f` (n,) or (n, r)."""
        if self.gamma_i == 0.0:
            return np.zeros_like(f)
        return self.gamma_i * np.asarray(self.laplacian @ f)

    def penalty(self, a: Floats, f: Floats) -> float:
        """Return ``gamma_a a'K a + gamma_i f'L f`` for coefficients `a` and ``f = K a``."""
        return max(self.gamma_a * float(a @ f) + float(f @ self.smoothed(f)), 0.0)

    def rounding(
        self, reach: Floats, a: Floats, f: Floats, slopes: Floats, curvatures: Floats | None = None
    ) -> float:
        """Return the most that rounding may have taken off ``1/2 penalty(a, f)`` and the loss.

        It is infinite where its squares are too large for a float64.  `reach` (n,) are the roots of
        the diagonal of K, a (n,) coefficients and f (n,) ``K a`` as computed; `slopes` (l,) are
        sizes of the derivatives of the loss at the labelled points, and `curvatures` (l,) its
        second ones, by default 1.
        """
        unsure = decision_rounding(reach, a)
        slope = 0.5 * self.gamma_a * np.abs(a) + np.abs(self.smoothed(f))
        slope[self.labelled] += slopes
        stiff = self.stiffness(len(f))
        of_loss = unsure[self.labelled] ** 2
        if curvatures is not None:
            of_loss *= curvatures
        curved = float(np.sum(of_loss)) + float(stiff @ unsure**2)
        with np.errstate(over="ignore"):
            curved += EPS * float(np.linalg.norm(stiff * f**2))
            return float(np.linalg.norm(slope * unsure)) + 0.5 * curved

    def rest_rounding(self, a: Floats, f: Floats) -> Floats:
        """Return the most that rounding may have changed in ``gamma_a a + gamma_i L f`` (n,)."""
        stiff = self.stiffness(len(f)).reshape(-1, *[1] * (f.ndim - 1))
        return EPS * (self.gamma_a * np.abs(a) + stiff * np.abs(f))

    def refined(self, K: Floats, a: Floats, right: Floats, solver: Solver) -> Floats:
        """Return the solution of ``(gamma_a I + gamma_i L K) a = right``, iteratively refined.

        a (n, ...) is a first solution; `solver` solves the system, perhaps to a few digits only.
        """
        least, best = np.inf, a
        for _ in range(1 + REFINEMENTS):
            f = K @ a
            rest = right - self.gamma_a * a - self.smoothed(f)
            error = float(np.linalg.norm(rest))
            if not error < least:
                break
            settled = error <= float(np.linalg.norm(self.rest_rounding(a, f)))
            settled = settled or error > SLOW * least
            least, best = error, a
            if settled:
                break
            a = a + solver(rest)
        return best

    def stiffness(self, n: int) -> Floats:
        """Return the diagonal of ``gamma_i L`` (n,)."""
        if self.gamma_i == 0.0:
            return np.zeros(n)
        diagonal: Floats = self.gamma_i * self.laplacian.diagonal()
        return diagonal

    def spread(self, c: Floats, n: int) -> Floats:
        """Return ``J'c`` (n, ...): `c` (l, ...) on the labelled points, 0 elsewhere."""
        spread = np.zeros((n, *c.shape[1:]))
        spread[self.labelled] = c
        return spread

    def __call__(self, K: Floats) -> DeformedKernel:
        """Deform a Gram matrix (n, n)."""
        if self.gamma_i == 0.0:
            return DeformedKernel(self, K, None, None)
        weights = (self.gamma_a, self.gamma_i)
        kept = ArrayCache(0) if self.kept is None else self.kept
        kernel = "" if self.kept is None else array_id(K)
        graph = "" if self.kept is None else self.graph_id
        F = kept.get(("factor", kernel), lambda: pivoted_factor(K))

        def root() -> Floats:
            S = kept.get(("system", kernel, graph), lambda: roughness(F, self.laplacian))
            return inverse_root(self.gamma_i * S, self.gamma_a)

        return DeformedKernel(self, K, F, kept.get(("root", kernel, graph, *weights), root))


@dataclass(frozen=True, eq=False)
class DeformedKernel:
    """A deformed Gram matrix."""

    deformation: Deformation  # the two norms and the graph
    K: Floats  # (n, n) Gram matrix
    F: Floats | None  # (n, r) ``K = FF'``; None where gamma_i is 0, so that only the scale changes
    root: Floats | None  # (r, r) R with ``RR' = (gamma_a I + gamma_i F'L F)^-1``

    def block(self) -> Floats:
        """Return Kd between the labelled points, (l, l).

        Rounding leaves a small part of K out of F.  That part enters as if the graph did not smooth
        it, which can only raise Kd, and so lower the dual value.
        """
        labelled = self.deformation.labelled
        if self.F is None or self.root is None:
            return self.K[np.ix_(labelled, labelled)] / self.deformation.gamma_a
        F = self.F[labelled]
        half = F @ self.root
        left = self.K[np.ix_(labelled, labelled)] - F @ F.T
        return half @ half.T + left / self.deformation.gamma_a

    def coefficients(self, c: Floats) -> Floats:
        """Return ``(gamma_a I + gamma_i L K)^-1 J'c`` (n, ...), iteratively refined."""
        right = self.deformation.spread(c, len(self.K))
        if self.F is None:
            return self.solved(right)
        return self.deformation.refined(self.K, self.solved(right), right, self.solved)

    def norm(self, c: Floats) -> float:
        """Return an upper bound of ``c'Kd c`` for `c` (l,) that errors of the factors cannot break.

        For every z, ``c'Kd c <= gamma_i z'L z + v'K v / gamma_a`` with ``v = J'c - gamma_i L z``.
        Equality holds at ``z = Kd J'c``.
        """
        deformation, reach = self.deformation, np.sqrt(self.K.diagonal())
        right = deformation.spread(c, len(reach))
        if self.F is None or self.root is None:
            unsure = 2.0 * EPS * float(np.sum((reach * right) ** 2))
            return (float(right @ (self.K @ right)) + unsure) / deformation.gamma_a
        z = self._fit(right, self.F, self.root)
        smooth, stiff = deformation.smoothed(z), deformation.stiffness(len(z))
        v = right - smooth
        unsure_v = EPS * (np.abs(right) + stiff * np.abs(z))
        g = self.F.T @ v
        left = max(float(v @ (self.K @ v - self.F @ g)), 0.0)  # v'(K - FF')v
        ambient = float(g @ g) + left + 2.0 * EPS * float(np.sum((reach * v) ** 2))
        ambient += float(np.sum((reach * unsure_v) ** 2))
        intrinsic = float(z @ smooth) + EPS * float(np.linalg.norm(stiff * z**2))
        intrinsic += 2.0 * float(np.linalg.norm(z * unsure_v))
        return intrinsic + ambient / deformation.gamma_a

    def _fit(self, right: Floats, F: Floats, root: Floats) -> Floats:
        """Return ``Kd right`` (n,), iteratively refined."""
        least, best, w = np.inf, np.zeros(F.shape[1]), np.zeros(F.shape[1])
        for _ in range(1 + REFINEMENTS):
            rest = F.T @ (right - self.deformation.smoothed(F @ w)) - self.deformation.gamma_a * w
            error = float(np.linalg.norm(rest))
            if not error < SLOW * least:
                break
            least, best = error, w
            w = w + root @ (root.T @ rest)
        return F @ best

    def solved(self, right: Floats) -> Floats:
        """Return ``(gamma_a I + gamma_i L K)^-1`` times columns (n, ...), FF' in place of K."""
        solved = right
        if self.F is not None and self.root is not None:
            f = self.F @ (self.root @ (self.root.T @ (self.F.T @ right)))
            solved = right - self.deformation.smoothed(f)
        return solved / self.deformation.gamma_a


def decision_rounding(reach: Floats, a: Floats) -> Floats:
    """Return the most that rounding may have changed in ``K a`` (n,).

    A decision is a sum of terms of at most ``reach_i reach_j |a_j|``, with the roots of the
    diagonal of K (n,) for `reach`, whose rounding errors add up like a random walk.
    """
    return EPS * reach * float(np.linalg.norm(reach * a))


def roughness(F: Floats, laplacian: Any) -> Floats:
    """Return ``F'L F``, made symmetric, for `F` (n, r)."""
    system = F.T @ np.asarray(laplacian @ F)
    return np.asarray(0.5 * (system + system.T))


def pivoted_factor(K: Floats) -> Floats:
    """Return F (n, r) with ``K = FF'`` up to rounding, r the numerical rank of `K`.

    No diagonal entry of ``K - FF'`` exceeds the rounding of the largest one of `K`.
    """
    largest = float(K.diagonal().max())
    if not largest > 0.0:
        return np.zeros((len(K), 0))
    tol = EPS * largest
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(K, lower=1, tol=tol)
    F = np.empty((len(K), rank))
    F[pivots - 1] = np.tril(factor)[:, :rank]
    return F


def inverse_root(system: Floats, shift: float) -> Floats:
    """Return R with ``RR' = (system + shift I)^-1`` for a positive semi-definite matrix.

    Rounding may leave negative eigenvalues; they count as 0.
    """
    shifted = system.copy()
    shifted[np.diag_indices_from(shifted)] += shift
    try:
        factor = scipy.linalg.cholesky(shifted, lower=True, check_finite=False)
        inverse: Floats = scipy.linalg.solve_triangular(
            factor, np.eye(len(system)), lower=True, check_finite=False
        )
    except scipy.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(system, check_finite=False)
        inverse = (vectors / np.sqrt(np.maximum(values, 0.0) + shift)).T
    return np.ascontiguousarray(inverse.T)


def memory_on_graph(size: ProblemSize, params: SolverParams) -> SolverMemory:
    """Return the memory of a solver that deforms a combined kernel by a graph Laplacian."""
    return size.memory(matrices=MATRICES)
