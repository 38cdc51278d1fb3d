"""Turn a user's labels into the numbers of classes, or into the real values of regression."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.number_texts import (
    finite_number,
    name_of_number,
    number_name,
    number_of_name,
)
from mkldist.errors import DataError, nearest

# Fewer words than in features (mkldist.data.missing): "none" and "null" may be names of classes.
MISSING_LABELS = frozenset({"", "?", "na", "n/a", "nan"})
SHOWN = 10
FEW_ROWS = 5
# The sum of squares of a million such values is finite in float64.
LARGEST_VALUE = 1e150
REST = "rest"

Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """Labels of a problem of two or more classes, and the rows that belong to it.

    Parameters
    ----------
    rows : (n,) intp
        Kept rows of the source, ascending.
    y : (n,) float64
        Labels of these rows: -1 and +1 for two classes, else positions in `classes`.
    classes : tuple of str
        The user's names of the classes, of two first that of -1, then that of +1.
    """

    rows: Ints
    y: Floats
    classes: tuple[str, ...]


def class_labels(
    labels: npt.NDArray[Any],
    where: str,
    classes: tuple[str, ...] | None = None,
    positive: str | None = None,
    row_labels: RowLabels = FROM_ZERO,
) -> ClassLabels:
    """Turn labels into a problem of two or more classes.

    Classes stand in the order of `classes` if given; else in the order of numbers if all labels are
    numbers, and in alphabetical order otherwise.  The second of two classes becomes +1.  Different
    spellings of a number, such as ``1``, ``+1`` and ``1.0``, are one class.

    Parameters
    ----------
    labels : (n,) array of str, numbers or bool
        Labels in the user's own terms.
    where : str
        The place to name in a message.
    classes : tuple of str, optional
        At least two classes; the rows of the others are left out.
    positive : str, optional
        Class that becomes +1; all others together become -1.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        For missing labels, an unknown class, fewer than two classes, and a class of a single point
        among more than two.

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
    names, numeric = _class_names(labels, where, row_labels)
    known = _counted(names, where, numeric=numeric)
    if positive is not None:
        return _against_the_rest(_known(positive, known, where), names)
    kept = tuple(known) if classes is None else _chosen(classes, known, where)
    if len(kept) > 2:
        counts = {name: known[name] for name in kept}
        _refuse_single(names, counts, where, row_labels, numeric=numeric)
    rows = np.flatnonzero(np.isin(names, kept))
    place = {name: number for number, name in enumerate(kept)}
    unique, inverse = np.unique(names[rows], return_inverse=True)
    numbers = np.array([place[str(name)] for name in unique], dtype=np.float64)[inverse]
    return ClassLabels(rows, numbers if len(kept) > 2 else _signs(numbers > 0), kept)


def class_notes(y: Floats, classes: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return what is odd about classes: few rows, and names that differ in upper case alone.

    Parameters
    ----------
    y : (n,) float64
        Labels as of :class:`ClassLabels`.
    classes : tuple of str or None
        Names of the classes; None for real values, of which nothing is said.

    Examples
    --------
    >>> class_notes(np.array([0.0, 1.0, 2.0] * 9), ("No", "no", "yes"))
    ("classes 'No' and 'no' differ in upper and lower case alone",)
    """
    if classes is None:
        return ()
    numbers = (y if len(classes) > 2 else y > 0).astype(np.intp)
    counts = np.bincount(numbers, minlength=len(classes)).tolist()
    few = [
        f"class {name!r} has {pluralize(count, 'row')} only"
        for name, count in zip(classes, counts, strict=True)
        if count < FEW_ROWS
    ]
    alike = [
        f"classes {' and '.join(map(repr, names))} differ in upper and lower case alone"
        for names in _spelled_alike(classes)
    ]
    return (*alike, *few[:SHOWN])


def _counted(names: Names, where: str, *, numeric: bool) -> dict[str, int]:
    """Return the number of rows of each class, in the order of the classes; refuse one class."""
    present, counts = np.unique(names, return_counts=True)
    pairs = list(zip(present.tolist(), counts.tolist(), strict=True))
    if numeric:
        pairs.sort(key=lambda pair: number_of_name(pair[0]))
    known: dict[str, int] = dict(pairs)
    if len(known) == 1:
        raise DataError(
            where,
            f"one class only, {_listed(known)}",
            "two classes or more",
            "Check that the label column is the right one (label = …)",
        )
    return known


def _against_the_rest(positive: str, names: Names) -> ClassLabels:
    """Return one class as +1 and all others together as -1."""
    others = np.unique(names[names != positive]).tolist()
    rest = others[0] if len(others) == 1 else REST
    return ClassLabels(np.arange(len(names)), _signs(names == positive), (rest, positive))


def real_values(labels: npt.NDArray[Any], where: str, row_labels: RowLabels = FROM_ZERO) -> Floats:
    """Return labels as the finite real values of a regression problem, in the user's units.

    Parameters
    ----------
    labels : (n,) array of numbers, or of text that holds numbers
        Labels in the user's own terms.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        For missing labels, labels that are not numbers, labels above :data:`LARGEST_VALUE` in
        magnitude, and labels that are all the same.

    Examples
    --------
    >>> real_values(np.array(["1.5", "-2", "0"]), "t.csv")
    array([ 1.5, -2. ,  0. ])
    """
    _one_a_row(labels, where)
    if labels.dtype.kind in "fiu":
        y = labels.astype(np.float64)
        _refuse_missing(np.isnan(y), where, row_labels)
    else:
        y = _numbers(_texts(labels, where), where, row_labels)
    large = np.flatnonzero(~(np.abs(y) <= LARGEST_VALUE))
    if len(large):
        raise DataError(
            where,
            f"label {labels[large[0]]} in {row_labels.of(large[0])}",
            f"finite labels of at most {LARGEST_VALUE:g}",
            "Correct or rescale the labels",
        )
    if (y == y[0]).all():
        raise DataError(
            where,
            f"one value only, {y[0]:g}, in {pluralize(len(y), 'row')}",
            "labels that vary",
            "Check that the label column is the right one (label = …)",
        )
    return y


def _numbers(texts: Names, where: str, row_labels: RowLabels) -> Floats:
    """Return texts as numbers; refuse texts that are missing or no numbers."""
    _refuse_missing(_missing(texts), where, row_labels)
    numbers = [finite_number(text) for text in texts.tolist()]
    wrong = [row for row, number in enumerate(numbers) if number is None]
    if wrong:
        raise DataError(
            where,
            f"label {str(texts[wrong[0]])!r} in {row_labels.of(wrong[0])}",
            'numbers, as task = "regression" learns them',
            'Set task = "classification" for classes, or name another column by label = …',
        )
    return np.array(numbers, dtype=np.float64)


def _chosen(classes: tuple[str, ...], known: dict[str, int], where: str) -> tuple[str, ...]:
    """Return the classes that the user names, in the spelling of the data."""
    kept = tuple(_known(name, known, where) for name in classes)
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        raise DataError(
            where,
            f"classes = {list(classes)}, twice the same ({twice!r})",
            "distinct classes",
            f"Choose from {_listed(known)}",
        )
    return kept


def _refuse_single(
    names: Names, known: dict[str, int], where: str, row_labels: RowLabels, *, numeric: bool
) -> None:
    """Refuse classes of one point, which cannot be in both a training and a test part."""
    single = [name for name, count in known.items() if count == 1]
    if single:
        first, second = sorted(known, key=known.__getitem__, reverse=True)[:2]
        hints = [
            f"{' and '.join(map(repr, alike))} differ in upper and lower case alone: correct them "
            "if they are one class"
            for alike in _spelled_alike(known)
        ]
        hints.append(
            f'Set classes = ["{first}", "{second}", …] to keep some of them, or positive = '
            f'"{second}" for one against the rest'
            + ', or task = "regression" to learn numbers' * numeric
            + ", or label = … for labels in another column" * (len(known) > SHOWN)
        )
        raise DataError(
            where,
            f"{pluralize(len(known), 'class', 'classes')}, {len(single)} of a single point: "
            f"{_listed(known)}; {single[0]!r} is in "
            f"{row_labels.of(int(np.argmax(names == single[0])))}",
            "at least two points of each class",
            ". ".join(hints),
        )


def _spelled_alike(classes: Iterable[str]) -> list[list[str]]:
    """Return the names of classes that differ in upper and lower case alone, in groups."""
    spellings: dict[str, list[str]] = {}
    for name in classes:
        spellings.setdefault(name.casefold(), []).append(name)
    return [names for names in spellings.values() if len(names) > 1]


def _signs(positive: npt.NDArray[np.bool_]) -> Floats:
    return np.where(positive, 1.0, -1.0)


def _class_names(labels: npt.NDArray[Any], where: str, row_labels: RowLabels) -> tuple[Names, bool]:
    """Return the class name of every row, and True if all names are numbers."""
    _one_a_row(labels, where)
    if labels.dtype.kind in "fiu":
        _refuse_missing(np.isnan(labels), where, row_labels)
        _refuse_infinite(labels, where, row_labels)
        different, of_row = np.unique(labels, return_inverse=True)
        return np.array([number_name(v) for v in different.tolist()])[of_row], True
    names = _texts(labels, where)
    _refuse_missing(_missing(names), where, row_labels)
    unique, inverse = np.unique(names, return_inverse=True)
    of_numbers = [name_of_number(name) for name in unique.tolist()]
    same = [name for name in of_numbers if name is not None]
    if len(same) < len(unique):
        return names, False
    return np.array(same)[inverse], True


def _one_a_row(labels: npt.NDArray[Any], where: str) -> None:
    if labels.ndim != 1:
        raise DataError(
            where,
            f"labels of shape {labels.shape}",
            "one label per row",
            "Give one column of labels",
        )


def _texts(labels: npt.NDArray[Any], where: str) -> Names:
    """Return text or Boolean labels as text, without blanks around it."""
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "UTb":
        raise DataError(
            where,
            f"labels of type {labels.dtype}",
            "numbers, text or true/false",
            "Convert them to text first",
        )
    stripped: Names = np.char.strip(labels.astype(np.str_))
    return stripped


def _missing(names: Names) -> npt.NDArray[np.bool_]:
    unique, inverse = np.unique(names, return_inverse=True)
    missing = np.array([str(name).casefold() in MISSING_LABELS for name in unique])
    return missing[inverse]


def _refuse_infinite(labels: npt.NDArray[Any], where: str, row_labels: RowLabels) -> None:
    rows = np.flatnonzero(~np.isfinite(labels))
    if len(rows):
        found = f"label {labels[rows[0]]} in {row_labels.of(rows[0])}"
        raise DataError(where, found, "finite labels", "Correct this label")


def _refuse_missing(missing: npt.NDArray[np.bool_], where: str, row_labels: RowLabels) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise DataError(
            where,
            f"no label in {len(rows)} of {len(missing)} rows, the first is "
            f"{row_labels.of(rows[0])}",
            "a label in every row",
            "Remove these rows; hide labels from methods by [splits]",
        )


def _known(name: str, known: dict[str, int], where: str) -> str:
    """Return the class that the user calls `name`, in the spelling of the data."""
    if name in known:
        return name
    same = name_of_number(name)
    if same is not None and same in known:
        return same
    hint = nearest(name, known) or "Name classes as they stand in the data"
    raise DataError(where, f"no class {name!r}", f"one of {_listed(known)}", hint)


def _listed(known: dict[str, int]) -> str:
    return truncate([f"{name!r} ({count})" for name, count in known.items()], SHOWN)
