"""Cutting planes of the value of a support vector machine, each with its dual point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.methods.wrapper.bounds import MachinePoint, mixed
from mkldist.optim.cutting_planes import CuttingPlanes
from mkldist.solvers.svm import SvmSolution


class CutsBound(NamedTuple):
    """A lower bound of the optimum, and the dual points whose cuts give it.

    Parameters
    ----------
    value : float
        The bound.
    points : sequence of MachinePoint
        The points.
    shares : (J,) float64
        Their shares in the minimum of the cuts.
    """

    value: float = -math.inf
    points: Sequence[MachinePoint] = ()
    shares: Floats = np.empty(0)

    @property
    def mixture(self) -> MachinePoint:
        """The dual point that mixes the points by their shares: its cut is nowhere below theirs."""
        heights, of_forms = np.array([point[1:] for point in self.points]).T
        height, of_form = float(self.shares @ heights), float(self.shares @ of_forms)
        return MachinePoint(
            mixed([point.alpha for point in self.points], self.shares), height, of_form
        )


NO_CUTS = CutsBound()


class MachineCuts:
    """The cuts ``1'alpha - 1/2 sum_m d_m q_m`` of machines over the simplex of M weights.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.

    Attributes
    ----------
    planes : CuttingPlanes
        The cuts.
    points : list of MachinePoint
        Their dual points.
    """

    def __init__(self, n_kernels: int) -> None:
        self.planes = CuttingPlanes(n_kernels)
        self.points: list[MachinePoint] = []

    def add(self, svm: SvmSolution, q: Floats) -> CutsBound:
        """Add the cut of a machine; return the minimum over the simplex of the largest cut.

        Parameters
        ----------
        svm : SvmSolution
            The machine.
        q : (M,) float64
            Upper bounds of its ``q_m(alpha*y)``.
        """
        self.planes.add(svm.height, -0.5 * q)
        self.points.append(MachinePoint(svm.alpha, svm.height, svm.rounding.of_form))
        minimum = self.planes.minimum()
        binding = np.flatnonzero(minimum.rows)
        points = [self.points[j] for j in binding]
        return CutsBound(minimum.bound, points, minimum.rows[binding])

    def widen(self, q: Floats) -> None:
        """Add kernels to the simplex.

        Parameters
        ----------
        q : (J, K) float64
            Upper bounds of ``q_m(alpha_j*y)`` of the new kernels.
        """
        heights = np.array([point.height for point in self.points])
        self.planes.widen(heights[:, None] - 0.5 * q)
