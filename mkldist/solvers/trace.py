"""Convergence traces: one row per outer iteration, recorded only if the user asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.memory import TRACED_WEIGHT_BYTES, trace_bytes
from mkldist.optim.duality_gap import relative_gap
from mkldist.solvers.bounds import Own
from mkldist.solvers.clock import Clock
from mkldist.solvers.outcome import N_LARGEST, is_active

Indices = npt.NDArray[np.integer]


def largest(weights: Floats, count: int) -> Indices:
    """Return the places of the largest weights (M,), largest first, of equal ones the first.

    Examples
    --------
    >>> largest(np.array([0.1, 0.4, 0.1, 0.4]), 3)
    array([1, 3, 0])
    """
    least = np.partition(weights, -count)[-count]
    places: Indices = np.flatnonzero(weights >= least)
    return places[np.argsort(-weights[places], kind="stable")][:count]


class WeightCourse:
    """Weights other than 0 of all iterations, within a number of bytes.

    Where they take more, each iteration keeps as many of its largest as there is room for.

    Parameters
    ----------
    most_bytes : int
        Bytes that the weights and their places may take, as :func:`mkldist.core.memory.trace_bytes`
        says.
    least : int
        Number of the largest weights that each iteration keeps in any case.
    """

    def __init__(self, most_bytes: int, least: int) -> None:
        self._most, self._least = most_bytes // TRACED_WEIGHT_BYTES, least
        self._held = 0
        self._rows: list[tuple[npt.NDArray[np.int32], Floats, bool]] = []

    def add(self, weights: Floats) -> None:
        """Add the weights (M,) of an iteration."""
        places: Indices = np.flatnonzero(weights)
        is_whole = True
        if self._held + len(places) > self._most:
            width = max(self._least, self._most // (2 * (len(self._rows) + 1)))
            self._narrow(width)
            is_whole = len(places) <= width
            places = _of_largest(places, weights[places], width)
        self._rows.append((places.astype(np.int32), weights[places], is_whole))
        self._held += len(places)

    def of(self, kernels: Indices) -> Floats:
        """Return the weights (T, k) of k kernels in all T iterations.

        A weight is NaN in an iteration that kept only larger ones.
        """
        course = np.zeros((len(self._rows), len(kernels)))
        for row, (places, weights, is_whole) in zip(course, self._rows, strict=True):
            at = np.searchsorted(places, kernels)
            there = at < len(places)
            there[there] = places[at[there]] == kernels[there]
            row[there] = weights[at[there]]
            if not is_whole:
                row[~there] = np.nan
        return course

    def _narrow(self, width: int) -> None:
        """Keep only so many of the largest weights of each iteration."""
        for number, (places, weights, _) in enumerate(self._rows):
            if len(places) > width:
                kept = _of_largest(np.arange(len(places)), weights, width)
                self._rows[number] = places[kept], weights[kept], False
                self._held -= len(places) - width


def _of_largest(places: Indices, weights: Floats, count: int) -> Indices:
    """Return those ascending places (s,) whose weights (s,) are the largest, as they lie."""
    if len(places) <= count:
        return places
    return np.sort(places[largest(weights, count)])


Arrays = dict[str, npt.NDArray[Any]]


class Trace:
    """Record of bounds, number of active kernels and largest weights, by iteration and time.

    The course of the weights that are largest at the end is part of it.

    Parameters
    ----------
    enabled : bool
        Record nothing if False.
    clock : Clock
        Clock of the solver's time, and its count of passes.
    spread : callable, optional
        Turns weights of the solver's kernels into those of the bank's, see
        :attr:`mkldist.solvers.base.Problem.spread`.
    """

    def __init__(
        self, enabled: bool, clock: Clock, spread: Callable[[Floats], Floats] | None = None
    ) -> None:
        self._enabled, self._clock, self._spread = enabled, clock, spread
        self._rows: list[tuple[float, ...]] = []
        self._largest: list[tuple[Indices, Floats]] = []
        self._course: WeightCourse | None = None

    def record(self, objective: float, dual_objective: float, weights: Floats, own: Own) -> None:
        """Add a row for one iteration, and tell who listens to the clock.

        Parameters
        ----------
        objective, dual_objective : float
            Best upper and lower bound so far.
        weights : (M,) float64
            Kernel weights of the iteration.
        own : Own
            What the iteration found at these weights.
        """
        if self._clock.on_iteration is not None:
            self._clock.on_iteration(objective, dual_objective)
        if not self._enabled:
            return
        if self._spread is not None:
            weights = self._spread(weights)
        active = float(is_active(weights).sum())
        clock = self._clock
        self._rows.append((clock.elapsed, clock.passes, objective, dual_objective, *own, active))
        count = min(N_LARGEST, len(weights))
        top = largest(weights, count)
        self._largest.append((top, weights[top]))
        if self._course is None:
            self._course = WeightCourse(trace_bytes(len(weights)), N_LARGEST)
        self._course.add(weights)

    @classmethod
    def of_one(
        cls, enabled: bool, clock: Clock, objective: float, dual_objective: float, weights: Floats
    ) -> Arrays:
        """Return the trace of a method that ends in one step: one row, or none if not enabled."""
        trace = cls(enabled, clock)
        own = Own(objective, dual_objective)
        trace.record(*own, weights, own)
        return trace.arrays()

    def arrays(self, *, certified: bool = True) -> Arrays:
        """Return the columns of the trace by name; empty if there is no row.

        Parameters
        ----------
        certified : bool
            False where the bounds need not meet, so that the gap is NaN.

        Returns
        -------
        dict of str to array
            ``seconds``, ``passes``, ``objective``, ``dual_objective``, ``gap`` (relative) and
            ``active_kernels``, and of the iteration's own point ``iterate_objective`` and
            ``iterate_gap``, all (T,) for T iterations; ``largest_kernels`` (indices) and
            ``largest_weights``, both (T, min(M, 5)), largest first; ``final_kernels``, those of
            the last iteration, and ``final_weights`` (T, min(M, 5)), theirs in every iteration.
        """
        if self._course is None:
            return {}
        seconds, passes, objective, dual, own, own_dual, active = np.array(self._rows).T
        return {
            "seconds": seconds,
            "passes": passes,
            "objective": objective,
            "dual_objective": dual,
            "gap": _gaps(objective, dual, certified=certified),
            "iterate_objective": own,
            "iterate_gap": _gaps(own, own_dual, certified=certified),
            "active_kernels": active,
            "largest_kernels": np.array([top for top, _ in self._largest], dtype=np.int64),
            "largest_weights": np.array([weights for _, weights in self._largest]),
            "final_kernels": self._largest[-1][0].astype(np.int64),
            "final_weights": self._course.of(self._largest[-1][0]),
        }


def _gaps(objective: Floats, dual_objective: Floats, *, certified: bool) -> Floats:
    """Return the relative gaps of rows (T,), NaN where bounds need not meet."""
    if not certified:
        return np.full(len(objective), np.nan)
    pairs = zip(objective, dual_objective, strict=True)
    return np.array([relative_gap(upper, lower) for upper, lower in pairs])
