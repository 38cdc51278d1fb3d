"""Lines on standard output about a solver that runs, for those who ask for them."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numpy as np

from mkldist.counted import counted
from mkldist.errors import SpecError
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.base import Solution
from mkldist.solvers.clock import Clock

SECONDS_BETWEEN = 1.0  # lines about iterations, unless every one is asked for


def verbosity(verbose: Any) -> int:
    """Return how much is to be printed: 0 nothing, 1 some iterations, 2 and more all of them.

    Raises
    ------
    mkldist.errors.SpecError
        For anything but True, False and whole numbers from 0.
    """
    if isinstance(verbose, bool | int | np.bool_ | np.integer) and verbose >= 0:
        return int(verbose)
    raise SpecError("verbose", f"{verbose!r:.60}", "False, True, or 2 for every iteration")


def say(name: str, words: str) -> None:
    """Print a line about something of a name, at once."""
    sys.stdout.write(f"[{name}] {words}\n")
    sys.stdout.flush()


class SolverLines:
    """Lines about one solver: its iterations, and how it ended.

    Parameters
    ----------
    method : str
        The method, with which each line begins.
    verbose : int
        As :func:`verbosity` returns it.
    clock : Clock
        The solver's, from which iterations are heard.
    """

    def __init__(self, method: str, verbose: int, clock: Clock) -> None:
        self._method, self._verbose, self._clock = method, verbose, clock
        self._start = self._printed = time.perf_counter()
        self._iterations, self._lower = 0, -math.inf
        if verbose:
            clock.on_iteration = self._iteration

    def ended(self, solution: Solution) -> None:
        """Tell how the solver ended."""
        if self._verbose:
            words = repr(solution).removeprefix("<Solution: ").removesuffix(">")
            counters = solution.counters
            n = counted(counters.outer_iterations, "iteration")
            self._print(f"{words}; {n}", counters.passes)

    def _iteration(self, objective: float, dual_objective: float) -> None:
        """Tell of an iteration, unless one was told of just before."""
        self._iterations += 1
        if dual_objective < self._lower:  # as on longer factors of the kernels
            self._print("a further round, whose bounds start anew", self._clock.passes)
            self._printed = -math.inf
        self._lower = dual_objective
        if self._verbose == 1 and time.perf_counter() < self._printed + SECONDS_BETWEEN:
            return
        gap = relative_gap(objective, dual_objective)
        self._print(
            f"iteration {self._iterations}: objective {objective:.6g}, lower bound "
            f"{dual_objective:.6g}, gap {gap:.2g}",
            self._clock.passes,
        )

    def _print(self, words: str, n_passes: int) -> None:
        self._printed = time.perf_counter()
        seconds, passes = self._printed - self._start, counted(n_passes, "pass", "passes")
        say(self._method, f"{words}; {passes}, {seconds:.1f} s")
