"""Labels and weights of classification, as solvers take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight as checked_sample_weight

from mkldist.arrays import Bools, Floats, Ints
from mkldist.errors import DataError
from mkldist.estimators.given_labels import of_plain_type


def encoded(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """Return the classes in order, and the number of each label's class.

    Raises
    ------
    ValueError
        For labels that are real values.
    mkldist.errors.DataError
        For one class alone.
    """
    y = of_plain_type(y)
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) == 0:
        raise DataError("y", "no labels", "two classes or more")
    if len(classes) == 1:
        raise DataError("y", f"one class, {classes.tolist()[0]!r}", "two classes or more")
    return classes, numbers


def row_weights(
    X: Floats, y: npt.NDArray[Any], sample_weight: Any, class_weight: Any
) -> Floats | None:
    """Return the weight of each row, that of the sample times that of its class; None for ones.

    Parameters
    ----------
    X : (n, d) float64
        Rows.
    y : (n,) array
        Labels.
    sample_weight : (n,) array-like or None
        Weights of rows, zero or above.
    class_weight : dict, "balanced" or None
        Weights of classes, as scikit-learn takes them.

    Raises
    ------
    ValueError
        For weights of another shape or below zero, and for other class weights.
    mkldist.errors.DataError
        For a class weight that is not above zero.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights: Floats = checked_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    if class_weight is not None:
        kept = weights > 0.0
        classes, numbers = np.unique(y[kept], return_inverse=True)
        of_class = compute_class_weight(class_weight, classes=classes, y=y[kept])
        if not (np.isfinite(of_class) & (of_class > 0.0)).all():
            raise DataError("class_weight", f"{class_weight!r:.60}", "weights above zero")
        weights = weights.copy()
        weights[kept] *= of_class[numbers]
    return None if bool((weights == 1.0).all()) else weights


def one_against_rest(numbers: Ints, n_classes: int, *, shared: bool) -> list[Floats]:
    """Return the problems of classes: labels in {-1, +1} of each problem.

    Parameters
    ----------
    numbers : (n,) int
        Number of each row's class.
    n_classes : int
        Number k of classes; two make one problem, in which the second class is +1.
    shared : bool
        True for one problem with a column for each class.
    """
    if n_classes == 2:
        return [np.where(numbers == 1, 1.0, -1.0)]
    columns = np.where(numbers[:, None] == np.arange(n_classes), 1.0, -1.0)
    return [columns] if shared else [np.ascontiguousarray(column) for column in columns.T]


def kept_rows(weights: Floats | None, n: int) -> Bools:
    """Return which rows take part: those of a weight above zero."""
    return np.ones(n, dtype=bool) if weights is None else weights > 0.0
