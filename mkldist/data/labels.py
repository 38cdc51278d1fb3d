"""Columns that say what rows are: labels of classes, real values, row weights, and times."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import LARGEST, LEAST, Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.errors import DataError, nearest

_WHOLE = re.compile(r"([+-]?)0*([0-9]{1,309})(?:\.0*)?")  # no finite float64 has more digits
_CODE = re.compile(r"0[0-9]+|[0-9]+[eE][0-9]+")  # such as a postcode, or a place on a plate


def finite_number(text: str) -> float | None:
    """Return the number that a text stands for; None if it is none, or not finite."""
    try:
        number = float(text.replace(MINUS, "-"))
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def number_name(number: float) -> str:
    """Return the one name of a finite number; a whole one has no point."""
    if isinstance(number, int) or number.is_integer():
        return str(int(number))
    return repr(number)


def name_of_number(text: str) -> str | None:
    """Return the one name of the number that a text stands for; None if it is no finite number.

    Whole numbers keep all of their digits, more than float64 has.
    """
    number = finite_number(text)
    if number is None:
        return None
    whole = _WHOLE.fullmatch(text.strip())
    return number_name(int(whole[1] + whole[2]) if whole else number)


def number_of_name(name: str) -> int | float:
    """Return the number that :func:`number_name` gave a name."""
    try:
        return int(name)
    except ValueError:
        return float(name)


# Fewer words than in features (mkldist.data.checks): "none" and "null" may be names of classes.
MINUS = "\N{MINUS SIGN}"  # as typesetters write it, and some programs
MISSING_LABELS = frozenset({"", "?", "na", "n/a", "#n/a", "nan"})
SHOWN = 10
FEW_ROWS = 5
# The sum of squares of a million such values is finite in float64.
LARGEST_VALUE = 1e150
REST = "rest"

Names = npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of a problem, and the rows that belong to it."""

    rows: Ints  # (n,) of the source, ascending
    y: Floats  # (n,) -1 and +1 for two classes, positions in `classes` for more, else real values
    classes: tuple[str, ...] | None  # as the user names them, of two first that of -1

    def of(self, positions: Ints) -> Labels:
        """Return the labels of some of these rows."""
        return Labels(self.rows[positions], self.y[positions], self.classes)


def class_labels(
    labels: npt.NDArray[Any],
    where: str,
    classes: tuple[str, ...] | None = None,
    positive: str | None = None,
    row_labels: RowLabels = FROM_ZERO,
) -> Labels:
    """Turn labels (n,) into a problem of two or more classes.

    Classes stand in the order of `classes` if given, and rows of others are left out; else in the
    order of numbers if all labels are numbers, and in alphabetical order otherwise.  The second of
    two classes becomes +1; or the class `positive`, and all others together -1.  Different
    spellings of a number, such as ``1``, ``+1`` and ``1.0``, are one class; codes, such as
    ``02139`` and ``1E3``, are classes of their own.  Missing labels are refused, unknown classes,
    fewer than two, and a class of a single point among more than two.

    >>> labels = np.array(["b", "a", "c", "a", "b", "c"])
    >>> class_labels(labels, "t.csv", classes=("c", "a")).y
    array([ 1., -1.,  1., -1.])
    >>> class_labels(labels, "t.csv", positive="b").classes
    ('rest', 'b')
    """
    names, numeric = _class_names(labels, where, row_labels)
    present, counts = np.unique(names, return_counts=True)
    pairs = list(zip(present.tolist(), counts.tolist(), strict=True))
    if numeric:
        pairs.sort(key=lambda pair: number_of_name(pair[0]))
    known: dict[str, int] = dict(pairs)
    listed = truncate([f"{name!r} ({count})" for name, count in known.items()], SHOWN)
    if len(known) == 1:
        hint = (
            "Check that the label column is the right one (label = …), and rename a class whose "
            "name stands for a missing label, such as NA"
        )
        raise DataError(where, f"one class only, {listed}", "two classes or more", hint)

    def spelled(name: str) -> str:
        """Return the class that the user calls `name`, in the spelling of the data."""
        same = name_among(name, known)
        if same not in known:
            hint = nearest(name, known) or "Name classes as they stand in the data"
            raise DataError(where, f"no class {name!r}", f"one of {listed}", hint)
        return same

    if positive is not None:
        positive = spelled(positive)
        others = [name for name in known if name != positive]
        rest = others[0] if len(others) == 1 else REST
        y = np.where(names == positive, 1.0, -1.0)
        return Labels(np.arange(len(names)), y, (rest, positive))
    kept = tuple(known) if classes is None else tuple(map(spelled, classes))
    if len(set(kept)) < len(kept):
        twice = next(name for name in kept if kept.count(name) > 1)
        found = f"classes = {list(classes or ())}, twice the same ({twice!r})"
        raise DataError(where, found, "distinct classes", f"Choose from {listed}")
    if len(kept) > 2:
        kept_counts = {name: known[name] for name in kept}
        _refuse_single(names, kept_counts, where, row_labels)
    rows = np.flatnonzero(np.isin(names, kept))
    place = {name: number for number, name in enumerate(kept)}
    unique, inverse = np.unique(names[rows], return_inverse=True)
    numbers = np.array([place[str(name)] for name in unique], dtype=np.float64)[inverse]
    return Labels(rows, numbers if len(kept) > 2 else np.where(numbers > 0, 1.0, -1.0), kept)


_SOUGHT = """
1 +1 + yes y true t positive pos case cases patient disease diseased sick ill malignant cancer tumor
tumour relapse relapsed recurrence event dead died death deceased responder present abnormal
affected mutant mutated active spam fraud default failure failed bad high progressive treated
ja krank fall tot positiv oui malade cas décédé si sí caso enfermo muerto malato morto
"""
_WITHOUT = """
0 -1 - no n false f negative neg control controls ctl ctrl healthy normal well benign absent nein
none not non without free alive survived censored wildtype wt inactive ham good ok low stable
placebo hc cn nc gesund kontrolle lebend negativ sain témoin temoin vivant sano vivo controllo
"""
_POSITIVE, _NEGATIVE = frozenset(_SOUGHT.split()), frozenset(_WITHOUT.split())


def negative_first(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Return two classes, of their numbers of rows, the one that is sought last.

    Of two numbers it is the larger one.  Known words tell which that is, such as ``no`` and
    ``yes``, and prefixes, as of ``untreated``; else it is the rarer one, and of classes of equal
    size the last of the alphabet.

    >>> negative_first({"case": 9, "ctl": 9}), negative_first({"ridge": 2, "alpine": 8})
    (('ctl', 'case'), ('alpine', 'ridge'))
    """
    numbers = {name: finite_number(name) for name in counts}
    first, second = sorted(counts, key=lambda name: (numbers[name] or 0.0, name))
    if None not in numbers.values():
        return first, second
    signs, one, other = [_sign(first), _sign(second)], first.casefold(), second.casefold()
    if {one, other} == {"b", "m"}:  # benign and malignant
        signs = [1 if name == "m" else -1 for name in (one, other)]
    elif other in (f"n{one}", f"un{one}"):  # as of R and NR, or of stable and unstable
        signs[1] = -(signs[0] or 1)
    elif one in (f"n{other}", f"un{other}"):
        signs[0] = -(signs[1] or 1)
    rank = [(sign, -counts[name]) for sign, name in zip(signs, (first, second), strict=True)]
    return (first, second) if rank[0] <= rank[1] else (second, first)


def _sign(name: str) -> int:
    """Return +1 for a class that is sought, -1 for one without it, by its words; else 0."""
    text = name.casefold().strip()
    words = {text, *re.split(r"[\W_]+", text)} - {""}
    if words & _NEGATIVE or text.startswith("non"):
        return -1
    return 1 if words & _POSITIVE else 0


def class_notes(y: Floats, classes: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return what is odd about classes: few rows, and names that hardly differ.

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
    spellings: dict[str, list[str]] = {}
    for name in classes:
        spellings.setdefault(name_of_number(name) or name.casefold(), []).append(name)
    alike = [
        f"classes {' and '.join(map(repr, names))} "
        + (
            "differ in upper and lower case alone"
            if finite_number(same) is None
            else f"are spellings of the number {same}, and stay apart"
        )
        for same, names in spellings.items()
        if len(names) > 1
    ]
    return (*alike, *few[:SHOWN])


def real_values(labels: npt.NDArray[Any], where: str, row_labels: RowLabels = FROM_ZERO) -> Floats:
    """Return labels (n,) as the finite real values of a regression problem, in the user's units."""
    if labels.ndim == 1 and labels.dtype.kind in "fiu":
        y = labels.astype(np.float64)
        _refuse_missing(np.isnan(y), where, row_labels)
    else:
        texts = _texts(labels, where)
        _refuse_missing(_missing(texts), where, row_labels)
        numbers = [finite_number(text) for text in texts.tolist()]
        if None in numbers:
            row = numbers.index(None)
            found = f"label {str(texts[row])!r} in {row_labels.of(row)}"
            hint = 'Set task = "classification" for classes, or name another column by label = …'
            raise DataError(where, found, 'numbers, as task = "regression" learns them', hint)
        y = np.array(numbers, dtype=np.float64)
    large = np.flatnonzero(~(np.abs(y) <= LARGEST_VALUE))
    if len(large):
        found = f"label {labels[large[0]]} in {row_labels.of(large[0])}"
        expected = f"finite labels of at most {LARGEST_VALUE:g}"
        raise DataError(where, found, expected, "Correct or rescale the labels")
    if (y == y[0]).all():
        found = f"one value only, {y[0]:g}, in {pluralize(len(y), 'row')}"
        hint = "Check that the label column is the right one (label = …)"
        raise DataError(where, found, "labels that vary", hint)
    return y


def _refuse_single(names: Names, known: dict[str, int], where: str, row_labels: RowLabels) -> None:
    """Refuse classes of one point, which cannot be in both a training and a test part."""
    single = [name for name, count in known.items() if count == 1]
    if not single:
        return
    first, second = sorted(known, key=known.__getitem__, reverse=True)[:2]
    hint = (
        f'Set classes = ["{first}", "{second}", …] to keep some of them, positive = "{second}" for '
        'one against the rest, task = "regression" to learn numbers, or label = … for labels in '
        "another column; or correct names that differ in upper and lower case alone"
    )
    listed = truncate([f"{name!r} ({count})" for name, count in known.items()], SHOWN)
    found = f"{pluralize(len(known), 'class', 'classes')}, {len(single)} of a single point: "
    found += f"{listed}; {single[0]!r} is in {row_labels.of(int(np.argmax(names == single[0])))}"
    raise DataError(where, found, "at least two points of each class", hint)


def _class_names(labels: npt.NDArray[Any], where: str, row_labels: RowLabels) -> tuple[Names, bool]:
    """Return the class name of every row, and True if all names are numbers."""
    if labels.ndim == 1 and labels.dtype.kind in "fiu":
        _refuse_missing(np.isnan(labels), where, row_labels)
        infinite = np.flatnonzero(~np.isfinite(labels))
        if len(infinite):
            found = f"label {labels[infinite[0]]} in {row_labels.of(infinite[0])}"
            raise DataError(where, found, "finite labels", "Correct this label")
        different, of_row = np.unique(labels, return_inverse=True)
        return np.array([number_name(v) for v in different.tolist()])[of_row], True
    names = _texts(labels, where)
    _refuse_missing(_missing(names), where, row_labels)
    unique, inverse = np.unique(names, return_inverse=True)
    same = [name_of_number(name) for name in unique.tolist()]
    if None in same:
        return names, False
    kept = [
        spelling if _CODE.fullmatch(spelling) else name
        for spelling, name in zip(unique.tolist(), same, strict=True)
    ]
    return np.array(kept)[inverse], True


def _texts(labels: npt.NDArray[Any], where: str) -> Names:
    """Return text or Boolean labels as text, (n,), without blanks around it."""
    if labels.ndim != 1:
        hint = "Give one column of labels"
        raise DataError(where, f"labels of shape {labels.shape}", "one label per row", hint)
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "UTb":
        found, expected = f"labels of type {labels.dtype}", "numbers, text or true/false"
        raise DataError(where, found, expected, "Convert them to text first")
    return np.char.strip(labels.astype(np.str_))


def without_label(labels: npt.NDArray[Any], where: str) -> npt.NDArray[np.bool_]:
    """Return which rows have no label, (n,)."""
    if labels.ndim == 1 and labels.dtype.kind in "fiu":
        return np.asarray(np.isnan(labels))
    return _missing(_texts(labels, where))


def _missing(names: Names) -> npt.NDArray[np.bool_]:
    unique, inverse = np.unique(names, return_inverse=True)
    missing = np.array([str(name).casefold() in MISSING_LABELS for name in unique])
    return missing[inverse]


def _refuse_missing(missing: npt.NDArray[np.bool_], where: str, row_labels: RowLabels) -> None:
    rows = np.flatnonzero(missing)
    if len(rows):
        raise DataError(
            where,
            f"no label in {len(rows)} of {len(missing)} rows, the first is "
            f"{row_labels.of(rows[0])}",
            "a label in every row",
            'Set unlabelled = "drop" under the data set to leave these rows out; semi-supervised '
            "methods learn from them with unlabelled rows by [splits]. A class called NA needs "
            "another name",
        )


ClassWeight = Literal["balanced"] | Mapping[str, float]


def row_weights(given: npt.NDArray[Any], where: str, row_labels: RowLabels = FROM_ZERO) -> Floats:
    """Return row weights as numbers, (n,)."""
    if given.dtype.kind in "fiub":
        weights = given.astype(np.float64)
    else:
        numbers = [finite_number(str(text)) for text in given.tolist()]
        weights = np.array([np.nan if one is None else one for one in numbers], dtype=np.float64)
    able = (weights == 0.0) | ((weights >= LEAST) & (weights <= LARGEST))
    wrong = np.flatnonzero(~able)
    if len(wrong):
        value = given[wrong[0]]
        found = f"weight {str(value)!r} in {row_labels.of(wrong[0])}"
        expected = f"0, or a number from {LEAST:g} to {LARGEST:g}, in every row"
        hint = "Correct it; a row of weight 0 is in no training part"
        raise DataError(where, found, expected, hint)
    if not weights.any():
        raise DataError(
            where, "weight 0 in every row", "at least one above 0", "Name another column, or none"
        )
    return weights


def check_class_weight(
    asked: ClassWeight | None, classes: tuple[str, ...] | None, where: str
) -> None:
    """Refuse weights of classes for real values, and of classes that are not there."""
    if asked is None:
        return
    place = f"{where}: class_weight"
    if classes is None:
        raise DataError(place, "a data set of regression", "one of classes", "Remove class_weight")
    if asked == "balanced":
        return
    for name in asked:
        if name_among(name, classes) not in classes:
            expected = f"names of classes: {', '.join(map(repr, classes))}"
            hint = nearest(name, classes) or "Correct it, or remove it: other classes have weight 1"
            raise DataError(place, f"no class {name!r}", expected, hint)


def class_weights(
    asked: ClassWeight, classes: Sequence[str], numbers: Ints, weights: Floats | None = None
) -> Floats:
    """Return the weight of each class, (k,)."""
    if asked != "balanced":
        by_name = {name_among(name, classes): weight for name, weight in asked.items()}
        return np.array([by_name.get(name, 1.0) for name in classes])
    counts = np.bincount(numbers, weights=weights, minlength=len(classes)).astype(np.float64)
    found, there = np.ones(len(classes)), counts > 0.0
    found[there] = counts.sum() / (there.sum() * counts[there])
    return found


def name_among(name: str, classes: Collection[str]) -> str:
    """Return the name of a class as the data set has it: ``1`` for ``1.0``, ``02`` for ``2``."""
    number = None if name in classes else name_of_number(name)
    if number is None or number in classes:
        return number or name
    same = [one for one in classes if name_of_number(one) == number]
    return same[0] if len(same) == 1 else name


_DOTTED = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})([ T].*)?")  # the day stands first
_IN_SLASHES = re.compile(r"\d+/\d+/\d+")
_SLASHES = "Write dates as year-month-day: 1/2/2021 is one day here and another there"


def rows_in_order(
    column: npt.NDArray[np.str_], where: str, row_labels: RowLabels = FROM_ZERO
) -> Ints:
    """Return the rows in ascending order of a column; equal ones stay in the order of the table."""
    texts = [str(text).strip() for text in column]
    names = [name_of_number(text) for text in texts]
    numbers = [number_of_name(name) for name in names if name is not None]
    if len(numbers) == len(texts):  # whole ones keep all digits: nanoseconds are beyond 2**53
        return np.array(sorted(range(len(numbers)), key=numbers.__getitem__), dtype=np.intp)
    dates = [_date(text) for text in texts]
    wrong = [row for row, date in enumerate(dates) if date is None]
    if wrong:
        expected = "numbers, or dates such as 2021-03-01 or 31.3.2021, in every row"
        hint = _SLASHES if _IN_SLASHES.match(texts[wrong[0]]) else "Correct this column"
        raise DataError(where, f"{texts[wrong[0]]!r} in {row_labels.of(wrong[0])}", expected, hint)
    return np.argsort(np.array(dates, dtype="datetime64[us]"), kind="stable")


def is_date(text: str) -> bool:
    """Return True for a date, with or without a time, by which :func:`rows_in_order` can order."""
    return _date(text) is not None


def _date(text: str) -> datetime | None:
    dotted = _DOTTED.fullmatch(text)
    if dotted:
        day, month, year, time = dotted.groups(default="")
        text = f"{year}-{month:0>2}-{day:0>2}{time}"
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date if date.tzinfo is None else None
