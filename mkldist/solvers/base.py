"""The contract between a solver and the rest of mkldist.

A solver is a generator function ``solve(problem, params)``.  It *yields* the requests of
:mod:`mkldist.gram.requests`, receives their answers as the value of the ``yield`` expression, and
*returns* a :class:`Solution`::

    def solve(problem: Problem, params: LevelParams) -> Steps:
        ...
        K = yield Combine(d)            # (n, n)
        ...
        q = yield Quadratic(alpha * y)  # (M,)
        ...
        return Solution(...)

It never sees where the bank lives, and it may be suspended at every ``yield`` while a driver
collects the requests of other solvers and answers them all by one pass.  What it promises:

* it minimises the objective that its docstring states, and returns a primal value (upper bound)
  and a dual value (lower bound) of it, both in float64 and both honest for the point returned;
* it returns after at most ``params.max_iter`` outer iterations or ``params.time_limit`` seconds
  of its own time with a :class:`StopReason` that says which, never NaN and never an exception
  for admissible input;
* it keeps no state outside the generator.

A method with ``joint_classes`` also takes labels of k classes at once, one column a class, and
finds the kernel weights that they share: it minimises the sum of the classes' objectives, with
whatever depends on the weights alone counted once.

Register it by one line in :mod:`mkldist.methods.registry`.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from mkldist.arrays import Floats
from mkldist.counters import Counters
from mkldist.errors import GramError
from mkldist.gram.requests import Request
from mkldist.optim.duality_gap import relative_gap
from mkldist.target import Target

Steps = Generator[Request, Any, "Solution"]
USUAL_PASSES = 40

Effects = Mapping[str, tuple[str, tuple[object, ...]]]


class Clock:
    """Seconds of a solver's own life: its own code plus its share of the passes it asked for.

    The driver resumes the clock when it runs the solver, pauses it when the solver waits, and
    charges it with its share of a pass, so that a time limit and a reported time mean the same
    whether a solver runs alone or beside a hundred others.
    """

    def __init__(self) -> None:
        self._spent, self._since = 0.0, time.perf_counter()
        self._running = True

    @property
    def elapsed(self) -> float:
        """Seconds charged so far."""
        running = time.perf_counter() - self._since if self._running else 0.0
        return self._spent + running

    def past(self, limit: float) -> bool:
        """Return whether `limit` seconds are charged."""
        return self.elapsed >= limit

    def pause(self) -> None:
        """Stop counting."""
        self._spent, self._running = self.elapsed, False

    def resume(self) -> None:
        """Count on."""
        self._since, self._running = time.perf_counter(), True

    def charge(self, seconds: float) -> None:
        """Add a share of work done elsewhere."""
        self._spent += seconds


@dataclass(frozen=True, eq=False)
class Problem:
    """What a solver is given besides its parameters.

    Parameters
    ----------
    y : (n,) or (n, k) float64
        Labels, as the parameters' ``target`` says; for methods with ``joint_classes`` perhaps k
        columns of them, one a class.
    n_kernels : int
        Number M of kernels in the bank that answers the requests.
    clock : Clock
        The solver's time, to be held against ``params.time_limit``.
    laplacian : (n, n) float64 array or sparse array, optional
        Graph Laplacian of the points, for semi-supervised methods.
    start : object, optional
        The :attr:`Solution.state` of the same method, kernels and labels at another value of the
        parameter that its :class:`Path` names.
    """

    y: Floats
    n_kernels: int
    clock: Clock = field(default_factory=Clock)
    laplacian: Any = None
    start: Any = None

    @property
    def n_points(self) -> int:
        """Number of training points n."""
        return len(self.y)


class StopReason(enum.StrEnum):
    """Why a solver returned."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STALLED = "stalled"


class SolverParams(BaseModel):
    """Parameters that every method has; a method adds its own by subclassing."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    effective_with: ClassVar[Effects] = {}
    """Parameters that matter only where another one has certain values: its name and these."""

    tol: float = Field(0.01, gt=0, description="relative duality gap at which to stop")
    max_iter: int = Field(500, ge=1, description="limit on outer iterations")
    time_limit: float = Field(math.inf, gt=0, description="limit on seconds of the solver's time")
    trace: bool = Field(False, description="record objective, bounds and weights per iteration")

    @property
    def target(self) -> Target:
        """What the labels may be; a method with several losses overrides it."""
        return Target.CLASSES

    def has_effect(self, name: str) -> bool:
        """Return whether a parameter matters, the others being what they are."""
        if name not in self.effective_with:
            return True
        other, values = self.effective_with[name]
        return getattr(self, other) in values


def reason_to_stop(
    problem: Problem, params: SolverParams, gap: float, *, stalled: bool = False
) -> StopReason | None:
    """Return why a solver ends after an iteration; None if it goes on while iterations last.

    Parameters
    ----------
    problem : Problem
        Whose clock counts.
    params : SolverParams
        Tolerance and limit of time.
    gap : float
        What is held against the tolerance.
    stalled : bool
        Whether further iterations would lead to nothing.
    """
    if gap <= params.tol:
        return StopReason.CONVERGED
    if problem.clock.past(params.time_limit):
        return StopReason.TIME_LIMIT
    return StopReason.STALLED if stalled else None


Params = TypeVar("Params", bound=SolverParams)


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver returns.

    The decision function is ``f(x) = sum_m kernel_weights[m] k_m(x, .)' coefficients + bias``,
    with ``kernel_coefficients`` in place of ``coefficients`` where every kernel has its own.

    Parameters
    ----------
    kernel_weights : (M,) float64
        Kernel weights d, non-negative.
    coefficients : (n,) or (n, k) float64
        Expansion coefficients; ``dual_variables * y`` for support vector machines.  A column a
        class where the labels had k columns.
    bias : float or (k,) float64
        Intercept b.
    dual_variables : (n,) or (n, k) float64
        Dual variables of the method's inner problem.
    objective, dual_objective : float
        Upper and lower bound of the method's optimum, as its docstring states it.
    stop_reason : StopReason
        Why the solver returned.
    counters : Counters
        Work done.
    trace : dict of str to array
        One entry per outer iteration, when asked for; else empty.
    extra : dict of str to float
        Further scalars that a method reports, by name.
    kernel_coefficients : (S, n) float64, optional
        Expansion coefficients of each kernel of non-zero weight, in order, where they differ.
    state : object, optional
        What the next solver of a path may start from, see :attr:`Problem.start`; never stored.
    """

    kernel_weights: Floats
    coefficients: Floats
    bias: float | Floats
    dual_variables: Floats
    objective: float
    dual_objective: float
    stop_reason: StopReason
    counters: Counters = field(default_factory=Counters)
    trace: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    extra: dict[str, float] = field(default_factory=dict)
    kernel_coefficients: Floats | None = None
    state: Any = None

    def __repr__(self) -> str:
        """Say what was reached in one line; arrays are for who asks for them."""
        n_active, n = np.count_nonzero(self.kernel_weights), len(self.kernel_weights)
        return (
            f"<Solution: {self.stop_reason} at {self.objective:.6g}, gap {self.gap:.2g}, "
            f"{n_active} of {n} kernels>"
        )

    @property
    def gap(self) -> float:
        """Relative duality gap ``|primal - dual| / max(|primal|, tiny)``."""
        return relative_gap(self.objective, self.dual_objective)

    @property
    def converged(self) -> bool:
        """Whether the solver reached its tolerance."""
        return self.stop_reason is StopReason.CONVERGED

    def active(self, threshold: float = 1e-3) -> npt.NDArray[np.intp]:
        """Return the indices of the kernels whose weight exceeds `threshold`."""
        return np.flatnonzero(self.kernel_weights > threshold)

    def decision_function(self, grams_test: npt.ArrayLike) -> Floats:
        """Evaluate f on test points.

        Parameters
        ----------
        grams_test : (M, n_test, n) array-like
            Kernel values between test and training points, normalised like the training bank.

        Returns
        -------
        (n_test,) or (n_test, k) float64

        Raises
        ------
        mkldist.errors.GramError
            For an array of another shape.
        """
        grams = np.asarray(grams_test)
        expected = (len(self.kernel_weights), len(self.coefficients))
        if grams.ndim != 3 or (grams.shape[0], grams.shape[2]) != expected:
            raise GramError(
                "grams_test",
                f"found shape {grams.shape}",
                f"(M, n_test, n) = ({expected[0]}, n_test, {expected[1]})",
            )
        decision = np.full((grams.shape[1], *np.shape(self.bias)), self.bias, dtype=np.float64)
        for s, m in enumerate(np.flatnonzero(self.kernel_weights)):
            own = self.kernel_coefficients
            coefficients = self.coefficients if own is None else own[s]
            decision += self.kernel_weights[m] * (grams[m] @ coefficients)
        return decision


@dataclass(frozen=True)
class Path:
    """The parameter along whose values a method starts each solver where the last one ended.

    Parameters
    ----------
    parameter : str
        Its name.
    rising : bool
        Whether larger values regularise less, so that a path takes the smallest first.
    """

    parameter: str
    rising: bool


def usual_passes(n_kernels: int) -> int:
    """Return the passes that a solver typically takes over a bank, whatever its size."""
    return USUAL_PASSES


@dataclass(frozen=True)
class Method:
    """A registry entry: the solver and what ``mkldist list methods`` says of it.

    ``typical_passes`` says how many passes a solver is expected to take over a bank of so many
    kernels; a plan foretells its work by it.
    """

    name: str
    solve: Callable[[Problem, Any], Steps]
    params: type[SolverParams]
    title: str
    problem: str
    loss: str
    regularizer: str
    reference: str
    hyperparameters: tuple[str, ...] = ("C",)
    needs_laplacian: bool = False
    path: Path | None = None
    joint_classes: bool = False
    typical_passes: Callable[[int], int] = usual_passes

    def along_path(self, points: Iterable[Params]) -> list[Params]:
        """Return settings in the order of decreasing regularisation, if the method has a path."""
        if self.path is None:
            return list(points)
        parameter, rising = self.path.parameter, self.path.rising
        return sorted(points, key=lambda p: float(getattr(p, parameter)), reverse=not rising)
