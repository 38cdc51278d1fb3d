"""What a user of :func:`mkldist.solve` gives besides parameters: numbers, labels, a Laplacian."""

from __future__ import annotations

from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.errors import GramError, SpecError
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Method
from mkldist.target import Target

SYMMETRY = 1e-8  # of the largest entry, that rounding explains


def real_array(given: Any, where: str, expected: str, hint: str = "") -> Floats:
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


def label_array(y: Any, method: Method, n: tuple[int, ...]) -> Floats:
    """Return labels as float64: (n,), or (n, k) for a method that takes several classes."""
    hint = 'Turn class names into numbers, as in numpy.where(names == "positive", 1, -1)'
    labels = real_array(y, "y", "numbers, one a point", hint)
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


def check_labels(y: Floats, target: Target) -> None:
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


def checked_laplacian(laplacian: Any, n: int) -> Any:
    """Return a graph Laplacian as a float64 array or sparse array; None stays None."""
    if laplacian is None:
        return None
    from scipy import sparse

    given_sparse: bool = sparse.issparse(laplacian)
    matrix: Any = laplacian
    if not given_sparse:
        matrix = real_array(laplacian, "laplacian", f"an array of shape ({n}, {n})")
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
