"""Laplacian support vector machines on one Gram matrix, one for each class, in the dual.

For K (n, n), the graph Laplacian L and a column y of labels, 0 for none, l of them known,

    V = min over alpha, b of  1/l sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))
                              + gamma_a alpha'K alpha + gamma_i / n^2 alpha'K L K alpha
      = max_beta { 1'beta - 1/2 (beta*y)' H (beta*y) :  0 <= beta <= 1/l,  y'beta = 0 },

(Belkin, Niyogi & Sindhwani 2006, section 4.3), where H is the block between the labelled points
of the deformed kernel ``K P^-1 / 2``, ``P = gamma_a I + gamma_i / n^2 L K``, of
:mod:`mkldist.solvers.deformed`.  The coefficients are ``alpha = 1/2 P^-1 J'(beta*y)``.

P is factorised once a Gram matrix, whatever the number of classes.

Certificate: for feasible beta and z (n,) with ``gamma_a a + gamma_i / n^2 L z = J'(beta*y) / 2``,

    V >= 1'beta - gamma_i / n^2 z'L z - gamma_a a'K a,

with equality at the optimum, where ``a = alpha`` and ``z = K alpha``.  The bound is linear in K: it
holds for every other K too, which multiple kernel learning needs.  Of a pair (a, z) that rounding
keeps from fitting each other it is a that is exact, and z'L z the larger of its estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mkldist.machines.counters import Counters
from mkldist.machines.inner_svm import InnerSvm
from mkldist.machines.svm import best_bias
from mkldist.solvers.base import Problem
from mkldist.solvers.deformed import Deformation

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Machines:
    """The machines of k classes on one Gram matrix.

    Parameters
    ----------
    coefficients : (n, k) float64
        alpha, by classes; 0 for a class whose best constant is better than what rounding left.
    bias : (k,) float64
        b, the best for alpha.
    dual_variables : (n, k) float64
        beta, 0 at points without a label.
    value : float
        The primal value at alpha and b, summed over the classes: an upper bound of V.
    gain : float
        ``1'beta``, summed.
    a : (n, k) float64
        Coefficients of the lower bound: alpha, as solved for.
    roughness : float
        ``gamma_i / n^2 z'L z`` of the lower bound, summed.
    reach : float
        Largest factor by which all dual variables may be multiplied and stay feasible.
    """

    coefficients: Floats
    bias: Floats
    dual_variables: Floats
    value: float
    gain: float
    a: Floats
    roughness: float
    reach: float

    def by_class(self, *, single: bool) -> tuple[Floats, float | Floats, Floats]:
        """Return coefficients, bias and dual variables, without the axis of a single class."""
        if single:
            return self.coefficients[:, 0], float(self.bias[0]), self.dual_variables[:, 0]
        return self.coefficients, self.bias, self.dual_variables


class ManifoldSvm:
    """Solve the classes' machines on one Gram matrix after another.

    Parameters
    ----------
    problem : Problem
        Labels (n,) or (n, k), 0 for none, and graph Laplacian.
    gamma_a, gamma_i : float
        Weights of the ambient and of the intrinsic norm.
    tol : float
        Relative duality gap of the outer problem; that of the machines is a small share of it.
    counters : Counters
        Where solves are counted.
    """

    def __init__(
        self, problem: Problem, gamma_a: float, gamma_i: float, tol: float, counters: Counters
    ) -> None:
        self._n_points = problem.n_points
        y = problem.y.reshape(problem.n_points, -1)
        labelled = np.flatnonzero(y.any(axis=1))
        smoothness = gamma_i / self._n_points**2
        self._deformation = Deformation(problem.laplacian, 2 * gamma_a, 2 * smoothness, labelled)
        self._y = y[labelled]
        self._known = [np.flatnonzero(column) for column in self._y.T]
        self._counts = np.array([len(known) for known in self._known])
        self._machines = [
            InnerSvm(column[known], 1.0 / len(known), tol, counters)
            for column, known in zip(self._y.T, self._known, strict=True)
        ]
        self.factorisations = 0
        """Number of matrices P factorised so far."""

    def first_guess(self) -> Machines:
        """Return what is known without a kernel: dual variables equal within a class, z = 0."""
        beta = np.zeros(self._y.shape)
        for c, known in enumerate(self._known):
            positive = self._y[known, c] > 0
            counts = np.array([(~positive).sum(), positive.sum()])
            beta[known, c] = (counts.min() / counts)[positive.astype(int)] / len(known)
        n = self._n_points
        alpha = self._deformation.spread(beta * self._y / self._deformation.gamma_a, n)
        return self._evaluated(np.zeros((n, n)), beta, alpha)

    def __call__(self, K: Floats) -> Machines:
        """Solve the machines on `K` (n, n), starting from the last solutions."""
        X = self._inverse_of_P(K)
        H = K[self._deformation.labelled] @ X
        H = 0.5 * (H + H.T)
        beta = np.zeros(self._y.shape)
        for c, (known, machine) in enumerate(zip(self._known, self._machines, strict=True)):
            alike = len(known) == len(H)
            block = H if alike else np.ascontiguousarray(H[np.ix_(known, known)])
            beta[known, c] = machine(block).alpha
        return self._evaluated(K, beta, X @ (beta * self._y))

    def _inverse_of_P(self, K: Floats) -> Floats:
        """Return ``P^-1 J' / 2`` (n, l), refined once."""
        deformation = self._deformation
        J = deformation.spread(np.eye(len(self._y)), self._n_points)
        if deformation.gamma_i == 0.0:
            return J / deformation.gamma_a
        self.factorisations += 1
        P = deformation.smoothed(K)
        P[np.diag_indices_from(P)] += deformation.gamma_a
        factor = scipy.linalg.lu_factor(P, overwrite_a=True, check_finite=False)
        X: Floats = scipy.linalg.lu_solve(factor, J, check_finite=False)
        rest = J - deformation.gamma_a * X - deformation.smoothed(K @ X)
        X += scipy.linalg.lu_solve(factor, rest, check_finite=False)
        return X if np.isfinite(X).all() else deformation(K).coefficients(np.eye(len(self._y)))

    def _evaluated(self, K: Floats, beta: Floats, alpha: Floats) -> Machines:
        """Return the machines with their values at feasible `beta` and coefficients `alpha`."""
        deformation = self._deformation
        f = K @ alpha
        signed = deformation.spread(beta * self._y, self._n_points)
        ambient = 0.5 * deformation.gamma_a * (alpha * f).sum(axis=0)
        smoothness = np.maximum(0.5 * (f * deformation.smoothed(f)).sum(axis=0), 0.0)
        implied = (signed * f).sum(axis=0) - 2.0 * ambient - smoothness
        bias, value = np.zeros(len(self._known)), 0.0
        coefficients = alpha.copy()
        for c, known in enumerate(self._known):
            y = self._y[known, c]
            loss, bias[c] = _mean_hinge(f[deformation.labelled[known], c], y)
            constant = _mean_hinge(np.zeros(len(y)), y)
            own = loss + max(float(ambient[c]), 0.0) + float(smoothness[c])
            if own > constant[0]:
                coefficients[:, c], (own, bias[c]) = 0.0, constant
            value += own
        return Machines(
            coefficients=coefficients,
            bias=bias,
            dual_variables=deformation.spread(beta, self._n_points),
            value=value,
            gain=float(beta.sum()),
            a=alpha,
            roughness=float(np.maximum(smoothness, implied).sum()),
            reach=1.0 / max(float((beta * self._counts).max()), np.finfo(np.float64).tiny),
        )


def _mean_hinge(f: Floats, y: Floats) -> tuple[float, float]:
    """Return the mean hinge loss of decisions `f` at the best bias, and that bias."""
    b = best_bias(f, y)
    return float(np.maximum(0.0, 1.0 - y * (f + b)).mean()), b
