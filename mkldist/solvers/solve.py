"""One method on Gram matrices in memory: :func:`solve` and :func:`solve_path`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.data.gram_checks import check_grams, semidefinite
from mkldist.errors import ConvergenceWarning, GramError, SpecError, nearest
from mkldist.gram.bank import MemoryBank
from mkldist.gram.view import make_views
from mkldist.solvers.base import Method, Problem, Solution, SolverParams, StopReason
from mkldist.solvers.lockstep import Job, solve_alone
from mkldist.solvers.parameters import check_effect, validate
from mkldist.solvers.registry import METHODS
from mkldist.target import Target

Floats = npt.NDArray[np.float64]

SYMMETRY = 1e-8  # of the largest entry, that rounding explains


def solve(
    method: str,
    grams: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    laplacian: Any = None,
    **params: Any,
) -> Solution:
    """Run one method on a stack of precomputed Gram matrices.

    The solver is the same object that a sweep runs; only the bank is in memory.

    Parameters
    ----------
    method : str
        Name of a method, see ``mkldist list methods``.
    grams : (M, n, n) array-like
        Symmetric positive semi-definite Gram matrices, used as they are: normalise before.  Only
        negative eigenvalues, of at most 1e-8 of the trace (1e-6 in single precision), are set to
        zero.
    y : (n,) or (n, k) array-like
        Labels in {-1, +1}, or real values for methods and losses of regression; 0 marks points
        without a label for semi-supervised methods.  One-class methods learn what the points of
        label +1 have in common; those of label -1, known outliers, take no part.  With k columns,
        one for each of several classes, the classes share their kernel weights.
    laplacian : (n, n) array-like or sparse array, optional
        Graph Laplacian of the points, symmetric, for semi-supervised methods.
    **params
        The method's parameters, e.g. ``C``, ``tol``, ``max_iter``, ``time_limit``, ``trace``.

    Returns
    -------
    Solution
        Kernel weights, bias, dual variables, and the certificate of the objective that the
        method's module states.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown method, a parameter that is unknown or has no effect, and columns of labels
        where the method cannot share kernel weights.
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
    >>> y = np.where(np.abs(x) < 1, 1.0, -1.0)
    >>> squared = (x[:, None] - x) ** 2
    >>> grams = np.array([np.exp(-squared / (2 * s**2)) for s in (0.1, 0.5, 2.0)])
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
        For a method without a path or a regularisation that is not a list of numbers; else as
        :func:`mkldist.solve`.
    mkldist.errors.GramError
        As :func:`mkldist.solve`.

    Warns
    -----
    mkldist.errors.ConvergenceWarning
        When a tolerance was not reached.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> x = np.linspace(-2, 2, 20)
    >>> y = np.where(np.abs(x) < 1, 1.0, -1.0)
    >>> squared = (x[:, None] - x) ** 2
    >>> grams = np.array([np.exp(-squared / (2 * s**2)) for s in (0.1, 0.5, 2.0)])
    >>> path = mkldist.solve_path("level", grams, y, C=[100.0, 1.0, 10.0])
    >>> objectives = [solution.objective for solution in path]
    >>> objectives[1] < objectives[2] < objectives[0]
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
    values = _numbers(params.get(name, ()), where, expected)
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
        stack = _numbers(grams, "grams", "(M, n, n) numbers: M Gram matrices of one size")
        labels = _labels(y, method, stack.shape[-1:])
        given = np.asarray(grams)
        check_grams(given if given.dtype == np.float32 else stack, labels, where="grams")
        for column in labels.reshape(len(labels), -1).T:
            _check_labels(column, settings.target)
        bank = MemoryBank.from_grams(semidefinite(stack))
        return cls(method, bank, labels, _checked_laplacian(laplacian, len(labels)))

    def solve(self, settings: SolverParams, start: Any = None) -> Solution:
        """Run the method, from the state of another solution if there is one."""
        problem = Problem(self.labels, self.bank.n_kernels, laplacian=self.laplacian, start=start)
        view = make_views(self.bank, [None], ())[0]
        steps = self.method.solve(problem, settings)
        solution = solve_alone(self.bank, Job(self.method.name, view, problem, steps))
        _warn_if_early(self.method.name, solution, settings)
        return solution


def _numbers(given: Any, where: str, expected: str, hint: str = "") -> Floats:
    """Return what was given as float64; refuse what is not real numbers in rows of one length."""
    try:
        array = np.asarray(given)
        if array.dtype.kind in "fiubO":
            return np.asarray(array, dtype=np.float64)
        found = f"found texts such as {array.flat[0]!s:.30}" if array.dtype.kind in "US" else ""
    except (TypeError, ValueError) as error:
        raise GramError(where, f"found {_described(given)} ({error})", expected, hint) from None
    raise GramError(where, found or f"found an array of {array.dtype}", expected, hint)


def _described(given: Any) -> str:
    return f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")


def _labels(y: Any, method: Method, n: tuple[int, ...]) -> Floats:
    """Return labels as float64: (n,), or (n, k) for a method that takes several classes."""
    hint = 'Turn class names into numbers, as in numpy.where(names == "positive", 1, -1)'
    labels = _numbers(y, "y", "numbers, one a point", hint)
    if labels.ndim == 1:
        return labels
    if labels.shape[:-1] != n or labels.size == max(labels.shape):
        hint = "Use y.ravel()" if labels.size == max(labels.shape, default=0) else ""
        raise GramError(
            "y", f"found shape {labels.shape}", "(n,): one label a point, or (n, k)", hint
        )
    if not method.joint_classes:
        able = ", ".join(name for name, other in METHODS.items() if other.joint_classes)
        raise SpecError(
            "method",
            f"{method.name} with labels of shape {labels.shape}",
            f"a method whose classes can share kernel weights: {able}",
            "Or call it for one column at a time",
        )
    return np.ascontiguousarray(labels)


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


def _check_labels(y: Floats, target: Target) -> None:
    """Refuse labels that the method cannot learn from."""
    if not np.isfinite(y).all():
        position = int(np.flatnonzero(~np.isfinite(y))[0])
        raise GramError(f"y[{position}]", f"found {y[position]:g}", "a finite number")
    distinct = np.unique(y)
    found = f"found labels {{{', '.join(f'{value:g}' for value in distinct[:5])}}}"
    signs = bool(np.isin(distinct, (-1.0, 1.0)).all())
    if target is Target.CLASSES and not (signs and len(distinct) == 2):
        raise GramError("y", found, "both classes, as -1 and +1")
    known = distinct[distinct != 0.0]
    if target is Target.PARTIAL and not (np.isin(known, (-1.0, 1.0)).all() and len(known) == 2):
        raise GramError("y", found, "both classes, as -1 and +1, and 0 for unlabelled points")
    if target is Target.ONE_CLASS and not (signs and distinct[-1] == 1.0):
        raise GramError("y", found, "+1, and -1 for known outliers; at least one +1")


def _checked_laplacian(laplacian: Any, n: int) -> Any:
    """Return a graph Laplacian as a float64 array or sparse array; None stays None."""
    if laplacian is None:
        return None
    from scipy import sparse

    given_sparse: bool = sparse.issparse(laplacian)
    matrix: Any = laplacian
    if not given_sparse:
        matrix = _numbers(laplacian, "laplacian", f"an array of shape ({n}, {n})")
    if matrix.shape != (n, n):
        raise GramError("laplacian", f"found shape {matrix.shape}", f"({n}, {n})")
    entries = matrix.tocoo().data if given_sparse else matrix
    if not np.isfinite(entries).all():
        raise GramError("laplacian", "found entries that are not finite", "finite numbers")
    asymmetry = float(abs(matrix - matrix.T).max())
    if asymmetry > SYMMETRY * max(float(np.abs(entries).max(initial=0.0)), 1e-300):
        raise GramError("laplacian", f"found an asymmetry of {asymmetry:g}", "a symmetric matrix")
    dense = matrix.toarray() if given_sparse else matrix
    smallest = float(np.linalg.eigvalsh(dense)[0])
    if smallest < -SYMMETRY * float(np.abs(np.trace(dense))):
        raise GramError(
            "laplacian", f"found an eigenvalue of {smallest:g}", "a positive semi-definite matrix"
        )
    return matrix.astype(np.float64)
