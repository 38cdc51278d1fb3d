"""One method on Gram matrices in memory: :func:`solve` and :func:`solve_path`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.blas_threads import single_threaded
from mkldist.data.gram_checks import check_grams, semidefinite
from mkldist.errors import ConvergenceWarning, SpecError, nearest
from mkldist.gram.bank import MemoryBank
from mkldist.gram.view import make_views
from mkldist.in_memory.given_arrays import check_labels, checked_laplacian, label_array, real_array
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Method, Problem, Solution, SolverParams, StopReason
from mkldist.solvers.lockstep import Job, solve_alone
from mkldist.solvers.parameters import check_effect, validate

MANY_POINTS = 2000  # from which on linear algebra gains by more than one thread


def solve(
    method: str,
    grams: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    laplacian: Any = None,
    **params: Any,
) -> Solution:
    """Run one method, as a sweep does, on a stack of Gram matrices in memory.

    Parameters
    ----------
    method : str
        Name of a method, see ``mkldist list methods``.
    grams : (M, n, n) array-like
        Symmetric positive semi-definite Gram matrices, used as they are: normalise before.  Only
        eigenvalues down to -1e-8 of the trace (-1e-6 in single precision) are set to zero.
    y : (n,) or (n, k) array-like
        Labels in {-1, +1}, or real values for regression; 0 marks points without a label for
        semi-supervised methods.  One-class methods learn what the points of label +1 have in
        common; those of label -1, known outliers, take no part.  Of k classes, a column each, the
        kernel weights are shared.
    laplacian : (n, n) array-like or sparse array, optional
        Graph Laplacian of the points, symmetric, for semi-supervised methods.
    **params
        The method's parameters, e.g. ``C``, ``tol``, ``max_iter``, ``time_limit``, ``trace``.

    Returns
    -------
    Solution
        Weights, bias, dual variables, and the certificate of what the method minimises.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown method or parameter, one without effect, and columns of labels where a
        method cannot share weights.
    mkldist.errors.GramError
        For Gram matrices, labels or a Laplacian that cannot be used.

    Warns
    -----
    mkldist.errors.ConvergenceWarning
        When the tolerance was not reached.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> x = np.linspace(-2, 2, 20)
    >>> y, products = np.where(np.abs(x) < 1, 1.0, -1.0), np.outer(x, x)
    >>> grams = np.array([products, products**2])
    >>> solution = mkldist.solve("level", grams, y, C=10.0)
    >>> bool(solution.gap <= 0.01), bool((solution.decision_function(grams) * y > 0).all())
    (True, True)
    """
    chosen = _method(method)
    settings = validate(chosen.params, method, params)
    check_effect(method, params, [settings])
    return _Instance.of(chosen, settings, grams, y, laplacian).solve(settings)


def solve_path(
    method: str,
    grams: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    laplacian: Any = None,
    **params: Any,
) -> list[Solution]:
    """Run one method at several strengths of regularisation, each started from the last one.

    The solvers run in the order of decreasing regularisation.  What a solver hands on (kernel
    weights, dual points, the kernels at work, and bounds for those that are not) saves the next
    one most of its passes; each solution is certified on its own all the same.

    Parameters
    ----------
    method : str
        Name of a method with a path: level, silp, spicymkl, elastmkl, primalmkl.
    grams, y, laplacian
        As for :func:`mkldist.solve`.
    **params
        The method's parameters: its regularisation as a list (``C``, or ``lam`` of primalmkl), the
        others as for :func:`mkldist.solve`.

    Returns
    -------
    list of Solution
        In the order of the list given.

    Raises
    ------
    mkldist.errors.SpecError
        For a method without a path or a regularisation that is not a list of numbers; else errors
        and warnings are those of :func:`mkldist.solve`.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> x = np.linspace(-2, 2, 20)
    >>> grams = np.array([np.outer(x, x), np.outer(x, x) ** 2])
    >>> path = mkldist.solve_path("level", grams, np.sign(np.abs(x) - 1), C=[100.0, 1.0, 10.0])
    >>> path[1].objective < path[2].objective < path[0].objective
    True
    """
    chosen = _method(method)
    parameter, values = _path_of(chosen, params)
    points = [validate(chosen.params, method, {**params, parameter: float(v)}) for v in values]
    check_effect(method, {**params, parameter: values}, points)
    instance = _Instance.of(chosen, points[0], grams, y, laplacian)
    solutions: dict[float, Solution] = {}
    state = None
    for settings in chosen.along_path(points):
        solution = instance.solve(settings, state)
        state = solution.state
        solutions[getattr(settings, parameter)] = replace(solution, state=None)
    return [solutions[float(value)] for value in values]


def _method(name: str) -> Method:
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise SpecError("method", f"found {name!r}", f"one of {known}", nearest(name, METHODS))
    return METHODS[name]


def _path_of(method: Method, params: Mapping[str, Any]) -> tuple[str, Floats]:
    """Return the parameter that varies along a path, and its values."""
    if method.path is None:
        able = ", ".join(name for name, other in METHODS.items() if other.path is not None)
        hint = "Or call mkldist.solve for each value"
        raise SpecError("method", f"found {method.name}", f"a method with a path: {able}", hint)
    name = method.path.parameter
    where, expected = f"{method.name}.{name}", "a list of numbers, one for each solution"
    values = real_array(params.get(name, ()), where, expected)
    if values.ndim != 1 or not len(values):
        found = f"found {params[name]!r:.60}" if name in params else "found none"
        raise SpecError(where, found, expected)
    return name, values


@dataclass(frozen=True, eq=False)
class _Instance:
    """A method on kernels and labels that were found good."""

    method: Method
    bank: MemoryBank
    labels: Floats
    laplacian: Any

    @classmethod
    def of(
        cls, method: Method, settings: SolverParams, grams: Any, y: Any, laplacian: Any
    ) -> _Instance:
        """Check what was given."""
        if method.needs_laplacian and laplacian is None:
            expected = "a graph Laplacian of the points"
            raise SpecError("laplacian", f"none for {method.name}", expected)
        if laplacian is not None and not method.needs_laplacian:
            able = ", ".join(name for name, other in METHODS.items() if other.needs_laplacian)
            expected = f"none, or a method on graphs: {able}"
            raise SpecError("laplacian", f"one for {method.name}, which uses no graph", expected)
        stack = real_array(grams, "grams", "(M, n, n) numbers: M Gram matrices of one size")
        labels = label_array(y, method, stack.shape[-1:])
        given = np.asarray(grams)
        check_grams(given if given.dtype == np.float32 else stack, labels, where="grams")
        for column in labels.reshape(len(labels), -1).T:
            check_labels(column, settings.target)
        with _threads_for(stack.shape[-1]):
            bank = MemoryBank.from_grams(semidefinite(stack))
        return cls(method, bank, labels, checked_laplacian(laplacian, len(labels)))

    def solve(self, settings: SolverParams, start: Any = None) -> Solution:
        """Run the method, from the state of another solution if there is one."""
        problem = Problem(self.labels, self.bank.n_kernels, laplacian=self.laplacian, start=start)
        view = make_views(self.bank, [None], ())[0]
        steps = self.method.solve(problem, settings)
        with _threads_for(self.bank.n_points):
            solution = solve_alone(self.bank, Job(self.method.name, view, problem, steps))
        _warn_if_early(self.method.name, solution, settings)
        return solution


def _threads_for(n_points: int) -> AbstractContextManager[None]:
    """Return what limits the threads of linear algebra where several take longer than one."""
    return single_threaded() if n_points < MANY_POINTS else nullcontext()


def _warn_if_early(method: str, solution: Solution, settings: SolverParams) -> None:
    """Warn of a tolerance that was not reached, unless to stop early was asked for."""
    if solution.converged or solution.extra.get("early_stopped"):
        return
    advice = {
        StopReason.MAX_ITER: "Raise max_iter or tol",
        StopReason.TIME_LIMIT: "Raise time_limit or tol",
        StopReason.STALLED: "Raise tol, or scale the kernels: rounding allows no more",
    }[solution.stop_reason]
    warnings.warn(
        f"{method} stopped before its tolerance ({solution.stop_reason}) after "
        f"{solution.counters.outer_iterations} iterations: relative gap {solution.gap:.2g}, "
        f"tol {settings.tol:g}. {advice}; objective and dual_objective bound the optimum anyhow",
        ConvergenceWarning,
        stacklevel=4,
    )
