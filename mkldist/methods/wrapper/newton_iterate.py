"""Kernel weights that move along segments, by damped Newton steps where a method wants them.

The second-order model of the support vector machine's value is that of
:mod:`.value_curvature`; a step towards its minimiser is searched, and damping
follows how far it went.  Steps whose slope drowns in what the inner machines leave are full and
untested.
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
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.segment import Segment
from mkldist.methods.wrapper.value_curvature import Damping, hessian_root
from mkldist.optim.simplex_qp import LowRankQuadratic as Model
from mkldist.optim.simplex_qp import minimise_over_orthant, minimise_over_simplex
from mkldist.solvers.base import Problem

INNER_TOLERANCE = 0.1  # of tol: gradient and Hessian are those of the optimal alpha
SLOPE_FLOOR = 1e-3  # of tol times the objective: a slope below says nothing
UNTESTED_LIMIT = 5  # steps below that floor in a row


@dataclass(frozen=True)
class WeightDomain:
    """Where kernel weights may be.

    Parameters
    ----------
    minimise : callable
        Returns the minimiser of a model there, from a guess of its support.
    reduced : callable
        Returns what vanishes of a gradient, at weights, where those are optimal.
    """

    minimise: Callable[[Model, Ints], Floats]
    reduced: Callable[[Floats, Floats], Floats]


SIMPLEX = WeightDomain(minimise_over_simplex, lambda gradient, d: gradient - d @ gradient)
ORTHANT = WeightDomain(minimise_over_orthant, lambda gradient, d: gradient)


class NewtonIterate:
    """Kernel weights d, their combined kernel K, and its machine.

    Parameters
    ----------
    problem : Problem
        Labels and number of kernels.
    C : float
        Bound of the dual variables.
    tol : float
        Relative gap of the outer problem.
    domain : WeightDomain
        Where the weights may be.
    """

    K: Floats
    svm: SvmSolution

    def __init__(self, problem: Problem, C: float, tol: float, domain: WeightDomain) -> None:
        self.d: Floats = np.full(problem.n_kernels, 1.0 / problem.n_kernels)
        self.counters, self.untested = Counters(), 0
        self.svm_at = InnerSvm(problem.y, C, INNER_TOLERANCE * tol, self.counters)
        self._C, self._tol, self._domain = C, tol, domain
        self._damping = Damping()
        self._support = np.zeros(problem.n_kernels, dtype=bool)

    @property
    def stuck(self) -> bool:
        """Whether rounding has hidden all that the last steps promised."""
        return self.untested >= UNTESTED_LIMIT

    def start(self, K: Floats) -> None:
        """Solve the machine at weights whose combined kernel is `K`."""
        self.K, self.svm = K, self.svm_at(K)
        self.counters.combines += 1

    def model_minimiser(
        self, working: Ints, gradient: Floats, size: float
    ) -> Generator[Request, Any, Floats]:
        """Return the weights that minimise the second-order model of the objective.

        Parameters
        ----------
        working : (S,) intp
            Kernels whose weights vary.
        gradient : (S,) float64
            Derivatives by their weights.
        size : float
            Size of the weights, positive.
        """
        products = yield Matvec(working, self.svm.signed)
        self.counters.passes += len(working) == len(self.d)
        root = hessian_root(self.K, self.svm.alpha, self._C, products)
        point = self.d[working]
        ridge = self._damping.ridge(root, self._domain.reduced(gradient, point), size)
        model = Model.around(point, gradient, root, ridge)
        end = np.zeros_like(self.d)
        end[working] = self._domain.minimise(model, np.flatnonzero(self._support[working]))
        self._support = end > 0.0
        return end

    def search(self, segment: Segment, objective: float) -> float:
        """Move along a Newton step, and return its length.

        Parameters
        ----------
        segment : Segment
            From the combined kernel at d to that at the model's minimiser.
        objective : float
            Size of what is minimised.
        """
        if segment.slope > -SLOPE_FLOOR * self._tol * objective:
            self.svm_at.sharpen()
            segment.go(1.0)
            self.untested, length = self.untested + 1, 1.0
        else:
            self.untested, length = 0, segment.search()
        self._damping.adapt(length)
        return length

    def move(self, segment: Segment, end: Floats, length: float) -> None:
        """Take the place on the segment that was tried last."""
        self.d = end if length == 1.0 else (1.0 - length) * self.d + length * end
        self.K, self.svm = segment.kernel, segment.svm
