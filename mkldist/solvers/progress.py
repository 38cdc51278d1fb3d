"""What a solver reports while it runs: reasons to stop, time, bounds, and the convergence trace."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats
from mkldist.core.compiled import preparation_seconds
from mkldist.core.memory import TRACED_WEIGHT_BYTES, trace_bytes
from mkldist.optim.accuracy import relative_gap

STATIONARITY, SAMPLED = "stationarity", "sampled_points"  # keys of Solution.extra

ACTIVE_SHARE = 1e-3
"""Share of the largest kernel weight above which a kernel is active, wherever kernels count."""

N_LARGEST = 5
"""Number of the largest kernel weights in a row of a trace."""


class StopReason(enum.StrEnum):
    """Reason for which a solver returned."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"
    RANK_LIMIT = "rank_limit"  # factors may have no more columns
    MEMORY_LIMIT = "memory_limit"


def is_active(weights: Floats) -> Bools:
    """Return which kernels are active, those of more than 0.001 of the largest weight, (..., M).

    Shapes: `weights` (..., M).

    >>> is_active(np.full(2000, 1 / 2000)).sum(), is_active(np.array([1.0, 0.002, 0.0005, 0.0]))
    (np.int64(2000), array([ True,  True, False, False]))
    """
    sizes = np.abs(weights)
    found: Bools = sizes > ACTIVE_SHARE * sizes.max(axis=-1, keepdims=True, initial=0.0)
    return found


class Clock:
    """Time of one solver in seconds: its own code plus its share of the passes it asked for.

    The driver resumes the clock when it runs the solver, pauses it while the solver waits, and
    charges it with the solver's share of each pass.  A time limit and a reported time therefore
    mean the same for a solver that runs alone and for one that runs beside a hundred others.  The
    clock stands still while its thread compiles functions, or calls them in Python before that.
    """

    # Is called with the upper and the lower bound after each iteration that a trace could hold
    on_iteration: Callable[[float, float], None] | None = None

    def __init__(self) -> None:
        self._spent, self._since = 0.0, working_time()
        self._running = True
        self.passes = 0  # how often the solver's requests have read the whole bank

    @property
    def elapsed(self) -> float:
        """Seconds charged so far."""
        running = working_time() - self._since if self._running else 0.0
        return self._spent + running

    def past(self, limit: float) -> bool:
        """Return True once `limit` seconds are charged."""
        return self.elapsed >= limit

    def pause(self) -> float:
        """Stop counting, and return the seconds since the clock was resumed."""
        seconds = working_time() - self._since if self._running else 0.0
        self._spent, self._running = self._spent + seconds, False
        return seconds

    def resume(self) -> None:
        """Count again."""
        self._since, self._running = working_time(), True

    def charge(self, seconds: float) -> None:
        """Add the seconds of this solver's share of a pass."""
        self._spent += seconds


def working_time() -> float:
    """Return a time in seconds that stands still while this thread prepares functions.

    A thread prepares a function when it compiles it, and when it calls it in Python before that.
    Only differences of two times of one thread mean anything.
    """
    return time.perf_counter() - preparation_seconds()[0]


def working_cpu_time() -> float:
    """Return the processor time of this thread without that of preparing functions."""
    return time.thread_time() - preparation_seconds()[1]


Point = TypeVar("Point")


class Own(NamedTuple):
    """Bounds that an iteration found at its own point, better than the known ones or not."""

    objective: float
    # Lower bound of the optimum; NaN where the iteration visited only some of the kernels
    dual_objective: float = math.nan


class DualBound(NamedTuple):
    """A lower bound of an optimum, and the dual point that certifies it."""

    value: float
    point: Floats  # the point, as :attr:`mkldist.solvers.base.Solution.dual_variables`


@dataclass
class Bounds(Generic[Point]):
    """The best bounds met so far."""

    best: Point  # point of the least value
    lower: float = -math.inf  # the greatest lower bound met
    upper: float = math.inf  # the least value met
    progress: float = 0.0  # relative change of a bound beyond which it counts as better
    idle: int = 0  # iterations since a bound became better
    own: Own = field(default=Own(math.nan))  # what the last iteration found at its own point
    # Dual point that certifies the lower bound
    dual_point: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def gap(self) -> float:
        """Relative gap of the bounds."""
        return relative_gap(self.upper, self.lower)

    def improve_upper(self, point: Point, value: float) -> bool:
        """Keep a point whose value is the least so far; return True if it is."""
        better = value < self.upper
        if better:
            self.upper, self.best = value, point
        return better

    def improve_lower(self, lower: float, dual_point: Floats) -> bool:
        """Keep a lower bound and its dual point if it is the greatest so far; return True if so."""
        better = lower > self.lower
        if better:
            self.lower, self.dual_point = lower, dual_point
        return better

    def take(self, point: Point, value: float, lower: float, dual_point: Floats) -> None:
        """Take up a point, its value and a dual point's lower bound of the optimum."""
        last_upper, last_lower, self.own = self.upper, self.lower, Own(value, lower)
        self.improve_upper(point, value)
        self.improve_lower(lower, dual_point)
        least = self.progress * abs(self.upper)
        better = last_upper - self.upper > least or self.lower - last_lower > least
        self.idle = 0 if better else self.idle + 1

    def restart(self, lower: float) -> None:
        """Continue with a larger problem, for which only `lower` is a lower bound."""
        self.lower, self.idle = lower, 0


Indices = npt.NDArray[np.integer]


def largest(weights: Floats, count: int) -> Indices:
    """Return the places of the largest weights (M,), largest first, of equal ones the first."""
    least = np.partition(weights, -count)[-count]
    places: Indices = np.flatnonzero(weights >= least)
    return places[np.argsort(-weights[places], kind="stable")][:count]


class WeightHistory:
    """Weights other than 0 of all iterations, within `most_bytes`.

    Where they take more, each iteration keeps as many of its largest as there is room for, but
    `least` of them in any case.
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

    The course of the weights that are largest at the end is part of it.  Nothing is recorded unless
    it is `enabled`; `spread` is :attr:`mkldist.solvers.base.Problem.spread`.
    """

    def __init__(
        self, enabled: bool, clock: Clock, spread: Callable[[Floats], Floats] | None = None
    ) -> None:
        self._enabled, self._clock, self._spread = enabled, clock, spread
        self._rows: list[tuple[float, ...]] = []
        self._largest: list[tuple[Indices, Floats]] = []
        self._course: WeightHistory | None = None

    def record(self, objective: float, dual_objective: float, weights: Floats, own: Own) -> None:
        """Add a row for one iteration, and tell who listens to the clock.

        Bounds are the best so far; `weights` (M,) are those of the iteration, and `own` is what it
        found there.
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
            self._course = WeightHistory(trace_bytes(len(weights)), N_LARGEST)
        self._course.add(weights)

    def arrays(self, *, certified: bool = True) -> Arrays:
        """Return the columns of the trace by name; empty if there is no row.

        They are ``seconds``, ``passes``, ``objective``, ``dual_objective``, ``gap`` (relative, NaN
        if not `certified`, where bounds need not meet) and ``active_kernels``, and of the
        iteration's own point ``iterate_objective`` and ``iterate_gap``, all (T,) for T iterations;
        ``largest_kernels`` (indices) and ``largest_weights``, both (T, min(M, 5)), largest first;
        ``final_kernels``, those of the last iteration, and ``final_weights`` (T, min(M, 5)), theirs
        in every iteration.
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
    pairs = zip(objective, dual_objective, strict=True)
    return np.array([relative_gap(*pair) if certified else math.nan for pair in pairs])
