"""Laplacian support vector machine in the dual, on the mean of all kernels.

Minimises over coefficients alpha, on all n points, and bias b (Belkin, Niyogi & Sindhwani 2006,
section 4.3)

    V = min over alpha, b of  1/l sum over labelled i of max(0, 1 - y_i ((K alpha)_i + b))
                              + gamma_a alpha'K alpha + gamma_i / n^2 alpha'K L K alpha
      = max_beta { 1'beta - 1/2 (beta*y)' H (beta*y) :  0 <= beta <= 1/l,  y'beta = 0 },

K = 1/M sum_m K_m, l the number of labelled points, where H is the block between the labelled points
of the deformed kernel ``K P^-1 / 2``, ``P = gamma_a I + gamma_i / n^2 L K``, of :mod:`.deformed`.
The coefficients are ``alpha = 1/2 P^-1 J'(beta*y)``.  This is the objective of :mod:`.mklsvm` at
fixed weights, less the penalty of the weights.  The objective of :mod:`.lapsvm` differs: its slacks
are squared and summed over the points, and its norms are halved.

Each column of labels has its own machine.  P is factorised once for each Gram matrix, whatever the
number of classes.

Certificate: for feasible beta and z (n,) with ``gamma_a a + gamma_i / n^2 L z = J'(beta*y) / 2``,

    V >= 1'beta - gamma_i / n^2 z'L z - gamma_a a'K a,

with equality at the optimum, where ``a = alpha`` and ``z = K alpha``, and 0 if that is more.  The
bound is linear in K.  Its first two terms do not depend on K, so that the same beta, z and a bound
V for every other K too, which multiple kernel learning needs.  Here z is ``K alpha`` as computed,
and a belongs to this z: no error of the factors enters.  The solution holds beta as
``dual_variables``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy
from pydantic import Field

from mkldist.bank.requests import Combine
from mkldist.core.arrays import Floats
from mkldist.methods.deformed import (
    EPS,
    LARGEST,
    LEAST,
    Deformation,
    ManifoldParams,
    Solver,
    decision_rounding,
    memory_on_graph,
)
from mkldist.solvers.base import Counters, Method, Problem, Steps, direct_solution
from mkldist.solvers.svm import InnerSvm, best_bias


@dataclass(frozen=True, eq=False)
class Machines:
    """The machines of k classes on one Gram matrix."""

    # (n, k) alpha, by classes; 0 for a class whose best constant is better than the computed
    # machine
    coefficients: Floats
    bias: Floats  # (k,) b, the best for alpha
    dual_variables: Floats  # (n, k) beta, 0 at points without a label
    value: float  # the primal value at alpha and b, summed over the classes: an upper bound of V
    gain: float  # ``1'beta``, summed
    a: Floats  # (n, k) coefficients of the lower bound, alpha but for rounding
    roughness: float  # ``gamma_i / n^2 z'L z`` of the lower bound, summed
    reach: float  # largest factor by which all dual variables may be multiplied and stay feasible

    def by_class(self, *, single: bool) -> tuple[Floats, float | Floats, Floats]:
        """Return coefficients, bias and dual variables, without the axis of a single class."""
        if single:
            return self.coefficients[:, 0], float(self.bias[0]), self.dual_variables[:, 0]
        return self.coefficients, self.bias, self.dual_variables


class ManifoldSvm:
    """Solve the classes' machines on one Gram matrix after another, to a share of the outer tol."""

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
        """Return feasible dual variables that are equal within a class, with z = 0 for K = 0."""
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
        deformation = self._deformation
        solver = self._solver(K)
        J = deformation.spread(np.eye(len(self._y)), self._n_points)
        X = solver(J)
        if deformation.gamma_i > 0.0:
            X = X + solver(J - deformation.gamma_a * X - deformation.smoothed(K @ X))
        H = K[deformation.labelled] @ X
        H = 0.5 * (H + H.T)
        beta = np.zeros(self._y.shape)
        for c, (known, machine) in enumerate(zip(self._known, self._machines, strict=True)):
            alike = len(known) == len(H)
            block = H if alike else np.ascontiguousarray(H[np.ix_(known, known)])
            beta[known, c] = machine(block).alpha
        signed = deformation.spread(beta * self._y, self._n_points)
        alpha = deformation.refined(K, X @ (beta * self._y), signed, solver)
        return self._evaluated(K, beta, alpha)

    def _solver(self, K: Floats) -> Solver:
        """Return a function that solves systems with ``2 P``."""
        deformation = self._deformation
        if deformation.gamma_i == 0.0:
            return lambda right: right / deformation.gamma_a
        self.factorisations += 1
        P = deformation.smoothed(K)
        P[np.diag_indices_from(P)] += deformation.gamma_a
        factor, pivots, singular = scipy.linalg.lapack.dgetrf(P, overwrite_a=True)
        if singular or not self._usable(factor, pivots):
            return deformation(K).solved
        return partial(scipy.linalg.lu_solve, (factor, pivots), check_finite=False)

    def _usable(self, factor: Floats, pivots: npt.NDArray[np.intc]) -> bool:
        """Return True if the factors of P give finite numbers."""
        ones = np.ones(self._n_points)
        with np.errstate(over="ignore", invalid="ignore"):
            solved = scipy.linalg.lu_solve((factor, pivots), ones, check_finite=False)
        return bool(np.isfinite(solved).all())

    def _evaluated(self, K: Floats, beta: Floats, alpha: Floats) -> Machines:
        """Return the machines at feasible `beta` and coefficients `alpha`, with their bounds."""
        deformation = self._deformation
        f = K @ alpha
        signed = deformation.spread(beta * self._y, self._n_points)
        smooth = deformation.smoothed(f)
        fitting = (signed - smooth) / deformation.gamma_a
        ambient = 0.5 * deformation.gamma_a * (alpha * f).sum(axis=0)
        smoothness = np.maximum(0.5 * (f * smooth).sum(axis=0), 0.0)
        bias, value, rounding = np.zeros(len(self._known)), 0.0, np.zeros(len(self._known))
        coefficients, reach = alpha.copy(), np.sqrt(K.diagonal())
        nothing = np.zeros(len(deformation.labelled))
        for c, known in enumerate(self._known):
            y, points = self._y[known, c], deformation.labelled[known]
            unsure = decision_rounding(reach, alpha[:, c])
            hinge = _mean_hinge(f[points, c], y, unsure[points])
            own = hinge.loss + max(float(ambient[c]), 0.0) + float(smoothness[c])
            rounding[c] = deformation.rounding(reach, alpha[:, c], f[:, c], nothing)
            own += rounding[c]
            constant = _mean_hinge(np.zeros(len(y)), y, np.zeros(len(y)))
            if own > constant.loss:
                coefficients[:, c], own, hinge = 0.0, constant.loss, constant
            bias[c] = hinge.b
            value += own
        return Machines(
            coefficients=coefficients,
            bias=bias,
            dual_variables=deformation.spread(beta, self._n_points),
            value=value,
            gain=float(beta.sum()),
            a=fitting,
            roughness=float((smoothness + rounding).sum()),
            reach=1.0 / max(float((beta * self._counts).max()), np.finfo(np.float64).tiny),
        )


class _MeanHinge(NamedTuple):
    """Mean hinge loss, and the bias at which it is least."""

    loss: float
    b: float


def _mean_hinge(f: Floats, y: Floats, unsure: Floats) -> _MeanHinge:
    """Return the mean hinge loss at the best bias, and that bias.

    It is an upper bound for all errors up to `unsure`, (l,), of the decisions f without bias.
    """
    b = best_bias(f, y)
    slack = 1.0 - y * (f + b)
    at_most = np.where(slack > -unsure - EPS, np.maximum(slack, 0.0) + unsure, 0.0)
    return _MeanHinge(float(at_most.mean()), b)


class LSVMParams(ManifoldParams):
    """Parameters of the Laplacian support vector machine; defaults are for unit traces."""

    gamma_a: float = Field(1e-5, ge=LEAST, le=LARGEST, description="weight of the ambient norm")
    gamma_i: float = Field(1e4, ge=0, le=LARGEST, description="weight of the intrinsic norm")


def solve(problem: Problem, params: LSVMParams) -> Steps:
    """Solve the machine, or one machine a class."""
    weights = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
    K = yield Combine(weights)
    counters = Counters()
    machines = ManifoldSvm(problem, params.gamma_a, params.gamma_i, params.tol, counters)
    found = machines(K)
    ambient = params.gamma_a * float((found.a * (K @ found.a)).sum())
    lower = max(found.gain - found.roughness - ambient, 0.0)
    coefficients, bias, beta = found.by_class(single=problem.y.ndim == 1)
    return direct_solution(
        problem, params, found.value, lower, kernel_weights=weights, coefficients=coefficients,
        bias=bias, dual_variables=beta, counters=counters,
    )  # fmt: skip


METHOD = Method(
    name="lsvm",
    solve=solve,
    params=LSVMParams,
    title="Laplacian support vector machine in the dual",
    problem="semi-supervised SVM on the mean kernel",
    loss="hinge",
    regularizer="gamma_a ||f||^2 + gamma_i/n^2 f'L f",
    reference="Belkin, Niyogi & Sindhwani 2006, section 4.3",
    hyperparameters=("gamma_a", "gamma_i"),
    needs_laplacian=True,
    joint_classes=True,
    typical_passes=lambda n_kernels: 1,
    memory=memory_on_graph,
)
