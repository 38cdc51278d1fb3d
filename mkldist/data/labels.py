"""From a user's labels to the numbers of classes, or to the real values of regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats, Ints
from mkldist.errors import DataError, nearest

MISSING_LABELS = frozenset({"", "?", "na", "n/a", "nan"})
SHOWN = 10
# Sums of squares of some million such values stay within the range of float64.
LARGEST_VALUE = 1e150
REST = "rest"

Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """Labels of a problem of two or more classes and the rows that belong to it.

    Parameters
    ----------
    rows : (n,) intp
        Rows of the source that are kept, in their order.
    y : (n,) float64
        Labels of these rows: in {-1, +1} of two classes, else positions in `classes`.
    classes : tuple of str
        The user's names of the classes; of two those of -1 and +1.
    """

    rows: Ints
    y: Floats
    classes: tuple[str, ...]


def class_labels(
    labels: npt.NDArray[Any],
    where: str,
    classes: tuple[str, ...] | None = None,
    positive: str | None = None,
) -> ClassLabels:
    """Make a problem of two or more classes of labels.

    Classes are in order (of numbers if all are numbers, else of the alphabet) unless `classes`
    names them in another.  Of two classes the second becomes +1.  Numbers are the same class
    however they are written: ``1``, ``+1`` and ``1.0``.

    Parameters
    ----------
    labels : (n,) array of str, numbers or bool
        Labels in the user's own terms.
    where : str
        The place to name in a message.
    classes : tuple of str, optional
        Keep the rows of these classes only, at least two.
    positive : str, optional
        This class becomes +1 and all others together -1.

    Raises
    ------
    DataError
        For missing labels, for an unknown class, unless there are two classes, and for a class of
        a single point among more than two.

    Examples
    --------
    >>> labels = np.array(["b", "a", "c", "a", "b", "c"])
    >>> class_labels(labels, "t.csv").y
    array([1., 0., 2., 0., 1., 2.])
    >>> class_labels(labels, "t.csv", classes=("c", "a")).y
    array([ 1., -1.,  1., -1.])
    >>> class_labels(labels, "t.csv", positive="b").classes
    ('rest', 'b')
    """
    names, numeric = _class_names(labels, where)
    known = _counted(names, where, numeric=numeric)
    if positive is not None:
        return _against_the_rest(_known(positive, known, where), names)
    kept = tuple(known) if classes is None else _chosen(classes, known, where)
    if len(kept) > 2:
        _refuse_single({name: known[name] for name in kept}, where, numeric=numeric)
    rows = np.flatnonzero(np.isin(names, kept))
    place = {name: number for number, name in enumerate(kept)}
    unique, inverse = np.unique(names[rows], return_inverse=True)
    numbers = np.array([place[str(name)] for name in unique], dtype=np.float64)[inverse]
    return ClassLabels(rows, numbers if len(kept) > 2 else _signs(numbers > 0), kept)


def _counted(names: Names, where: str, *, numeric: bool) -> dict[str, int]:
    """Return the number of rows of each class, in order; refuse a single class."""
    present, counts = np.unique(names, return_counts=True)
    order = np.argsort(present.astype(np.float64)) if numeric else np.arange(len(present))
    known = {str(present[i]): int(counts[i]) for i in order}
    if len(known) == 1:
        raise DataError(
            where,
            f"one class only, {_listed(known)}",
            "two classes or more",
            "Check that the label column is the right one (label = …).",
        )
    return known


def _against_the_rest(positive: str, names: Names) -> ClassLabels:
    """Return one class as +1 and all others together as -1."""
    others = np.unique(names[names != positive]).tolist()
    rest = others[0] if len(others) == 1 else REST
    return ClassLabels(np.arange(len(names)), _signs(names == positive), (rest, positive))


def real_values(labels: npt.NDArray[Any], where: str) -> Floats:
    """Return labels as the finite real values of a regression problem, in the user's units.

    Parameters
    ----------
    labels : (n,) array of numbers, or of text that holds numbers
        Labels in the user's own terms.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        For missing labels, labels that are not numbers or whose squares are not finite, and
        labels that are all the same.

    Examples
    --------
    >>> real_values(np.array(["1.5", "-2", "0"]), "t.csv")
    array([ 1.5, -2. ,  0. ])
    """
    _one_a_row(labels, where)
    if labels.dtype.kind in "fiu":
        y = labels.astype(np.float64)
        _refuse_missing(np.isnan(y), where)
    else:
        y = _numbers(_texts(labels, where), where)
    large = np.flatnonzero(~(np.abs(y) <= LARGEST_VALUE))
    if len(large):
        raise DataError(
            where,
            f"label {labels[large[0]]} in row {large[0]} (from 0)",
            f"finite labels of at most {LARGEST_VALUE:g}",
            "Correct or rescale it.",
        )
    if (y == y[0]).all():
        raise DataError(
            where,
            f"one value only, {y[0]:g}, in {len(y)} rows",
            "labels that vary",
            "Check that the label column is the right one (label = …).",
        )
    return y


def _numbers(texts: Names, where: str) -> Floats:
    """Return texts as numbers."""
    _refuse_missing(_missing(texts), where)
    numbers = [_parsed(text) for text in texts.tolist()]
    wrong = [row for row, number in enumerate(numbers) if number is None]
    if wrong:
        raise DataError(
            where,
            f"label {str(texts[wrong[0]])!r} in row {wrong[0]} (from 0)",
            'numbers, as task = "regression" learns them',
            'For classes set task = "classification"; or name another column by label = …',
        )
    return np.array(numbers, dtype=np.float64)


def _chosen(classes: tuple[str, ...], known: dict[str, int], where: str) -> tuple[str, ...]:
    """Return the classes that the user names, as they are known."""
    kept = tuple(_known(name, known, where) for name in classes)
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise DataError(
            where,
            f"classes = {list(classes)}, twice the same ({twice!r})",
            "distinct classes",
            f"There are {_listed(known)}.",
        )
    return kept


def _refuse_single(known: dict[str, int], where: str, *, numeric: bool) -> None:
    """Refuse classes of one point, which cannot be in a training and a test part."""
    single = [name for name, count in known.items() if count == 1]
    if single:
        first, second = list(known)[:2]
        raise DataError(
            where,
            f"{len(known)} classes, {len(single)} of a single point: {_listed(known)}",
            "at least two points of each class",
            f'Set classes = ["{first}", "{second}", …] to keep some of them, or positive = '
            f'"{second}" for one against the rest.'
            + ' To learn numbers, set task = "regression".' * numeric
            + " Or is the label in another column (label = …)?" * (len(known) > SHOWN),
        )


def _signs(positive: npt.NDArray[np.bool_]) -> Floats:
    return np.where(positive, 1.0, -1.0)


def _class_names(labels: npt.NDArray[Any], where: str) -> tuple[Names, bool]:
    """Return the class name of every row, and whether all of them are numbers."""
    _one_a_row(labels, where)
    if labels.dtype.kind in "fiu":
        _refuse_missing(np.isnan(labels), where)
        return np.array([_number_name(v) for v in labels.tolist()]), _finite(labels, where)
    names = _texts(labels, where)
    _refuse_missing(_missing(names), where)
    unique, inverse = np.unique(names, return_inverse=True)
    numbers = [_parsed(str(name)) for name in unique]
    if any(number is None for number in numbers):
        return names, False
    same = np.array([_number_name(number) for number in numbers if number is not None])
    return same[inverse], True


def _one_a_row(labels: npt.NDArray[Any], where: str) -> None:
    if labels.ndim != 1:
        raise DataError(
            where,
            f"labels of shape {labels.shape}",
            "one label a row",
            "Give one column of labels.",
        )


def _texts(labels: npt.NDArray[Any], where: str) -> Names:
    """Return labels that are no numbers as text without blanks around it."""
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "UTb":
        raise DataError(
            where,
            f"labels of type {labels.dtype}",
            "numbers, text or true/false",
            "Convert them to text first.",
        )
    stripped: Names = np.char.strip(labels.astype(np.str_))
    return stripped


def _missing(names: Names) -> npt.NDArray[np.bool_]:
    unique, inverse = np.unique(names, return_inverse=True)
    missing = np.array([str(name).casefold() in MISSING_LABELS for name in unique])
    return missing[inverse]


def _finite(labels: npt.NDArray[Any], where: str) -> bool:
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DataError(
            where, f"label {labels[row]} in row {row} (from 0)", "finite labels", "Correct it."
        )
    return True


def _refuse_missing(missing: npt.NDArray[np.bool_], where: str) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise DataError(
            where,
            f"no label in {len(rows)} of {len(missing)} rows, the first is row {rows[0]} (from 0)",
            "a label in every row",
            "Remove these rows; which labels methods must not see, [splits] says.",
        )


def _parsed(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def _number_name(number: float) -> str:
    """Return the one name of a number: ``1`` for 1.0 and +1."""
    return str(int(number)) if float(number).is_integer() else repr(float(number))


def _known(name: str, known: dict[str, int], where: str) -> str:
    """Return the class that the user calls `name`."""
    if name in known:
        return name
    number = _parsed(name)
    if number is not None and _number_name(number) in known:
        return _number_name(number)
    hint = nearest(name, known) or "Name classes as they stand in the data."
    raise DataError(where, f"no class {name!r}", f"one of {_listed(known)}", hint)


def _listed(known: dict[str, int]) -> str:
    shown = ", ".join(f"{name!r} ({count})" for name, count in list(known.items())[:SHOWN])
    return shown + (f", … {len(known) - SHOWN} more" if len(known) > SHOWN else "")
