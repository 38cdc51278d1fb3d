"""Weights of rows: those that a source has, and those of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import LARGEST, LEAST, Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels
from mkldist.data.number_texts import finite_number, name_of_number
from mkldist.errors import DataError, nearest

ClassWeight = Literal["balanced"] | Mapping[str, float]


def row_weights(given: npt.NDArray[Any], where: str, row_labels: RowLabels = FROM_ZERO) -> Floats:
    """Return row weights as numbers, (n,).

    Parameters
    ----------
    given : (n,) array of numbers, or of texts that hold numbers
        The weights.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        For texts and missing, infinite, negative and extreme numbers, naming the first such row;
        and if all are zero.

    Examples
    --------
    >>> row_weights(np.array(["1", "0", "2.5"]), "t.csv")
    array([1. , 0. , 2.5])
    """
    if given.dtype.kind in "fiub":
        weights = given.astype(np.float64)
    else:
        numbers = [finite_number(str(text)) for text in given.tolist()]
        weights = np.array([np.nan if one is None else one for one in numbers], dtype=np.float64)
    able = (weights == 0.0) | ((weights >= LEAST) & (weights <= LARGEST))
    wrong = np.flatnonzero(~able)
    if len(wrong):
        value = given[wrong[0]]
        raise DataError(
            where,
            f"weight {str(value)!r} in {row_labels.of(wrong[0])}",
            f"0, or a number from {LEAST:g} to {LARGEST:g}, in every row",
            "Correct it; a row of weight 0 is in no training part",
        )
    if not weights.any():
        raise DataError(
            where, "weight 0 in every row", "at least one above 0", "Name another column, or none"
        )
    return weights


def check_class_weight(
    asked: ClassWeight | None, classes: tuple[str, ...] | None, where: str
) -> None:
    """Refuse weights of classes for real values, and of classes that are not there.

    Raises
    ------
    DataError
        Naming the first.
    """
    if asked is None:
        return
    place = f"{where}: class_weight"
    if classes is None:
        raise DataError(place, "a data set of regression", "one of classes", "Remove class_weight")
    if asked == "balanced":
        return
    for name in asked:
        if _name_among(name, classes) not in classes:
            expected = f"names of classes: {', '.join(map(repr, classes))}"
            hint = nearest(name, classes) or "Correct it, or remove it: other classes have weight 1"
            raise DataError(place, f"no class {name!r}", expected, hint)


def class_weights(
    asked: ClassWeight, classes: Sequence[str], numbers: Ints, weights: Floats | None = None
) -> Floats:
    """Return the weight of each class, (k,).

    Parameters
    ----------
    asked : {"balanced"} or mapping of str to float
        Weights by class, 1 for those left out; or ``n / (k n_c)`` of the n rows and the n_c of
        class c.
    classes : sequence of str
        Names of the k classes.
    numbers : (n,) intp
        Position of each row's class.
    weights : (n,) float64, optional
        Row weights: a row counts so often in n and n_c.

    Examples
    --------
    >>> class_weights("balanced", ("no", "yes"), np.array([0, 0, 0, 1]))
    array([0.66666667, 2.        ])
    >>> class_weights({"yes": 5.0}, ("no", "yes"), np.array([0, 1]))
    array([1., 5.])
    """
    if asked != "balanced":
        by_name = {_name_among(name, classes): weight for name, weight in asked.items()}
        return np.array([by_name.get(name, 1.0) for name in classes])
    counts = np.bincount(numbers, weights=weights, minlength=len(classes)).astype(np.float64)
    found, there = np.ones(len(classes)), counts > 0.0
    found[there] = counts.sum() / (there.sum() * counts[there])
    return found


def _name_among(name: str, classes: Sequence[str]) -> str:
    """Return the name of a class as the data set has it: ``1`` for ``1.0``."""
    return name if name in classes else name_of_number(name) or name
