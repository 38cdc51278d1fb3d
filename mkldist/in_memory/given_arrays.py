"""Arrays that a user gives :func:`mkldist.solve`: conversion and checks before a method runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counted import counted
from mkldist.errors import GramError, SpecError
from mkldist.in_memory.label_hints import label_hint
from mkldist.methods.registry import methods_for
from mkldist.solvers.base import Method
from mkldist.solvers.refusals import Part, ProblemFacts, Refusal, one_of
from mkldist.target import Target

SYMMETRY = 1e-8  # asymmetry, relative to the largest entry, that rounding explains
SHOWN = 5  # distinct labels in a message
MAKE_LAPLACIAN = (
    'Give laplacian=graph_laplacian(X, graph_spec({"neighbours": 10})), of the features X of the '
    "points, by functions of mkldist.kernels.graph"
)


def real_array(given: Any, where: str, expected: str, hint: str = "") -> Floats:
    """Return an array-like as float64; refuse anything but real numbers in rows of one length."""
    refuse_masked(given, where)
    try:
        array = np.asarray(given)
        if array.dtype.kind in "fiubO":
            return np.asarray(array, dtype=np.float64)
        found = f"texts such as {array.flat[0]!s:.30}" if array.dtype.kind in "US" else ""
    except (TypeError, ValueError) as error:
        raise GramError(where, f"{_described(given)} ({error})", expected, hint) from None
    raise GramError(where, found or f"an array of {array.dtype}", expected, hint)


def refuse_masked(given: Any, where: str) -> None:
    """Refuse an array of numpy with masked entries, which others would read as numbers.

    Raises
    ------
    mkldist.errors.GramError
        If any entry is masked.
    """
    if isinstance(given, np.ndarray) and np.any(getattr(given, "mask", False)):
        hint = "Fill them, as by array.filled(numpy.nan), or leave these points out"
        raise GramError(where, "masked entries", "a number everywhere", hint)


def _described(given: Any) -> str:
    """Return the name of an object's type, with its module unless that is ``builtins``."""
    return f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")


def label_array(y: Any, n: tuple[int, ...]) -> Floats:
    """Return labels as float64, (n,) or (n, k); refuse other shapes and numbers not finite."""
    hint = 'Turn class names into numbers, as in numpy.where(names == "positive", 1, -1)'
    labels = real_array(y, "y", "numbers, one a point", hint)
    one_column = labels.ndim > 1 and labels.size == max(labels.shape)
    if labels.ndim == 0 or one_column or (labels.ndim > 1 and labels.shape[:-1] != n):
        hint = "Use y.ravel()" if one_column else ""
        raise GramError("y", f"shape {labels.shape}", "(n,): one label a point, or (n, k)", hint)
    if not np.isfinite(labels).all():
        place = tuple(np.argwhere(~np.isfinite(labels))[0].tolist())
        where = f"y[{', '.join(map(str, place))}]"
        hint = "Leave this point out; for methods on graphs, 0 marks a point without a label"
        raise GramError(where, f"{labels[place]:g}", "a finite number", hint)
    return np.ascontiguousarray(labels)


def check_method(
    method: Method,
    target: Target,
    labels: Floats,
    *,
    has_laplacian: bool,
    weighted: bool = False,
    folds: int = 0,
    grouped: bool = False,
    in_memory: int | None = None,
    rounded: bool = False,
) -> None:
    """Refuse labels, weights of points, folds, groups, a Laplacian or factors that do not fit.

    Parameters
    ----------
    method : Method
        The method.
    target : Target
        Labels that it learns with its settings.
    labels : (n,) or (n, k) float64
        The labels, finite.
    has_laplacian : bool
        True if a graph Laplacian was given.
    weighted : bool
        True if points have weights.
    folds : int
        Folds that its settings choose, ``params.chosen_folds``.
    grouped : bool
        True if kernels have groups.
    in_memory : int, optional
        Points up to which memory would hold matrices, of a bank that has thin factors of the
        kernels; None for other banks.
    rounded : bool
        True if these factors are rounded to float32.

    Raises
    ------
    mkldist.errors.SpecError
        For a Laplacian, columns of labels, weights of points, groups of kernels or factors that the
        method does not take, and for more folds than a class has points.
    mkldist.errors.GramError
        For labels of another kind.
    """
    columns = [np.unique(column).tolist() for column in np.atleast_2d(labels.T)]
    problem = ProblemFacts(
        laplacian=has_laplacian,
        shared_weights=labels.ndim > 1,
        weighted=weighted,
        grouped=grouped,
        factors=in_memory is not None,
        rounded=rounded,
        targets=[one for one in Target if all(_fits(column, one) for column in columns)],
        smallest_class=int(min((labels > 0).sum(axis=0).min(), (labels < 0).sum(axis=0).min())),
    )
    refusal = method.refuses(problem, target, folds)
    if refusal is None:
        return
    match refusal.part:
        case Part.LAPLACIAN:
            raise _refused_laplacian(method, refusal, given=has_laplacian)
        case Part.CLASSES:
            raise SpecError(
                "method",
                f"{method.name} with labels of shape {labels.shape}, but it {refusal.reason}",
                _others(refusal, problem),
                "Or call it for one column at a time",
            )
        case Part.WEIGHTS | Part.GROUPS:
            word = refusal.part.value
            found = f"{word} for {method.name}, which {refusal.reason}"
            raise SpecError(word, found, f"{refusal.expected}, or {_others(refusal, problem)}")
        case Part.FOLDS:
            raise SpecError("folds", f"{folds}", refusal.expected, "Lower it, or omit it")
        case Part.FACTORS:
            found = f"{method.name} on a bank of factors, but it {refusal.reason}, which half of "
            found += f"this machine's memory holds up to {in_memory:,} points"
            others = _others(refusal, ProblemFacts(factors=True))
            raise SpecError("method", found, others, "Or make the bank with another backend")
        case Part.ROUNDED:
            found = f"{method.name} on a bank of factors of float32, but it {refusal.reason}"
            others = _others(refusal, ProblemFacts(factors=True, rounded=True))
            raise SpecError("method", found, others, f"Or make the bank with {refusal.expected}")
        case Part.LABELS:
            raise _refused_labels(method, columns, target, refusal)


def _others(refusal: Refusal, problem: ProblemFacts) -> str:
    """Return the words for methods that take a problem, whatever its labels, with their names."""
    return f"{refusal.others}: {one_of(methods_for(replace(problem, targets=None)))}"


def _refused_labels(
    method: Method, columns: Sequence[list[float]], target: Target, refusal: Refusal
) -> GramError:
    """Return the error of the first column of distinct labels that do not fit."""
    distinct = next(column for column in columns if not _fits(column, target))
    shown = [f"{value:g}" for value in distinct[:SHOWN]] + ["..."] * (len(distinct) > SHOWN)
    hint = label_hint(method, distinct, target)
    return GramError("y", f"labels {{{', '.join(shown)}}}", refusal.expected, hint)


def _refused_laplacian(method: Method, refusal: Refusal, *, given: bool) -> SpecError:
    """Return the error of a Laplacian that a method needs or does not use."""
    if not given:
        found = f"none for {method.name}, which {refusal.reason}"
        return SpecError("laplacian", found, refusal.expected, MAKE_LAPLACIAN)
    able = one_of(methods_for(ProblemFacts(laplacian=True)))
    found = f"one for {method.name}, which {refusal.reason}"
    return SpecError("laplacian", found, f"{refusal.expected}, or {refusal.others}: {able}")


def _fits(values: Sequence[float], target: Target) -> bool:
    """Return True if distinct, finite labels are of a kind, see :class:`mkldist.target.Target`."""
    distinct = set(values)
    match target:
        case Target.CLASSES:
            return distinct == {-1.0, 1.0}
        case Target.PARTIAL:
            return distinct - {0.0} == {-1.0, 1.0}
        case Target.ONE_CLASS:
            return 1.0 in distinct <= {-1.0, 1.0}
        case Target.VALUES:
            return True


def weight_array(weights: Any, n: int) -> Floats | None:
    """Return weights of the points as (n,) float64; None stays None.

    Raises
    ------
    mkldist.errors.GramError
        For another shape, and for weights that are not finite and positive.
    """
    if weights is None:
        return None
    given = real_array(weights, "weights", "numbers, one a point")
    if given.shape != (n,):
        raise GramError("weights", f"shape {given.shape}", f"({n},): one weight a point")
    bad = np.flatnonzero(~(np.isfinite(given) & (given > 0.0)))
    if len(bad):
        hint = "Leave out points that are to have no weight"
        raise GramError(f"weights[{bad[0]}]", f"{given[bad[0]]:g}", "a positive number", hint)
    return np.ascontiguousarray(given)


def group_array(groups: Any, n_kernels: int) -> Ints:
    """Return groups of kernels, by name or number, as numbers (M,); None is a group of its own.

    Raises
    ------
    mkldist.errors.GramError
        For anything but one name or number a kernel.
    """
    expected = f"{n_kernels} names or numbers, one a kernel"
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        raise GramError("groups", f"{groups!r:.60}", expected)
    if len(groups) != n_kernels:
        raise GramError("groups", f"{len(groups)} for {counted(n_kernels, 'kernel')}", expected)
    number: dict[object, int] = {}
    found = np.empty(n_kernels, dtype=np.intp)
    for m, name in enumerate(groups):
        if name is not None and not isinstance(name, str | int | np.integer):
            raise GramError(f"groups[{m}]", f"{name!r:.60}", "a name, a number or None")
        key = ("its own", m) if name is None else name
        found[m] = number.setdefault(key, len(number))
    return found


def checked_laplacian(laplacian: Any, n: int) -> Any:
    """Return a graph Laplacian as a float64 array or sparse array; None stays None.

    Parameters
    ----------
    laplacian : (n, n) array-like or sparse array, or None
        Laplacian as a user gave it.
    n : int
        Number of points.

    Raises
    ------
    mkldist.errors.GramError
        For a matrix of another shape, entries that are not finite, an asymmetry above 1e-8 of the
        largest entry, or an eigenvalue below -1e-8 of the trace.
    """
    if laplacian is None:
        return None
    from scipy import sparse

    given_sparse: bool = sparse.issparse(laplacian)
    matrix: Any = laplacian
    if not given_sparse:
        matrix = real_array(laplacian, "laplacian", f"an array of shape ({n}, {n})")
    if matrix.shape != (n, n):
        raise GramError("laplacian", f"shape {matrix.shape}", f"({n}, {n})")
    entries = matrix.tocoo().data if given_sparse else matrix
    if not np.isfinite(entries).all():
        raise GramError("laplacian", "entries that are not finite", "finite numbers")
    asymmetry = float(abs(matrix - matrix.T).max())
    if asymmetry > SYMMETRY * max(float(np.abs(entries).max(initial=0.0)), 1e-300):
        raise GramError("laplacian", f"an asymmetry of {asymmetry:g}", "a symmetric matrix")
    dense = matrix.toarray() if given_sparse else matrix
    smallest = float(np.linalg.eigvalsh(dense)[0])
    if smallest < -SYMMETRY * float(np.abs(np.trace(dense))):
        raise GramError(
            "laplacian", f"an eigenvalue of {smallest:g}", "a positive semi-definite matrix"
        )
    return matrix.astype(np.float64)
