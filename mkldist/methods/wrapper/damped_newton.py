"""Damped Newton steps on kernel weights.

A step goes towards the minimiser of the second-order model of the objective over the weights that
are allowed, and searches the segment in between (:mod:`.segment`).  A proximal term damps the
model: it grows after a short step and shrinks after a full one.

Close to the optimum the slope of a segment drowns in the error of the inner machines.  Steps are
then full and untested, and machines are solved as exactly as rounding permits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats, Ints
from mkldist.methods.wrapper.segment import Iterate, Segment
from mkldist.optim.simplex_qp import LowRankQuadratic as Model
from mkldist.optim.simplex_qp import minimise_over_orthant, minimise_over_simplex
from mkldist.solvers.svm import InnerSvm

INNER_TOLERANCE = 0.1  # of tol: gradient and Hessian are those of the optimal alpha
SLOPE_FLOOR = 1e-3  # of tol times the objective: a slope below says nothing
UNTESTED_LIMIT = 5  # steps below that floor in a row
DAMPING_FLOOR = 1e-10  # least share of the curvature in the proximal term
LONGEST = 10.0  # multiple of the weights' size that bounds a step where the model is flat
SHORT = 0.1  # length of a step, below which the model was wrong


@dataclass(frozen=True)
class WeightDomain:
    """Set of the kernel weights that are allowed.

    Parameters
    ----------
    minimise : callable
        Returns the minimiser of a model there, from a guess of its support.
    reduced : callable
        Returns the part of a gradient, at weights, that vanishes where those are optimal.
    """

    minimise: Callable[[Model, Ints], Floats]
    reduced: Callable[[Floats, Floats], Floats]


SIMPLEX = WeightDomain(minimise_over_simplex, lambda gradient, d: gradient - d @ gradient)
ORTHANT = WeightDomain(minimise_over_orthant, lambda gradient, d: gradient)


class Damping:
    """Weight of the proximal term in a second-order model, relative to the model's curvature."""

    def __init__(self) -> None:
        self._share = DAMPING_FLOOR

    def ridge(self, root: Floats, slopes: Floats, size: float) -> float:
        """Return the weight of the proximal term.

        Where the model is flat, it bounds the step by a multiple of the size of the weights.  It
        fades with the slopes, so that the last steps are Newton's.

        Parameters
        ----------
        root : (f, S) float64
            Root of the Hessian.
        slopes : (S,) float64
            Reduced gradient, which vanishes at the optimum.
        size : float
            Size of the weights, positive.
        """
        curvature = float(np.einsum("ks,ks->s", root, root).max(initial=0.0))
        steepest = float(np.abs(slopes).max(initial=0.0))
        return max(self._share * curvature, steepest / (LONGEST * size))

    def adapt(self, length: float) -> None:
        """Lower the weight after a full step, and raise it after a short one."""
        if length >= 1.0:
            self._share = max(0.1 * self._share, DAMPING_FLOOR)
        elif length < SHORT:
            self._share = min(100.0 * self._share, 1.0)


class DampedNewton:
    """Damped Newton steps of one solver.

    Parameters
    ----------
    domain : WeightDomain
        Where the weights may be.
    n_kernels : int
        Number M of kernels.
    tol : float
        Relative gap of the outer problem.
    svm_at : InnerSvm
        Machines of the solver; solved as exactly as possible once slopes drown in their error.
    """

    def __init__(self, domain: WeightDomain, n_kernels: int, tol: float, svm_at: InnerSvm) -> None:
        self._domain, self._tol, self._svm_at = domain, tol, svm_at
        self._damping = Damping()
        self._support = np.zeros(n_kernels, dtype=bool)
        self._untested = 0

    @property
    def stuck(self) -> bool:
        """True once several steps in a row were untested."""
        return self._untested >= UNTESTED_LIMIT

    def minimiser(
        self, d: Floats, working: Ints, gradient: Floats, root: Floats, size: float
    ) -> Floats:
        """Return the weights (M,) that minimise the damped second-order model of the objective.

        Parameters
        ----------
        d : (M,) float64
            Weights at which the model touches the objective.
        working : (S,) intp
            Kernels whose weights vary, among them all of positive weight.
        gradient : (S,) float64
            Derivatives of the objective by their weights.
        root : (f, S) float64
            Root of its Hessian in them.
        size : float
            Size of the weights, positive.
        """
        point = d[working]
        ridge = self._damping.ridge(root, self._domain.reduced(gradient, point), size)
        model = Model.around(point, gradient, root, ridge)
        d_end = np.zeros_like(d)
        d_end[working] = self._domain.minimise(model, np.flatnonzero(self._support[working]))
        self._support = d_end > 0.0
        return d_end

    def search(self, segment: Segment, objective: float) -> Iterate:
        """Return the iterate to which a Newton step leads, and adapt the damping to its length.

        Parameters
        ----------
        segment : Segment
            From the iterate to the model's minimiser.
        objective : float
            Size of the objective.
        """
        if segment.slope > -SLOPE_FLOOR * self._tol * objective:
            self._svm_at.sharpen()
            self._untested += 1
            moved = segment.at(1.0)
        else:
            self._untested = 0
            moved = segment.search()
        self._damping.adapt(moved.step)
        return moved
