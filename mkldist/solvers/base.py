"""The contract between a solver and the rest of mkldist.

A solver is a generator function ``solve(problem, params)``.  It *yields* the requests of
:mod:`mkldist.bank.requests`, receives their answers as the value of the ``yield`` expression, and
*returns* a :class:`Solution`::

    def solve(problem: Problem, params: LevelParams) -> Steps:
        ...
        K = yield Combine(d)            # (n, n)
        ...
        q = yield Quadratic(alpha * y)  # (M,)
        ...
        return Solution(...)

A solver never sees where the bank lives.  The driver suspends it at every ``yield``, collects
the requests of other solvers, and answers them all by one pass.  A solver promises:

* it minimises the objective that its docstring states, and returns a primal value (upper bound)
  and a dual value (lower bound) of that objective, both in float64 and both valid for the point
  returned;
* for admissible input it returns after at most ``params.max_iter`` outer iterations or
  ``params.time_limit`` seconds of its own time, with a :class:`StopReason`, and neither returns
  NaN nor raises;
* it keeps no state outside the generator.

A method with ``joint_classes`` also takes labels of k classes at once, one column a class, and
finds kernel weights that the classes share: it minimises the sum of the classes' objectives, and
counts terms that depend on the weights alone once.

A :class:`Method` describes a solver to the rest of mkldist, and says by :meth:`Method.refuses`
which problems it cannot solve.  An entry in :mod:`mkldist.methods.registry` registers it.
"""

from __future__ import annotations

import enum
import math
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from operator import attrgetter
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin, runtime_checkable

import numpy as np
import numpy.typing as npt

from mkldist.bank.requests import Request
from mkldist.core.arrays import LABELS, LEARNT, Floats, Ints, Target
from mkldist.core.memory import ProblemSize, SolverMemory
from mkldist.core.wording import html_of
from mkldist.errors import GramError
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.progress import (
    SAMPLED,
    STATIONARITY,
    Bounds,
    Clock,
    DualBound,
    Own,
    Point,
    StopReason,
    Trace,
    is_active,
)
from mkldist.solvers.solver_params import SolverParams


@dataclass
class Counters:
    """Counts of a solver's work.

    The solver counts its iterations and machines.  The driver counts passes and combined matrices,
    by the solver's requests alone, so that they mean the same for every method and do not depend on
    what the bank keeps or on the runs beside.
    """

    outer_iterations: int = 0
    """Rounds of the method, each of which ends with objective and bound: a row of the trace."""
    svm_solves: int = 0
    """Machines trained, each on one combined kernel: support vector machines, or what the method
    has in their place.  0 for methods that never hold the weights fixed."""
    svm_iterations: int = 0
    """Pair updates, and line searches of machines in the primal."""
    newton_steps: int = 0
    """Linear systems of Newton steps, in machines and in dual problems."""
    cg_steps: int = 0
    """Steps of conjugate gradients, within a truncated Newton step or in its place."""
    passes: int = 0
    """How often the requests read the whole bank.  A pass ends once every kernel has been read
    since the last one ended: by a request for all kernels, by a combined matrix without zero
    weights, or by several requests for some kernels each."""
    combines: int = 0
    """Combined Gram matrices that were requested, those of single kernels included."""

    def count_svm(self, iterations: int, newton_steps: int) -> None:
        """Count one solve of the inner support vector machine."""
        self.svm_solves += 1
        self.svm_iterations += iterations
        self.newton_steps += newton_steps

    def count_work(self, other: Counters) -> None:
        """Add the machines of another count, and the steps within them."""
        self.svm_solves += other.svm_solves
        self.svm_iterations += other.svm_iterations
        self.newton_steps += other.newton_steps
        self.cg_steps += other.cg_steps

    def __add__(self, other: Counters) -> Counters:
        """Return the sums of two counts."""
        own, others = self.as_dict(), other.as_dict()
        return Counters(**{name: count + others[name] for name, count in own.items()})

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name."""
        return asdict(self)


class ArrayCache:
    """Arrays that several solvers need and one makes, those used last; at most `limit` bytes.

    An array larger than that is made each time, and displaces no other.  Two threads that need an
    array at the same time may both make it.  `kernels_id` names the kernels of the solver that has
    the cache, for keys of what depends on them; it is empty where they have no name.
    """

    def __init__(self, limit: int) -> None:
        self.kernels_id = ""
        self._limit = limit
        self._kept: OrderedDict[Hashable, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[ArrayCache], tuple[int]]:
        """Pickle the limit: another process makes its own arrays."""
        return ArrayCache, (self._limit,)

    def on(self, kernels_id: str) -> ArrayCache:
        """Return these same arrays for a solver on the kernels of a name."""
        same = object.__new__(type(self))
        vars(same).update(vars(self))
        same.kernels_id = kernels_id
        return same

    def get(self, key: Hashable, make: Callable[[], Floats]) -> Floats:
        """Return the array of a key, which nobody may change, or else make and keep it."""
        known = self.known(key)
        return self.keep(key, make()) if known is None else known

    def known(self, key: Hashable) -> Floats | None:
        """Return the array of a key, which nobody may change, or None if none is kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def keep(self, key: Hashable, made: Floats) -> Floats:
        """Keep an array, which nobody may change from now on, and return it."""
        made.flags.writeable = False
        if made.nbytes > self._limit:
            return made
        with self._lock:
            self._kept.setdefault(key, made)
            held = sum(array.nbytes for array in self._kept.values())
            while held > self._limit:
                held -= self._kept.popitem(last=False)[1].nbytes
        return made


PATH_OF_C = (0.3, 1.0, 3.0)
"""Values of C that suit kernels of variance 1, on any number of points."""


Result = TypeVar("Result")
Requesting = Generator[Request, Any, Result]
"""What yields requests, receives their answers, and returns a result."""
Steps = Requesting["Solution"]
ExactBound = Callable[["Problem", Any, "Solution"], Generator[Request, Any, DualBound]]
ExactObjective = Callable[["Problem", Any, "Solution"], Generator[Request, Any, float]]


def _unchanged(problem: Problem, state: Any) -> Requesting[Any]:
    """Return a state as it is, for it holds nothing of the kernels."""
    yield from ()
    return state


@dataclass(frozen=True)
class Renewal:
    """How a method starts from a solution on kernels that have changed since."""

    # Takes a problem and a state, asks the kernels for what the state holds of them, and returns
    # the state that has this
    renewed: Callable[[Any, Any], Requesting[Any]] = _unchanged
    # True if few dual variables change then, so that a solver may go on with kernels themselves
    by_points: bool = False


@dataclass(frozen=True, eq=False)
class Problem:
    """Problem of one solver: everything that it is given besides its parameters."""

    y: Floats
    """Labels (n,) of the kind that the parameters' ``target`` names; (n, k), a column a class, only
    for methods with ``joint_classes``."""
    n_kernels: int  # M, in the bank that answers the requests
    clock: Clock = field(default_factory=Clock)  # which ``params.time_limit`` limits
    laplacian: Any = None  # (n, n), dense or sparse, of a graph of the points
    start: Any = None
    """:attr:`Solution.state` of the same method and labels: at another value of the parameter that
    its :class:`Path` names, or renewed for other kernels."""
    weights: Floats | None = None  # (n,), positive, of losses, for methods with ``weighs_points``
    spare_bytes: int | None = None
    """Bytes that the solver may take beyond those that it needs, see :attr:`Method.memory`; by
    default as many as its parameters say."""
    groups: Ints | None = None  # (M,) of the kernels, only for methods with ``takes_groups``
    row_groups: Ints | None = None  # (n,) of the points, which folds of a method keep together
    kept: ArrayCache | None = None  # arrays that solvers of a batch share; by default its own
    spread: Callable[[Floats], Floats] | None = None
    """Turns weights of the solver's kernels into those of the bank's, which a trace records; by
    default they are the same."""

    @property
    def n_points(self) -> int:
        """Number of training points n."""
        return len(self.y)

    def bound(self, C: float) -> float | Floats:
        """Return the bound of dual variables: C, or (n,) C times the weights of the points."""
        return C if self.weights is None else C * self.weights


def reason_to_stop(
    problem: Problem, params: SolverParams, gap: float, *, stalled: bool = False
) -> StopReason | None:
    """Return the reason to stop after an iteration; None if the solver is to continue.

    `gap` is the relative gap to compare with the tolerance; the solver has `stalled` if further
    iterations cannot improve the solution.
    """
    if gap <= params.tol:
        return StopReason.CONVERGED
    if problem.clock.past(params.time_limit):
        return StopReason.TIME_LIMIT
    return StopReason.STALLED if stalled else None


def reason_at_end(params: SolverParams, gap: float, stop: StopReason | None) -> StopReason:
    """Return why a run ended, for a method whose rule may ask for more than a gap within `tol`.

    `stop` is the reason of :func:`reason_to_stop`; None after the last iteration that is allowed.
    """
    return StopReason.CONVERGED if gap <= params.tol else stop or StopReason.MAX_ITER


class Search(Bounds[Point]):
    """The course of a method that iterates: its best bounds, its counts and its trace."""

    def __init__(
        self,
        problem: Problem,
        params: SolverParams,
        best: Point,
        lower: float = -math.inf,
        *,
        upper: float = math.inf,
        progress: float = 0.0,
        dual_point: Floats | None = None,
        counters: Counters | None = None,
    ) -> None:
        dual_point = np.empty(0) if dual_point is None else dual_point
        super().__init__(best, lower, upper, progress, dual_point=dual_point)
        self.counters = Counters() if counters is None else counters
        self._problem, self._params = problem, params
        self._trace = Trace(params.trace, problem.clock, problem.spread)

    def record(self, weights: Floats, *, lower: float | None = None) -> None:
        """Count an outer iteration at weights (M,), and add it to the trace with the bounds.

        `lower` stands for a lower bound that is not of the problem at hand.
        """
        self.counters.outer_iterations += 1
        self._trace.record(self.upper, self.lower if lower is None else lower, weights, self.own)

    def reason_to_stop(self, *, stalled: bool = False) -> StopReason | None:
        """Return the reason to stop by the gap of the bounds, see :func:`reason_to_stop`."""
        return reason_to_stop(self._problem, self._params, self.gap, stalled=stalled)

    def finish(self, stop: StopReason | None, *, certified: bool = True, **fields: Any) -> Solution:
        """Return the solution of these fields, by default certified by the bounds.

        `stop` is None after the last iteration that is allowed; where the solution is not
        `certified`, bounds need not meet.
        """
        ends = {
            "dual_variables": self.dual_point,
            "objective": self.upper,
            "dual_objective": self.lower,
            "stop_reason": stop or StopReason.MAX_ITER,
            "counters": self.counters,
            "trace": self._trace.arrays(certified=certified),
        }
        return Solution(**{**ends, **fields})


def direct_solution(
    problem: Problem, params: SolverParams, upper: float, lower: float, **fields: Any
) -> Solution:
    """Return the solution of a method that ends in one step, whose trace has one row."""
    search = Search(
        problem, params, None, lower, upper=upper, counters=fields.pop("counters", None)
    )
    search.own = Own(upper, lower)
    search.record(fields["kernel_weights"])
    stop = StopReason.CONVERGED if search.gap <= params.tol else StopReason.STALLED
    return search.finish(stop, **fields)


Params = TypeVar("Params", bound=SolverParams)


@runtime_checkable
class NewPoints(Protocol):
    """New points for decision functions on a bank, as :meth:`mkldist.KernelBank.on` makes them."""

    def decision_values(
        self, kernel_weights: Floats, coefficients: Floats, bias: float | Floats
    ) -> Floats:
        """Evaluate a decision function of a solution on the bank, (n_test,) or (n_test, k).

        `coefficients` are (n,) or (S, n), or (n, k) or (S, n, k) where `bias` is an array: shared
        by all kernels, or of each kernel of non-zero weight.
        """


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of a solver, with bounds that certify it.

    The decision function is ``f(x) = sum_m kernel_weights[m] k_m(x, .)' coefficients + bias``.
    Where every kernel has coefficients of its own, ``kernel_coefficients`` replace
    ``coefficients``.

    Both bounds can be checked from the solution, the labels and the Gram matrices.  The docstring
    of the method's module states its objective and its dual value.  The objective at the decision
    function is `objective`.  The dual value at `dual_variables` is `dual_objective`; where a method
    bounds the optimum by several dual points, these are mixed, and the dual value of their mixture,
    for it is concave, is `dual_objective` or more.  Of a solution on factors of kernels,
    `exact_dual_objective` takes its place.  Both bounds make up for the rounding errors of float64.
    They differ by these from what is recomputed, visibly where the scales of kernels differ by many
    powers of ten or C is as large.

    Parameters
    ----------
    kernel_weights : (M,) float64
        Kernel weights d, non-negative.
    coefficients : (n,) or (n, k) float64
        Expansion coefficients.  One column a class where the labels had k columns.
    bias : float or (k,) float64
        Intercept b.
    dual_variables : (n,) or (n, k) float64
        Feasible dual point of the lower bound.  The `coefficients` belong to the upper bound, and
        may be of another iteration.
    objective, dual_objective : float
        Upper and lower bound of the optimum of the objective in the method's docstring.
    stop_reason : StopReason
        Reason for which the solver returned.
    counters : Counters
        Counts of the work done; the driver counts passes and combined matrices.
    trace : dict of str to array
        With ``trace=True`` the objective, bounds and weights, one row an outer iteration, as the
        traces of results have them; else empty.
    extra : dict of str to float
        Further scalars that a method reports, by name.  With ``stationarity`` among them, the
        problem is not convex: tol limits this number, and the gap is NaN.
    kernel_coefficients : (S, n) float64, optional
        Expansion coefficients of each kernel of non-zero weight, in order, where they differ.
    state : object, optional
        Starting point for the next solver of a path, see ``Problem.start``; never stored.
    training_values : (n,) or (n, k) float64, optional
        Decision function at the training points, from solvers that have it at their end.
    exact_dual_objective : float, optional
        Lower bound of the optimum with the kernels themselves, of a solution on factors of them;
        `objective` is an upper bound of it too.

    Examples
    --------
    Check a solution of ``level`` by hand:

    >>> import numpy as np, mkldist
    >>> x, C = np.linspace(-2, 2, 20), 10.0
    >>> y, grams = np.sign(1.0 - np.abs(x)), np.array([np.outer(x, x), np.outer(x, x) ** 2])
    >>> solution = mkldist.solve("level", grams, y, C=C)
    >>> v = solution.coefficients
    >>> f = np.tensordot(solution.kernel_weights, grams, axes=1) @ v
    >>> losses = np.maximum(0.0, 1.0 - y * (f + solution.bias))
    >>> objective = 0.5 * v @ f + C * losses.sum()
    >>> alpha = solution.dual_variables
    >>> feasible = alpha.min() >= 0.0, alpha.max() <= C * (1 + 1e-12), abs(alpha @ y) <= 1e-9
    >>> q = np.einsum("i,mij,j->m", alpha * y, grams, alpha * y)
    >>> dual = alpha.sum() - 0.5 * q.max()
    >>> all(feasible), np.isclose(objective, solution.objective, rtol=1e-9).item()
    (True, True)
    >>> bool(solution.dual_objective <= dual + 1e-9 * objective and dual <= objective)
    True
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
    training_values: Floats | None = None
    exact_dual_objective: float | None = None

    def __repr__(self) -> str:
        """Return stop reason, objective, gap and active kernels in one line, without arrays."""
        kernels = f"{len(self.active())} of {len(self.kernel_weights)} kernels active"
        found = f"{self.stop_reason} at {self.objective:.6g}, {self.proximity}"
        return f"<Solution: {found}, {kernels}>"

    def _repr_html_(self) -> str:
        """Return the same, with the largest kernel weights, for a notebook."""
        import pandas as pd

        largest = self.active()[np.argsort(-self.kernel_weights[self.active()], kind="stable")]
        weights = {"kernel": largest[:10], "weight": self.kernel_weights[largest[:10]]}
        facts = {
            "stop reason": self.stop_reason,
            "objective": f"{self.objective:.6g}",
            "lower bound": f"{self.dual_objective:.6g}",
            "certificate": self.proximity,
            "active kernels": f"{len(largest)} of {len(self.kernel_weights)}",
            "passes": self.counters.passes,
        }
        return html_of("Solution", facts, pd.DataFrame(weights))

    @property
    def proximity(self) -> str:
        """The gap, or else the stationarity, in words."""
        if STATIONARITY in self.extra:
            return f"stationarity {self.stationarity:.2g}"
        of_kernels = "" if self.exact_dual_objective is None else f", exact {self.exact_gap:.2g}"
        return f"gap {self.gap:.2g}{of_kernels}{' by a sample' * (SAMPLED in self.extra)}"

    @property
    def gap(self) -> float:
        """Relative duality gap ``|primal - dual| / max(|primal|, tiny)``.

        It is NaN where the method reports a stationarity in its place.
        """
        if STATIONARITY in self.extra:
            return math.nan
        return relative_gap(self.objective, self.dual_objective)

    @property
    def exact_gap(self) -> float:
        """Relative gap to the optimum with the kernels themselves.

        It differs from :attr:`gap` where the solution was found on factors of the kernels.
        """
        if self.exact_dual_objective is None:
            return self.gap
        return relative_gap(self.objective, self.exact_dual_objective)

    @property
    def stationarity(self) -> float:
        """Relative gain that the method's steps may still bring; NaN for convex problems."""
        return self.extra.get(STATIONARITY, math.nan)

    @property
    def converged(self) -> bool:
        """True if the solver reached its tolerance."""
        return self.stop_reason is StopReason.CONVERGED

    def active(self) -> npt.NDArray[np.intp]:
        """Return the indices of the kernels of more than 0.001 of the largest weight."""
        return np.flatnonzero(is_active(self.kernel_weights))

    def decision_function(self, grams_test: npt.ArrayLike | NewPoints) -> Floats:
        """Evaluate f on test points.

        Parameters
        ----------
        grams_test : NewPoints or (M, n_test, n) array-like
            Test points, ``bank.on(X_test)`` of the :class:`mkldist.KernelBank` that was solved; or
            kernel values between test and training points, normalised like the training bank.

        Returns
        -------
        (n_test,) or (n_test, k) float64

        Raises
        ------
        mkldist.errors.GramError
            For an array of another shape, and for points of another bank.
        """
        own = self.kernel_coefficients
        if isinstance(grams_test, NewPoints):
            coefficients = self.coefficients if own is None else own
            return grams_test.decision_values(self.kernel_weights, coefficients, self.bias)
        grams, d = np.asarray(grams_test), self.kernel_weights
        expected = (len(d), len(self.coefficients))
        if grams.ndim != 3 or (grams.shape[0], grams.shape[2]) != expected:
            raise GramError(
                "grams_test",
                f"shape {grams.shape}",
                f"(M, n_test, n) = ({expected[0]}, n_test, {expected[1]})",
                "Give the points bank.on(X) of a bank that was solved",
            )
        decision = np.full((grams.shape[1], *np.shape(self.bias)), self.bias, dtype=np.float64)
        for s, m in enumerate(np.flatnonzero(d)):
            decision += d[m] * (grams[m] @ (self.coefficients if own is None else own[s]))
        return decision


@dataclass(frozen=True)
class Method:
    """Method of the registry: its solver, its abilities, and its words for ``mkldist show``."""

    name: str  # in the registry and in sweep files
    solve: Callable[[Problem, Any], Steps]  # the solver, see :mod:`mkldist.solvers.base`
    params: type[SolverParams]
    title: str
    problem: str
    loss: str
    regularizer: str
    reference: str  # the paper and its equations
    hyperparameters: tuple[str, ...] = ("C",)  # dimensions of the results, also of one value
    needs_laplacian: bool = False  # True if the solver takes ``Problem.laplacian``
    has_path: bool = False  # True if it can start from the solution at a smaller C
    joint_classes: bool = False  # True if it takes k columns of labels, which share kernel weights
    weighs_points: bool = False  # True if it takes ``Problem.weights``
    takes_groups: bool = False  # True if it takes ``Problem.groups``
    typical_passes: Callable[[int], int] = lambda n_kernels: 40  # that a plan expects
    memory: Callable[[ProblemSize, Any], SolverMemory] = lambda size, params: size.memory()
    """Memory of a solver, by its problem and parameters.  A batch has no more solvers than fit."""
    exact_bound: ExactBound | None = None
    exact_objective: ExactObjective | None = None
    """Ask the kernels for a lower and an upper bound of their optimum, for a solution on factors.
    A method without the first takes no factors; without the second its objective is one."""
    hinge_machines: bool = False
    """True if the objective is that of hinge-loss machines at kernel weights in the simplex."""
    one_sum: bool = False  # True if all that the solver asks for is one sum of all kernels
    renewal: Renewal | None = None  # how it starts on factors that have become longer

    def refuses(
        self, problem: ProblemFacts, target: Target | None = None, folds: int = 0
    ) -> Refusal | None:
        """Return the reason why this method cannot solve a problem; None if it can.

        `target` are the labels that it learns with its settings, ``params.target``, and `folds`
        those that they choose, ``params.chosen_folds``.
        """
        targets, smallest = problem.targets, problem.smallest_class
        if problem.laplacian is False and self.needs_laplacian:
            return Refusal(Part.LAPLACIAN, "needs a graph", "a graph Laplacian of the points")
        if problem.laplacian and not self.needs_laplacian:
            return Refusal(Part.LAPLACIAN, "uses no graph", "none", "a method on graphs")
        if problem.shared_weights and not self.joint_classes:
            return LEARNS_CLASSES_APART
        if problem.weighted and not self.weighs_points:
            reason, others = "gives every point the same weight", "a method that weighs losses"
            return Refusal(Part.WEIGHTS, reason, "no weights of points", others)
        if problem.grouped and not self.takes_groups:
            reason, others = "takes each kernel by itself", "a method over groups of kernels"
            return Refusal(Part.GROUPS, reason, "none", others)
        if problem.factors and self.exact_bound is None:
            reason, others = "needs whole Gram matrices", "a method on factors"
            return Refusal(Part.FACTORS, reason, "another backend", others)
        if problem.rounded and not self.hinge_machines:
            reason = "takes its bounds from factors below their kernels, as rounded ones may not be"
            return Refusal(Part.ROUNDED, reason, 'dtype = "float64"', "a method on rounded factors")
        if not (target is None or targets is None or target in targets):
            others = f"a method that learns {one_of([LEARNT[t] for t in Target if t in targets])}"
            return Refusal(Part.LABELS, f"learns {LEARNT[target]}", LABELS[target], others)
        if smallest is not None and folds > smallest:
            expected = f"at most {smallest}, the points of a class"
            return Refusal(Part.FOLDS, f"is to make {folds} folds", expected)
        return None

    def along_path(self, points: Iterable[Params]) -> list[Params]:
        """Return settings by rising C, from strong to weak regularisation, if there is a path."""
        return sorted(points, key=attrgetter("C")) if self.has_path else list(points)


def exact_proximity_of(solutions: Sequence[Solution]) -> dict[str, float]:
    """Return bound and gap of one or several solutions for the kernels that factors stand for.

    They are ``exact_dual_objective`` and ``exact_gap`` of the sums; nothing where a solution has no
    such bound.
    """
    bounds = [solution.exact_dual_objective for solution in solutions]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return {}
    objective, bound = float(sum(solution.objective for solution in solutions)), float(sum(known))
    return {"exact_gap": relative_gap(objective, bound), "exact_dual_objective": bound}


def proximity_of(solutions: Sequence[Solution]) -> dict[str, float]:
    """Return what is left to gain in one or several solutions, by its name.

    It is the ``gap`` of the sums of objectives and of bounds; where no gap is known, the largest
    ``stationarity``.
    """
    found = [solution.stationarity for solution in solutions if STATIONARITY in solution.extra]
    if found:
        return {STATIONARITY: max(found)}
    objective = float(sum(solution.objective for solution in solutions))
    bound = float(sum(solution.dual_objective for solution in solutions))
    return {"gap": relative_gap(objective, bound)}


MOST_POINTS = 10**8


def most_points(method: Method, params: SolverParams, n_kernels: int, n_bytes: int) -> int:
    """Return the most points on which memory holds what a solver of a method needs."""
    return bisect_right(
        range(1, MOST_POINTS),
        n_bytes,
        key=lambda n: method.memory(ProblemSize(n, n_kernels, n), params).needed,
    )


def losses_by_target(params: type[SolverParams]) -> dict[Target, list[str]]:
    """Return the kinds of labels that a method learns, each with the values of ``loss`` for it.

    The values are an empty list where there is nothing to choose.
    """
    default = params.model_construct()
    if "loss" not in params.model_fields:
        return {default.target: []}
    found: dict[Target, list[str]] = {}
    for loss in choices(params.model_fields["loss"].annotation):
        found.setdefault(default.model_copy(update={"loss": loss}).target, []).append(loss)
    return found


def learns_unlabelled(method: Method) -> bool:
    """Return True if a method also learns from points without a label."""
    return Target.PARTIAL in losses_by_target(method.params)


def choices(annotation: Any) -> list[str]:
    """Return the texts in the ``Literal`` of a parameter's annotation; none if it has none."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if isinstance(word, str)]
    return [word for part in get_args(annotation) for word in choices(part)]


class Part(enum.StrEnum):
    """Part of a problem that a method refuses."""

    LAPLACIAN = "laplacian"
    CLASSES = "classes"
    LABELS = "labels"
    WEIGHTS = "weights"
    FOLDS = "folds"
    GROUPS = "groups"
    FACTORS = "factors"
    ROUNDED = "rounded"


@dataclass(frozen=True)
class ProblemFacts:
    """Facts by which a method accepts or refuses a problem; a fact left out refuses nothing."""

    # True if the method is given a graph Laplacian, False if there is none
    laplacian: bool | None = None
    # True if several classes, one column of labels each, are to share kernel weights
    shared_weights: bool = False
    weighted: bool = False  # True if points have weights, which multiply their losses
    grouped: bool = False  # True if a user says which kernels form a group
    factors: bool = False  # True if the bank holds thin factors of the kernels
    rounded: bool = False  # True if these factors are rounded to float32
    targets: Collection[Target] | None = None  # all targets that the labels fit
    smallest_class: int | None = None  # number of points of the smallest class


@dataclass(frozen=True)
class Refusal:
    """Reason why a method cannot solve a problem, found before anything is solved."""

    part: Part  # part of the problem that does not fit
    reason: str  # clause whose subject is the method, e.g. "needs a graph"
    expected: str  # what the method takes, e.g. "a graph Laplacian of the points"
    others: str = ""  # the methods that take the problem; empty where no list of them would help


LEARNS_CLASSES_APART = Refusal(
    Part.CLASSES,
    "finds kernel weights for one class at a time",
    "one column of labels",
    "a method whose classes can share kernel weights",
)


def one_of(words: Sequence[str]) -> str:
    """Return words as a choice: level, silp or uniform."""
    *first, last = words or ["none is registered"]
    return f"{', '.join(first)} or {last}" if first else last
