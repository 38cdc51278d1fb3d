"""Standstill of a cutting-plane method: machines of a tolerance, then rounding, hide what is left.

The Level method asks each machine for a share of the distance between the bounds.  Where the share
is smaller than the machine's own gap, the cut says nothing new and the next iterate is the last one
again.  Exact machines then help; where these narrow the bounds no more either, rounding decides.
"""

from __future__ import annotations

import math

from mkldist.machines.inner_svm import InnerSvm

PROGRESS = 1e-3  # share of the distance by which an iteration must narrow the bounds
SHARPEN_AFTER = 5  # iterations without progress, after which machines are solved exactly
PATIENCE = 25  # iterations without progress, after which only rounding is left


class Standstill:
    """Count of iterations that did not narrow the bounds.

    Parameters
    ----------
    machine : InnerSvm
        Sharpened when iterations stand still.
    """

    def __init__(self, machine: InnerSvm) -> None:
        self._machine = machine
        self._least, self._idle = math.inf, 0

    def after(self, width: float) -> bool:
        """Return True if the last `PATIENCE` iterations did not narrow the bounds.

        Parameters
        ----------
        width : float
            Distance of the bounds over the kernels at hand, after an iteration.  It grows only
            where kernels join, which begins a new count.
        """
        if width < (1.0 - PROGRESS) * self._least or width > self._least:
            self._least, self._idle = width, 0
        else:
            self._idle += 1
        if self._idle == SHARPEN_AFTER:
            self._machine.sharpen()
        return self._idle >= PATIENCE
