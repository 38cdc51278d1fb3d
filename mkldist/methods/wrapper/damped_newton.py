"""Damped Newton steps on kernel weights.

A step minimises the second-order model of the support vector machine's value
(:mod:`.value_curvature`) over the weights that are allowed, and the segment towards the minimiser
is searched (:mod:`.segment`).  A proximal term damps the model: it grows after a short step and
shrinks after a full one.

Close to the optimum the slope of a segment drowns in the error of the inner machines.  Steps are
then full and untested, and machines are solved as exactly as rounding permits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counters import Counters
from mkldist.gram.requests import Matvec, Request
from mkldist.machines.inner_svm import InnerSvm
from mkldist.methods.wrapper.segment import Iterate, Segment
from mkldist.methods.wrapper.value_curvature import Damping, hessian_root
from mkldist.optim.simplex_qp import Quadratic as Model
from mkldist.optim.simplex_qp import minimise_over_orthant, minimise_over_simplex

INNER_TOLERANCE = 0.1  # of tol: gradient and Hessian are those of the optimal alpha
SLOPE_FLOOR = 1e-3  # of tol times the objective: a slope below says nothing
UNTESTED_LIMIT = 5  # steps below that floor in a row


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


class DampedNewton:
    """Damped Newton steps of one solver.

    Parameters
    ----------
    domain : WeightDomain
        Where the weights may be.
    n_kernels : int
        Number M of kernels.
    C : float
        Bound of the dual variables.
    tol : float
        Relative gap of the outer problem.
    svm_at : InnerSvm
        Solves the machines; told to be exact once slopes drown in its error.
    counters : Counters
        Where passes are counted.
    """

    def __init__(
        self,
        domain: WeightDomain,
        n_kernels: int,
        C: float,
        tol: float,
        svm_at: InnerSvm,
        counters: Counters,
    ) -> None:
        self._domain, self._C, self._tol = domain, C, tol
        self._svm_at, self._counters = svm_at, counters
        self._damping = Damping()
        self._support = np.zeros(n_kernels, dtype=bool)
        self._untested = 0

    @property
    def stuck(self) -> bool:
        """True once several steps in a row were untested."""
        return self._untested >= UNTESTED_LIMIT

    def minimiser(
        self, at: Iterate, working: Ints, gradient: Floats, size: float
    ) -> Generator[Request, Any, Floats]:
        """Return the weights (M,) that minimise the damped model of the objective.

        Parameters
        ----------
        at : Iterate
            Where the model touches the objective.
        working : (S,) intp
            Kernels whose weights vary; the others get none.
        gradient : (S,) float64
            Derivatives by their weights.
        size : float
            Size of the weights, positive.

        Yields
        ------
        Matvec
        """
        products = yield Matvec(working, at.svm.signed)
        self._counters.passes += len(working) == len(at.d)
        root = hessian_root(at.K, at.svm.alpha, self._C, products)
        point = at.d[working]
        ridge = self._damping.ridge(root, self._domain.reduced(gradient, point), size)
        model = Model.around(point, gradient, root, ridge)
        d_end = np.zeros_like(at.d)
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
