"""One method on Gram matrices or a bank of kernels: :func:`solve` and :func:`solve_path`."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats, Ints
from mkldist.core.memory import SHARE_OF_MEMORY, ProblemSize, groups_at_once, physical_memory
from mkldist.core.threads import threads_for
from mkldist.core.wording import pluralize
from mkldist.data.checks import common_rows, gram_indexes
from mkldist.errors import ConvergenceWarning, GramError, SpecError, nearest
from mkldist.fit.bank import KernelBank
from mkldist.fit.decision import bank_values
from mkldist.fit.engine import drive_chains, functions_of, problem_on, solve_job
from mkldist.fit.inputs import (
    check_method,
    checked_laplacian,
    gram_stack,
    group_array,
    label_array,
    real_array,
    weight_array,
)
from mkldist.methods.registry import METHODS
from mkldist.optim.accuracy import relative_gap
from mkldist.solvers.base import Method, Solution, most_points
from mkldist.solvers.lockstep import Job, JobTimes
from mkldist.solvers.progress import SAMPLED, Clock, StopReason
from mkldist.solvers.solver_params import SolverParams, check_effect, validate

SECONDS_BETWEEN = 1.0  # lines about iterations, unless every one is asked for


def verbosity(verbose: Any) -> int:
    """Return how much is to be printed: 0 nothing, 1 some iterations, 2 and more all of them."""
    if isinstance(verbose, bool | int | np.bool_ | np.integer) and verbose >= 0:
        return int(verbose)
    raise SpecError("verbose", f"{verbose!r:.60}", "False, True, or 2 for every iteration")


def say(name: str, words: str) -> None:
    """Print a line about something of a name, at once."""
    sys.stdout.write(f"[{name}] {words}\n")
    sys.stdout.flush()


class SolverLines:
    """Lines about one solver: its iterations, which its clock tells, and how it ended."""

    def __init__(
        self, method: str, verbose: int, clock: Clock, seconds_between: float = SECONDS_BETWEEN
    ) -> None:
        self._method, self._verbose, self._clock = method, verbose, clock
        self._between = seconds_between
        self._start = self._printed = time.perf_counter()
        self._iterations, self._lower = 0, -math.inf
        if verbose:
            clock.on_iteration = self._iteration

    def ended(self, solution: Solution) -> None:
        """Tell how the solver ended."""
        if self._verbose:
            words = repr(solution).removeprefix("<Solution: ").removesuffix(">")
            counters = solution.counters
            n = pluralize(counters.outer_iterations, "iteration")
            self._print(f"{words}; {n}", counters.passes)

    def _iteration(self, objective: float, dual_objective: float) -> None:
        """Tell of an iteration, unless one was told of just before."""
        self._iterations += 1
        if dual_objective < self._lower:  # as on longer factors of the kernels
            self._print("a further round, whose bounds start anew", self._clock.passes)
            self._printed = -math.inf
        self._lower = dual_objective
        if self._verbose == 1 and time.perf_counter() < self._printed + self._between:
            return
        gap = relative_gap(objective, dual_objective)
        self._print(
            f"iteration {self._iterations}: objective {objective:.6g}, lower bound "
            f"{dual_objective:.6g}, gap {gap:.2g}",
            self._clock.passes,
        )

    def _print(self, words: str, n_passes: int) -> None:
        self._printed = time.perf_counter()
        seconds, passes = self._printed - self._start, pluralize(n_passes, "pass", "passes")
        say(self._method, f"{words}; {passes}, {seconds:.1f} s")


def solve(
    method: str,
    grams: npt.ArrayLike | KernelBank,
    y: npt.ArrayLike,
    *,
    laplacian: Any = None,
    weights: npt.ArrayLike | None = None,
    groups: Sequence[object] | None = None,
    check: Literal["full", "none"] | None = None,
    verbose: bool | int = False,
    **params: Any,
) -> Solution:
    """Run one method, as a sweep does, on Gram matrices or a bank of kernels.

    Parameters
    ----------
    method : str
        Name of a method, see ``mkldist list methods``.
    grams : (M, n, n) array-like or KernelBank
        Symmetric positive semi-definite matrices, not normalised; or a bank, made for many calls.
    y : (n,) or (n, k) array-like
        Labels in {-1, +1}, or real values; 0 for points without a label.  One-class methods leave
        out points of -1, known outliers.  k columns, one a class, share kernel weights.
    laplacian : (n, n) array-like or sparse array, optional
        Graph Laplacian of the points, symmetric, for semi-supervised methods, such as
        ``graph_laplacian(X, graph_spec({"neighbours": 10}))`` of ``mkldist.kernels.graph``.
    weights : (n,) array-like, optional
        Positive weights of the points, by which C is multiplied; bounds are of that objective.
    groups : (M,) sequence, optional
        For ``group_mkl``, the group of each kernel by name or number, e.g. its view; None for a
        kernel of its own group.  By default kernels of a bank on the same features form a group,
        and each Gram matrix is one of its own.
    check : {"full", "none"}, optional
        Check of Gram matrices, see :meth:`mkldist.KernelBank.from_grams`; by default ``"full"``.
    verbose : bool or int
        True prints the bounds about once a second, and the outcome; 2 those of every iteration.
    **params
        The method's parameters, e.g. ``C``, ``tol``, ``max_iter``, ``time_limit``, ``trace``.

    Returns
    -------
    Solution
        Weights, bias, dual variables, and bounds that certify the objective.

    Raises
    ------
    mkldist.errors.SpecError
        For unknown methods, parameters and checks, and for what the method does not take.
    mkldist.errors.GramError
        For Gram matrices, labels, weights or a Laplacian that cannot be used.
    mkldist.errors.DataError
        For labels, weights or a Laplacian of pandas whose index names other points than that of the
        bank or the matrices, or the same in another order.  A plain range names none.

    Warns
    -----
    mkldist.errors.ConvergenceWarning
        If the solver stops before it reaches the tolerance.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> x = np.linspace(-2, 2, 20)
    >>> y, grams = np.sign(1.0 - np.abs(x)), np.array([np.outer(x, x), np.outer(x, x) ** 2])
    >>> bool(mkldist.solve("level", grams, y, C=10.0).gap <= 0.01)
    True
    """
    chosen = known_method(method)
    settings = validate(chosen.params, method, params)
    check_effect(method, params, [settings])
    given = grams, y, laplacian, weights, groups, check, verbosity(verbose)
    return _solver(chosen, settings, *given)(settings)


def solve_path(
    method: str,
    grams: npt.ArrayLike | KernelBank,
    y: npt.ArrayLike,
    *,
    laplacian: Any = None,
    weights: npt.ArrayLike | None = None,
    groups: Sequence[object] | None = None,
    check: Literal["full", "none"] | None = None,
    verbose: bool | int = False,
    **params: Any,
) -> list[Solution]:
    """Run one method at several strengths of regularisation, each from the last solution.

    The solvers run in the order of decreasing regularisation.  A solver hands on its kernel
    weights, its dual points, the kernels of its working set, and bounds for the others.  These
    save the next solver most of its passes.  Each solution still has bounds of its own.

    Parameters
    ----------
    method : str
        Name of a method with a path: level, silp, group_mkl, spicymkl, elastmkl, primalmkl.
    grams, y, laplacian, weights, groups, check, verbose
        As for :func:`mkldist.solve`.
    **params
        The method's parameters: ``C`` as a list, the others as for :func:`mkldist.solve`.

    Returns
    -------
    list of Solution
        In the order of the list given.

    Raises
    ------
    mkldist.errors.SpecError
        For a method without a path, and for a C that is not a list of numbers.
        Other errors and warnings are those of :func:`mkldist.solve`.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> x = np.linspace(-2, 2, 20)
    >>> grams = np.array([np.outer(x, x), np.outer(x, x) ** 2])
    >>> path = mkldist.solve_path("level", grams, np.sign(np.abs(x) - 1), C=[100.0, 1.0, 10.0])
    >>> path[1].objective < path[2].objective < path[0].objective
    True
    """
    chosen = known_method(method)
    values = _path_of(chosen, params)
    points = [validate(chosen.params, method, {**params, "C": float(C)}) for C in values]
    check_effect(method, {**params, "C": values}, points)
    given = grams, y, laplacian, weights, groups, check, verbosity(verbose)
    solve_from = _solver(chosen, points[0], *given)
    solutions: dict[float, Solution] = {}
    state = None
    for settings in chosen.along_path(points):
        solution = solve_from(settings, state)
        state = solution.state
        solutions[settings.C] = replace(solution, state=None)  # type: ignore[attr-defined]
    return [solutions[float(value)] for value in values]


def held_out_values(
    method: Method,
    bank: KernelBank,
    problems: Sequence[Floats],
    folds: Sequence[tuple[Ints, Ints]],
    points: Sequence[SolverParams],
    weights: Sequence[Floats | None],
) -> list[list[Floats]]:
    """Return the values of decision functions at rows that they were not trained on.

    Each problem, labels (n,) or (n, k) of all rows, is solved on the training rows of each fold, on
    which kernels are normalised.  Its settings `points`, which differ in one parameter, follow each
    other along the method's path, and solvers of all folds share passes.  `folds` are pairs of
    training and held-out rows, `weights` those of the training rows of each, None for ones.  Values
    (h, k) are returned by setting and by fold.
    """
    views = bank.views([train for train, _ in folds])
    order = [points.index(one) for one in method.along_path(points)]
    chains = [
        [(place, fold, number) for place in order]
        for fold in range(len(folds))
        for number in range(len(problems))
    ]
    found: dict[tuple[int, int, int], Floats] = {}

    def begin(link: tuple[int, int, int], state: Any) -> Job:
        place, fold, number = link
        view, (train, held_out) = views[fold], folds[fold]
        problem = problem_on(
            view,
            method,
            problems[number][train],
            weights=weights[fold],
            groups=bank.groups,
            start=state if method.has_path else None,
        )

        def after(solution: Solution) -> Generator[Request, Any, None]:
            values = yield from bank_values(view, functions_of(view, solution))
            found[link] = values[:, held_out].T

        return Job(str(link), view, problem, method.solve(problem, points[place]), after)

    def end(_: tuple[int, int, int], outcome: Solution | Exception, times: JobTimes) -> None:
        if isinstance(outcome, Exception):
            raise outcome

    size = ProblemSize(bank.n_points, len(bank), bank.n_points)
    each = max(method.memory(size, one).within(None) for one in points)
    with threads_for(bank.n_points):
        for group in groups_at_once([each] * len(chains), None):
            drive_chains(views[0].bank, chains[group], begin, end)
    numbers = range(len(problems))
    return [
        [np.concatenate([found[c, f, k] for k in numbers], axis=1) for f in range(len(folds))]
        for c in range(len(points))
    ]


def known_method(name: str) -> Method:
    """Return a method of the registry."""
    if not isinstance(name, str) or name not in METHODS:
        known = ", ".join(METHODS)
        raise SpecError("method", f"{name!r:.60}", f"one of {known}", nearest(str(name), METHODS))
    return METHODS[name]


def _path_of(method: Method, params: Mapping[str, Any]) -> Floats:
    """Return the values of C along a path."""
    if not method.has_path:
        able = ", ".join(name for name, other in METHODS.items() if other.has_path)
        hint = "Or call mkldist.solve for each value"
        raise SpecError("method", method.name, f"a method with a path: {able}", hint)
    where, expected = f"{method.name}.C", "a list of numbers, one for each solution"
    values = real_array(params.get("C", ()), where, expected)
    if values.ndim != 1 or not len(values):
        found = f"{params['C']!r:.60}" if "C" in params else "none"
        raise SpecError(where, found, expected)
    return values


def _solver(
    method: Method,
    settings: SolverParams,
    grams: Any,
    y: Any,
    laplacian: Any,
    weights: Any,
    groups: Any,
    check: Literal["full", "none"] | None,
    verbose: int,
) -> Callable[..., Solution]:
    """Convert and check what a user gives, and return what runs the method on it."""
    bank = grams if isinstance(grams, KernelBank) else None
    indexes = gram_indexes("grams", grams) if bank is None else {"X": bank.rows}
    common_rows("", {**indexes, "y": y, "weights": weights, "laplacian": laplacian})
    if bank is None:
        grams = gram_stack(grams)
    elif check is not None:
        found = f"{check!r} for a bank, which was checked when it was made"
        raise SpecError("check", found, "no check")
    n_points = grams.shape[1] if bank is None else bank.n_points
    labels = label_array(y, (n_points,))
    most, rounded = None, False
    if bank is not None and bank.factored is not None:
        rounded = bank.factored.factors.kept_type == np.float32
        memory = int(SHARE_OF_MEMORY * physical_memory())
        most = most_points(method, settings, len(bank), memory)
    check_method(
        method,
        settings.target,
        labels,
        has_laplacian=laplacian is not None,
        weighted=weights is not None,
        folds=settings.chosen_folds,
        grouped=groups is not None,
        in_memory=most,
        rounded=rounded,
    )
    if len(labels) != n_points:
        found = f"{pluralize(len(labels), 'label')} for {pluralize(n_points, 'point')}"
        raise GramError("y", found, "one label a point")
    laplacian = checked_laplacian(laplacian, n_points)
    weights = weight_array(weights, n_points)
    if bank is None:
        backend = "recompute" if method.one_sum else "auto"  # one sum takes no copy of them
        bank = KernelBank.from_grams(grams, check=check or "full", backend=backend)
    groups = bank.groups if groups is None else group_array(groups, len(bank))
    view, made = bank.view, bank

    def solve_from(settings: SolverParams, start: Any = None) -> Solution:
        problem = problem_on(
            view,
            method,
            labels,
            laplacian=laplacian,
            weights=weights,
            groups=groups,
            start=start,
            shared=made.graph_arrays if method.needs_laplacian else None,
        )
        lines = SolverLines(method.name, verbose, problem.clock)
        with threads_for(view.n_points):
            job = Job(method.name, view, problem, method.solve(problem, settings))
            found = solve_job(job, method, settings, made.factored)
        solution = found.solution
        lines.ended(solution)
        if found.limit:
            _warn_of_exact_gap(method.name, solution, settings, found.limit)
        else:
            _warn_if_early(method.name, solution, settings)
        return solution

    return solve_from


def _warn_of_exact_gap(method: str, solution: Solution, settings: SolverParams, limit: str) -> None:
    """Warn that factors could not grow until the solution held for the kernels."""
    rank, sampled = int(solution.extra["largest_rank"]), SAMPLED in solution.extra
    bounds = "" if sampled else "; objective and exact_dual_objective still bound the optimum"
    reason, advice = {
        "rank": (f"all that it needs have the {pluralize(rank, 'column')} of rank", "Raise rank"),
        "memory": ("half of this machine's memory holds no longer ones", "Use fewer kernels"),
        "time_limit": ("the time limit is past", "Raise time_limit"),
        "rounding": ("rounding allows no longer ones", "Scale the kernels"),
    }[limit]
    warnings.warn(
        f"{method} on factors: relative exact gap {solution.exact_gap:.2g}"
        f"{' by a sample' * sampled}, tol {settings.tol:g}, and the factors cannot grow: {reason}. "
        f"{advice}, or raise tol{bounds}",
        ConvergenceWarning,
        stacklevel=4,
    )


def _warn_if_early(method: str, solution: Solution, settings: SolverParams) -> None:
    """Warn of a tolerance that was not reached, unless the user asked for an early stop."""
    if solution.converged or solution.extra.get("early_stopped"):
        return
    advice = {
        StopReason.MAX_ITER: "Raise max_iter or tol",
        StopReason.TIME_LIMIT: "Raise time_limit or tol",
        StopReason.STALLED: settings.after_a_stall,
    }[solution.stop_reason]
    relative = "relative " if math.isnan(solution.stationarity) else ""
    warnings.warn(
        f"{method} stopped before its tolerance ({solution.stop_reason}) after "
        f"{solution.counters.outer_iterations} iterations: {relative}{solution.proximity}, "
        f"tol {settings.tol:g}. {advice}; objective and dual_objective still bound the optimum",
        ConvergenceWarning,
        stacklevel=4,
    )
