"""Cutting planes of the value of a support vector machine, each with its dual point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mkldist.arrays import Floats
from mkldist.machines.svm import SvmSolution
from mkldist.methods.wrapper.bounds import MachinePoint
from mkldist.optim.cutting_planes import CuttingPlanes


class CutsBound(NamedTuple):
    """A lower bound of the optimum, and the dual points whose cuts give it."""

    value: float = -math.inf
    points: Sequence[MachinePoint] = ()


NO_CUTS = CutsBound()


class MachineCuts:
    """The cuts ``1'alpha - 1/2 sum_m d_m q_m`` of machines over the simplex of M weights.

    Parameters
    ----------
    n_kernels : int
        Number M of kernels.
    """

    def __init__(self, n_kernels: int) -> None:
        self.planes = CuttingPlanes(n_kernels)
        self._points: list[MachinePoint] = []

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
        self._points.append(MachinePoint(svm.alpha, svm.height))
        minimum = self.planes.minimum()
        binding = [self._points[j] for j in np.flatnonzero(minimum.rows)]
        return CutsBound(minimum.bound, binding)
