"""Reduced gradient descent over the simplex: directions, and steps from where none descends.

The methods that descend (:mod:`.simplemkl`, :mod:`.rmkl`) minimise a convex J(d) over the simplex
of kernel weights.  At weights d, a direction keeps the sum of the weights: the kernel of a large
weight, the *reference*, balances the changes of the others (Rakotomamonjy et al. 2008, (12)).

The problem and its optimum are the paper's.  Five things differ from its toolbox:

* A line search asks for the matrix of its direction D, ``K_D = sum_m D_m K_m``, once.  Every trial
  then costs a machine and no kernel, and its slope ``-1/2 (alpha*y)' K_D (alpha*y)`` comes free.
  The search finds the root of the slope, where golden section would sample values.
* Limited-memory BFGS on the current face scales the reduced gradient (:class:`QuasiNewton`).  The
  plain direction (``curvature=False``) zigzags.
* Kernels that reach zero on the way do not cost a machine each (:mod:`.simplex_line`).
* J has kinks, where the machine is not unique and its reduced gradient need not descend.  From
  there the Level method finds the next weights (:class:`KinkSteps`); its cutting planes also
  bound J from below.
* Iterations visit a working set of kernels (:mod:`.restricted_bound`).
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from mkldist.core.arrays import Floats
from mkldist.core.memory import ProblemSize, SolverMemory
from mkldist.methods.wrapper.machine_cuts import NO_CUTS, CutsBound, MachineCuts
from mkldist.methods.wrapper.simplex_line import SimplexPath
from mkldist.optim.descent import LimitedMemory
from mkldist.solvers.solver_params import Effects, SolverParams
from mkldist.solvers.svm import SvmSolution

MATRICES = 7  # combined kernels of a line search
VECTORS = 72  # vectors (M,) of the quasi-Newton pairs of all kernels, and what goes with them
FEW_VECTORS = 30  # the same of a quarter of the kernels, and of 12 more for all else
REFERENCE_SHARE = 0.5  # of the largest weight, below which another kernel becomes the reference
PATIENCE = 20  # steps from kinks in which the distance of the bounds should shrink
SHRINKAGE = 0.9  # factor by which it should


class ReducedGradientParams(SolverParams):
    """Parameters of every method that descends along the reduced gradient."""

    steers: ClassVar[tuple[str, ...]] = ("curvature", "acceleration")
    effective_with: ClassVar[Effects] = {"acceleration": ("curvature", (True,))}

    curvature: bool = Field(
        True,
        description="scale the reduced gradient by limited-memory BFGS, and leave kinks; "
        "false: the paper's algorithm",
    )
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels, as in the paper"
    )


def memory_of_descent(size: ProblemSize, params: ReducedGradientParams) -> SolverMemory:
    """Return the memory of a solver, whose quasi-Newton pairs have an entry a kernel at hand."""
    few = params.curvature and params.acceleration == "working-set"
    return size.memory(matrices=MATRICES, vectors=FEW_VECTORS if few else VECTORS)


def reference_kernel(d: Floats, last: int | None) -> int:
    """Return the kernel that balances the changes of the others.

    The paper takes the kernel of the largest weight.  Here the last reference stays while its
    weight is at least half the largest, because reduced gradients, and the curvature learnt from
    their changes, mean nothing for another reference.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    last : int or None
        Reference of the last iteration, None at the first.
    """
    if last is None or d[last] < REFERENCE_SHARE * d.max():
        return int(d.argmax())
    return last


def steepest_direction(d: Floats, gradient: Floats, reference: int) -> Floats:
    """Return the negative reduced gradient, the direction D (M,) of (12).

    A kernel of weight zero stays there unless its weight would grow.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    gradient : (M,) float64
        Derivatives of J by the weights.
    reference : int
        The kernel that balances the others.
    """
    reduced = gradient - gradient[reference]
    D: Floats = np.where((d > 0) | (reduced < 0), -reduced, 0.0)
    D[reference] = 0.0
    D[reference] = -D.sum()
    return D


class QuasiNewton:
    """Reduced gradients scaled by limited-memory BFGS on the current face of the simplex."""

    def __init__(self) -> None:
        self._memory, self._reference = LimitedMemory(), -1

    def forget(self) -> None:
        """Forget the curvature met."""
        self._memory.forget()

    def path(self, d: Floats, gradient: Floats, reference: int) -> SimplexPath:
        """Return the path along the scaled direction, or the steepest where curvature is unknown.

        Parameters
        ----------
        d, gradient, reference
            As for :func:`steepest_direction`.
        """
        if reference != self._reference:
            self._reference = reference
            self.forget()
        reduced = gradient - gradient[reference]
        free = (d > 0) | (reduced < 0)
        free[reference] = False
        self._memory.observe(d, reduced)
        D = self._memory.direction(reduced, free)
        if D is not None:
            D[(d <= 0) & (D < 0)] = 0.0
            if D @ reduced < 0.0:
                D[reference] = 0.0
                D[reference] = -D.sum()
                return SimplexPath(d, D, reference, newton_like=True)
            self.forget()
        return SimplexPath(d, steepest_direction(d, gradient, reference), reference)


class KinkSteps:
    """Steps of the Level method, from weights where no reduced gradient descends.

    Before the first such step no cutting plane is kept, so that a descent that meets no kink pays
    nothing.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels at work.

    Attributes
    ----------
    cuts : MachineCuts
        The cutting planes.
    """

    def __init__(self, n_kernels: int) -> None:
        self.cuts = MachineCuts(n_kernels)
        self._widths: deque[float] = deque(maxlen=PATIENCE + 1)

    @property
    def exhausted(self) -> bool:
        """True once PATIENCE steps have not narrowed the bounds, because of rounding."""
        return len(self._widths) > PATIENCE and self._widths[-1] > SHRINKAGE * self._widths[0]

    def go_on(self) -> None:
        """Count steps anew, on a problem that has more kernels."""
        self._widths.clear()

    def lower_bound(self, svm: SvmSolution, q: Floats) -> CutsBound:
        """Return the minimum of all cuts, this machine's included; none before the first step.

        Parameters
        ----------
        svm : SvmSolution
            The machine.
        q : (M,) float64
            Upper bounds of its quadratic forms.
        """
        return self.cuts.add(svm, q) if self.cuts.points else NO_CUTS

    def step(self, d: Floats, svm: SvmSolution, q: Floats, upper: float, lower: float) -> Floats:
        """Return the next weights: the nearest to `d` at which all cuts are below a level.

        Parameters
        ----------
        d : (M,) float64
            Kernel weights.
        svm, q
            The machine at `d`, as for :meth:`lower_bound`.
        upper, lower : float
            Bounds of the minimum of J.
        """
        if not self.cuts.points:
            self.cuts.add(svm, q)
        self._widths.append(upper - lower)
        return self.cuts.planes.level_step(d, upper, lower)
