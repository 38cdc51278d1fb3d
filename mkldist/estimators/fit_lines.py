"""Lines on standard output about a fit, for those who set `verbose`."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence

from mkldist.arrays import Floats
from mkldist.counted import counted
from mkldist.in_memory.kernel_bank import KernelBank
from mkldist.in_memory.verbose import say


class FitLines:
    """Lines about the bank and the problems of a fit; those of solvers are solvers' own.

    Parameters
    ----------
    name : str
        The estimator, with which each line begins.
    verbose : int
        0 prints nothing.
    """

    def __init__(self, name: str, verbose: int) -> None:
        self._name, self._verbose = name, verbose
        self._start = time.perf_counter()

    def begin(self, n_rows: int, n_features: int) -> None:
        """Tell what is going to be computed, which may take long."""
        rows, features = counted(n_rows, "row"), counted(n_features, "feature")
        self._print(f"makes the kernels of {rows} and {features}, or takes those it made before")

    def bank(self, bank: KernelBank) -> None:
        """Tell what the kernels take."""
        seconds = time.perf_counter() - self._start
        self._print(f"{repr(bank).strip('<>').removeprefix('KernelBank: ')}; {seconds:.1f} s")

    def each(
        self, problems: Sequence[Floats], classes: Sequence[Hashable] | None
    ) -> Iterator[Floats]:
        """Return the problems one by one, and tell which it is where there are several."""
        for number, problem in enumerate(problems):
            if len(problems) > 1 and classes is not None:
                place = f"{number + 1} of {len(problems)}"
                self._print(f"class {classes[number]!r} against the rest, {place}")
            yield problem

    def _print(self, words: str) -> None:
        if self._verbose:
            say(self._name, words)
