"""Cells of tables as people write them: units, thousands, words for missing values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.wording import truncate
from mkldist.data.checks import MISSING_VALUES
from mkldist.data.labels import finite_number
from mkldist.spec.datasets import TableFormat

if TYPE_CHECKING:
    import pandas as pd

OF_CELLS = ("missing_values", "decimal", "thousands", "units")
"""Keys of a format that tables of any source have."""
MARKERS = frozenset(
    {
        "-", "--", "---", ".", "..", "*", "#", "<na>", "#na", "n.a.", "n.d.", "nd", "nil",
        "missing", "unknown", "unk", "not available", "not done", "not known", "#value!", "#div/0!",
        "#ref!", "#num!", "#null!", "#name?", "lod", "<lod", "loq", "<loq", "<lloq", "bdl", "<dl",
        "total", "sum", "mean",
    }
)  # fmt: skip
"""Words that often stand for missing values, or for no row of data, in lower case."""
FEWEST_NUMBERS = 3  # different ones, beside which such a word stands for a missing value
SHOWN = 8
_LIMIT = re.compile(r"[<>≤≥]\s*\d+([.,]\d+)?")  # of detection
HUGE = 1e20
_NINES = re.compile(r"-9+|9{3,}")  # numbers that often stand for missing values
_GROUPS = re.compile(r"[-+\u2212]?[1-9]\d{0,2}(?:([,.'\s])\d{3})(?:\1\d{3})*(?:(?!\1)([.,])\d*)?")
_COMMA = re.compile(r"[-+\u2212]?\d*,\d+")
_WITH_UNIT = re.compile(
    r"(?P<before>[$€£¥₹]|[A-Z]{3}(?=\s))?\s*(?P<number>[-+\u2212]?\d[\d,.'\s]*(?<=\d)(?:[eE][-+]?\d+)?)"
    r"\s*(?P<after>[%‰°µμ$€£¥₹]|[%‰°a-zA-Zµμ][^\d\s]*(?:[ /^].*)?)?"
)

_MARKED = re.compile(r"[$€£¥₹%‰°µμ]|\d[.,]\d|\d\s")  # of numbers with units, unlike codes as 12A
_CLOCK = re.compile(r"\d{1,3}(:\d\d){1,2}(\.\d+)?")
_CODE = re.compile(r"[-+]?0\d.*")
MOST_UNITS = 4
CLOCK = "h:min"


class Cells:
    """Reads the cells of tables whose numbers or missing values are written in a way of their own.

    >>> keys = {"decimal": ",", "thousands": ".", "missing_values": ("-",), "units": {"a": "mg"}}
    >>> cells = Cells(TableFormat(**keys))
    >>> [cells.read(text) for text in ("1.250,5", "-", "x")], cells.read("7,5 mg", "mg")
    (['1250.5', '', 'x'], '7.5')
    """

    def __init__(self, format: TableFormat) -> None:
        """Prepare the words for missing values, and the pattern of numbers."""
        self.needed = not format.changes.keys().isdisjoint(OF_CELLS)
        self.units, self._decimal = format.units, format.decimal
        self._thousands = format.thousands or ""
        given = [str(value).strip() for value in format.missing_values]
        self._words = frozenset(word.casefold() for word in given)
        numbers = [finite_number(word) for word in given]
        self._numbers = frozenset(number for number in numbers if number is not None)
        point, comma = re.escape(self._decimal), re.escape(self._thousands)
        groups = rf"\d{{1,3}}(?:{comma}\d{{3}})+|" if comma else ""
        number = rf"[-+\u2212]?(?:(?:{groups}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"
        self._number = re.compile(number)
        self._rewrites = bool(comma) or self._decimal != "."

    def read(self, cell: Any, unit: str | None = None) -> Any:
        """Return a cell with a plain number, or empty where it stands for a missing value."""
        if not isinstance(cell, str):
            return "" if self._numbers and cell in self._numbers else cell
        text = cell.strip()
        if text.casefold() in self._words:
            return ""
        if unit is not None and text.casefold() not in MISSING_VALUES:
            bare = text.removesuffix(unit) if text.endswith(unit) else text.replace(unit, "", 1)
            if bare == text or not self._number.fullmatch(bare.strip()):
                return f"{text} (not in {unit})"
            text = bare.strip()
        if self._rewrites and self._number.fullmatch(text):
            text = text.replace(self._thousands, "") if self._thousands else text
            text = text.replace(self._decimal, ".")
        elif unit is None and not self._numbers:
            return cell
        return "" if self._numbers and finite_number(text) in self._numbers else text

    def of(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table, read."""
        if not self.needed:
            return frame
        import pandas as pd
        from pandas.api.types import is_numeric_dtype

        columns = {}
        for place, name in enumerate(frame.columns):
            column = frame.iloc[:, place]
            if is_numeric_dtype(column.dtype):
                columns[place] = column.mask(column.isin(self._numbers))
                continue
            cells = [self.read(cell, self.units.get(str(name))) for cell in column.tolist()]
            columns[place] = pd.Series(cells, index=frame.index, dtype=object)
        return pd.DataFrame(columns).set_axis(frame.columns, axis="columns")


def is_limit(cell: Any) -> bool:
    """Return True for a limit of detection."""
    return isinstance(cell, str) and _LIMIT.fullmatch(cell) is not None


def likely_keys(name: str, texts: Collection[str], n_numbers: int = 0) -> dict[str, Any]:
    """Return the keys of a format with which the texts of a column are numbers; none if nothing is.

    `n_numbers` is the number of plain numbers beside the texts.

    >>> likely_keys("dose", ["8.7 mg", "6 mg", "-"]), likely_keys("n", ["202,458", "1,250"])
    ({'missing_values': ['-'], 'units': {'dose': 'mg'}}, {'thousands': ','})
    """
    found: dict[str, Any] = {}
    numbers = [text for text in texts if finite_number(text) is not None]
    others = [text for text in texts if finite_number(text) is None]
    markers = [text for text in others if text.casefold() in MARKERS or is_limit(text)]
    others = [text for text in others if text not in markers]
    if markers:
        found["missing_values"] = markers
    written = _likely_numbers(others)
    if others and written is None:
        parts = [_WITH_UNIT.fullmatch(text) for text in others]
        units = Counter((part["before"], part["after"]) for part in parts if part)
        unit = next(iter(units), (None, None))
        if None in parts or len(units) > 1 or unit.count(None) != 1 or numbers:
            return {}
        bare = [part["number"].strip() for part in parts if part]
        written = _likely_numbers([one for one in bare if finite_number(one) is None])
        if written is None or any(map(_CODE.match, bare)):
            return {}
        found["units"] = {name: unit[0] or str(unit[1])}
    if len(others) + len(numbers) + n_numbers < (FEWEST_NUMBERS if markers and not others else 1):
        return {}
    return found | (written or {})


def units_of(texts: Collection[str]) -> list[str]:
    """Return the units of texts that are numbers of several, "" for none; [] of other texts.

    >>> units_of(["12 mg", "0.3 g"]), units_of(["4.6%", "4.6"]), units_of(["12A", "13B"])
    (['mg', 'g'], ['%', ''], [])
    """
    if texts and all(map(_CLOCK.fullmatch, texts)):
        return [CLOCK]
    parts = [_WITH_UNIT.fullmatch(text) for text in texts]
    units = [*dict.fromkeys((one["before"] or one["after"] or "") for one in parts if one)]
    if None in parts or not any(units) or len(units) > MOST_UNITS or any(map(_CODE.match, texts)):
        return []
    return units if any(map(_MARKED.search, texts)) else []


def _likely_numbers(texts: Sequence[str]) -> dict[str, str] | None:
    """Return the decimal point and the separator of thousands of all texts; None if unlike."""
    groups = [_GROUPS.fullmatch(text) for text in texts]
    if groups and all(groups):
        signs = {one[1] for one in groups if one}, {one[2] for one in groups if one} - {None}
        if len(signs[0]) == 1 and len(signs[1]) <= 1 and signs != ({"."}, set()):
            return {"thousands": signs[0].pop()} | ({"decimal": ","} if "," in signs[1] else {})
    if all(_COMMA.fullmatch(text) for text in texts):
        return {"decimal": ","} if texts else {}
    return None


def apart(x: Floats, *, nines: bool = False) -> Iterator[tuple[int, float]]:
    """Yield column and value of ends that are farther from all others than these spread.

    They are numbers of nines, such as -999 or 9999, and unless these alone are asked for also
    repeated ends, huge ones, and -1 where all others are above 1.

    >>> list(apart(np.array([[4.0, -999.0, 5.5, np.nan, -999.0], [7.0, 8.0, 9.0, 9.0, 9.0]]).T))
    [(0, -999.0)]
    """
    step = max(1, 2**20 // max(1, len(x)))
    for first, sign in product(range(0, x.shape[1], step), (1.0, -1.0)):
        block = sign * x[:, first : first + step]
        end = np.fmin.reduce(block, initial=np.inf)
        others = np.where(block > end, block, np.nan)
        near = np.fmin.reduce(others, initial=np.inf)
        last = np.fmax.reduce(others, initial=-np.inf)
        far = (near > end + np.maximum(last - near, 1.0)) & (near < np.inf)
        far |= (sign * end == -1.0) & (near > 1.0)
        dropped = ((block == end).sum(axis=0) > 1) | (np.abs(end) > HUGE)
        for place in np.flatnonzero(far).tolist():
            value, own = sign * float(end[place]), others[:, place]
            several = len(np.unique(own[~np.isnan(own)])) >= FEWEST_NUMBERS
            if _NINES.fullmatch(f"{value:.10g}") or (dropped[place] and several and not nines):
                yield first + place, value


def apart_notes(names: Sequence[str], x: Floats) -> tuple[str, ...]:
    """Return a line on each value that stands apart in some features (n, d)."""
    columns: dict[float, list[str]] = {}
    for place, value in apart(x):
        columns.setdefault(value, []).append(repr(names[place]))
    return tuple(
        f"the value {value:g} of {truncate(own, SHOWN)} stands apart from all others; "
        f"missing_values = [{value:g}] takes it as missing, in all columns"
        for value, own in columns.items()
    )
