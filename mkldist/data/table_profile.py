"""A first look at a table: the kind of each column, and the role that it most likely has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats
from mkldist.core.wording import truncate
from mkldist.data.cells import apart, likely_keys, units_of
from mkldist.data.checks import MISSING_VALUES, decimal_comma, rows_at_once
from mkldist.data.csv_files import likely_format
from mkldist.data.excel_files import likely_sheet
from mkldist.data.files import TEXT_TABLES, WORKBOOKS, extension_of, open_source
from mkldist.data.labels import finite_number, is_date
from mkldist.data.opening import REWRITE
from mkldist.data.splits import PART_WORDS
from mkldist.data.tables import (
    BOOLEANS,
    LABEL_NAMES,
    PLAIN,
    UNNAMED,
    Table,
    check_names,
    formatted,
    frame_texts,
)
from mkldist.data.validate import FEWEST_COPIED
from mkldist.errors import DataError, nearest
from mkldist.spec.datasets import TableFormat

MOST_CLASSES = 20  # distinct numbers of a label that are taken for classes
MOST_CATEGORIES = 30
MOST_FRACTIONS = 5  # of which some are not whole
FEWEST_LETTERS = 10  # of a sequence whose column is not called so, on the average
FEWEST_ROWS = 10  # of a column that is taken for the numbers of the rows
MOSTLY = 0.8  # share of the values that tells what a column holds; the others are slips
SHOWN = 8
FEWEST_VALUES = 10  # of a column whose gaps are filled
FEWEST_GROUPS = 6  # of a column whose rows of equal value stay together
CODE_LENGTH = 3  # at least, of codes with zeros before them
NAMELESS = "f0"  # the first column of a table without a header
SMALLEST_CODE = 1000
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?([ T].*)?|\d\d?([-/.])\d\d?\3\d{2,4}([ T]\d.*)?")
_SEQUENCE = re.compile(r"[A-Z*-]{5,}|[a-z*-]{5,}")
_SEQUENCE_NAME = re.compile(r"(^|[^a-z])(seq|dna|rna|protein|peptide|smiles|sequence)s?([^a-z]|$)")
_SMILES = re.compile(r"[A-Za-z0-9@+\-\[\]()=#$%/\\.:*]+")
_PLACE = re.compile(
    r"(centre|center|site|hospital|clinic|institution|institute|lab|laborator(y|ies)|batch|plate|"
    r"scanner|cohort|country|city|region|ward|school|family|litter|cage|study|run|chip|slide)s?"
    r"([_ .-]?(id|no|nr|num|number|code|name))?"
)
_ID = re.compile(r"(^|[_ -])id$|^id([_ -]|$)")
_SUBJECT = re.compile(
    r"(patient|subject|participant|proband|person|individual|donor|animal|mouse|customer|client|"
    r"user|student)([_ .-]?(id|no|nr|num|number|code|name))?"
)


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table."""

    name: str
    cells: Sequence[str] | npt.NDArray[np.object_]  # (n,) its fields
    numbers: Floats | None = None  # the values (n,) if all are finite numbers, where that is known
    unit: str | None = None  # in which the file has them

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The fields without blanks around them."""
        return tuple(map(str.strip, self.cells))

    @cached_property
    def counts(self) -> Counter[str]:
        """Rows by value, without missing values."""
        return Counter(v for v in self.values if v.casefold() not in MISSING_VALUES)

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        if self.numbers is not None:
            return 0
        return len(self.cells) - self.counts.total()

    @cached_property
    def no_numbers(self) -> tuple[str, ...]:
        """Values that are neither numbers nor true and false."""
        if self.numbers is not None:
            return ()
        return tuple(
            v for v in self.counts if finite_number(v) is None and v.casefold() not in BOOLEANS
        )

    @cached_property
    def holds_codes(self) -> bool:
        """True if the values are digits of one length, some with zeros before, such as 02139."""
        if self.is_real:
            return False
        length = max(len(self.values[0]), CODE_LENGTH)
        if not all(len(v) == length and v.isdecimal() for v in self.values if v):
            return False
        return not self.is_number_of_row and any(v.startswith("0") for v in self.values)

    @cached_property
    def is_numeric(self) -> bool:
        """True if all values are numbers, or true and false, but for a few slips."""
        if self.holds_codes:
            return False
        if not (slips := [v for v in self.no_numbers if not decimal_comma(v)]):
            return True
        n_slips = sum(self.counts[v] for v in slips)
        n_numbers = len(self.counts) - len(self.no_numbers)
        are_codes = n_numbers <= max(len(self.no_numbers), 2)  # of no more values than the slips
        return n_slips <= (1.0 - MOSTLY) * self.counts.total() and not are_codes

    @cached_property
    def units(self) -> list[str]:
        """Units of numbers in several ones, with and without one, or durations; [] of others."""
        return [] if self.is_numeric else units_of(self.counts)

    @cached_property
    def holds_texts(self) -> bool:
        """True if most values are several words: free text, for kernels of texts."""
        if (
            self.units
            or self.is_numeric
            or self.holds_dates
            or self.is_categorical
            or self.holds_sequences
        ):
            return False
        return sum(len(value.split()) > 1 for value in self.counts) > MOSTLY * len(self.counts)

    @cached_property
    def holds_sequences(self) -> bool:
        """True if all values look like DNA, proteins or molecules as SMILES."""
        if self.is_numeric or self.n_missing or not self.counts:
            return False
        called = _SEQUENCE_NAME.search(self.name.casefold()) is not None
        shortest, letters = 5 if called else FEWEST_LETTERS, "".join(self.counts)
        mean = len(letters) / len(self.counts)
        if mean < shortest or len(self.counts) < MOSTLY * len(self.cells):
            return False
        if all(map(_SEQUENCE.fullmatch, self.counts)):
            return called or len(set(letters)) > 2
        is_smiles = all(map(_SMILES.fullmatch, self.counts)) and set("cCNO") & set(letters)
        bonds = sum(any(sign in value for sign in "(=#") or "c1" in value for value in self.counts)
        return bool(is_smiles) and (called or bonds > len(self.counts) / 2)

    @cached_property
    def holds_dates(self) -> bool:
        """True if all values look like dates."""
        if self.numbers is not None:
            return False
        return bool(self.counts) and all(_DATE.fullmatch(value) for value in self.counts)

    @cached_property
    def is_number_of_row(self) -> bool:
        """True if the values are whole numbers that rise by one from row to row."""
        if self.unit is not None or self.is_real or len(self.cells) < FEWEST_ROWS:
            return False
        if not all(v.isdecimal() for v in self.values[:2]):
            return False
        if not all(v.isdecimal() for v in self.values):
            return False
        numbers = list(map(int, self.values))
        return all(b - a == 1 for a, b in pairwise(numbers))

    @cached_property
    def names_rows(self) -> bool:
        """True if the column most likely names the rows."""
        if self.is_number_of_row:
            return True
        if self.name == NAMELESS and self._are_codes:
            return True
        is_value = self.is_numeric or self.holds_codes
        if (is_value and not self._called_id) or self.holds_sequences or self.units:
            return False
        all_differ = len(self.counts) == len(self.cells) > 1
        if not all_differ or self.holds_dates:
            return False
        return self._called_id or not self.holds_texts

    @cached_property
    def orders_rows(self) -> bool:
        """True for dates by which a sweep can order the rows."""
        return self.holds_dates and not self.n_missing and all(map(is_date, self.counts))

    @cached_property
    def hardly_known(self) -> bool:
        """True if so many values are missing that a training part might hold none."""
        return self.n_missing > 0 and self.counts.total() < FEWEST_VALUES

    @cached_property
    def is_real(self) -> bool:
        """True if the values are numbers of which some are not whole."""
        if self.numbers is None:
            return False
        return not float(self.numbers[0]).is_integer() or bool((self.numbers % 1 != 0).any())

    @property
    def names_parts(self) -> bool:
        """True if the values are the words for parts of predefined splits."""
        if self.numbers is not None:
            return False
        return len(self.counts) > 1 and set(self.counts) <= set(PART_WORDS)

    @property
    def repeats(self) -> bool:
        """True if some values occur several times."""
        return len(self.counts) < self.counts.total()

    @property
    def names_subjects(self) -> bool:
        """True if the column most likely says whose the rows are, several of one patient or so."""
        if not (self._called_id or self._called_subject) or self.holds_dates or self.holds_texts:
            return False
        return FEWEST_GROUPS <= len(self.counts) < self.counts.total()

    @property
    def _are_codes(self) -> bool:
        """True if the values are large whole numbers, all different."""
        if self.numbers is None or len(self.cells) < FEWEST_ROWS or self.is_real:
            return False
        return self.numbers.min() >= SMALLEST_CODE and not self.repeats

    @property
    def names_places(self) -> bool:
        """True if the column most likely says where or in what batch the rows were made."""
        if _PLACE.fullmatch(self.name.casefold()) is None or self.n_missing:
            return False
        return 2 < len(self.counts) <= len(self.cells) / 2

    @property
    def _called_subject(self) -> bool:
        """True if the name is that of somebody of whom there may be several rows."""
        return _SUBJECT.fullmatch(self.name.casefold()) is not None

    @property
    def _called_id(self) -> bool:
        """True if the name says that the column names the rows."""
        return self.name == UNNAMED or _ID.search(self.name.casefold()) is not None

    @property
    def is_categorical(self) -> bool:
        """True if the column holds few different texts."""
        if self.is_numeric:
            return False
        few = len(self.counts) <= min(MOST_CATEGORIES, len(self.cells) // 2)
        return few and not self.holds_dates and not self.names_parts

    @cached_property
    def is_regression(self) -> bool:
        """True if the column, as a label, most likely holds real values."""
        return are_real([finite_number(value) for value in self.counts])

    def copies(self, label: Column) -> bool:
        """Return True if the column is the label again: its values, or one for each class."""
        if self.name.casefold() == label.name.casefold():
            return True
        real, n_classes, n_known = label.is_regression, len(label.counts), 0
        pairs: dict[str, str] = {}
        for cell, of_label in zip(self.cells, label.values, strict=True):
            value = cell.strip()
            if value.casefold() in MISSING_VALUES or of_label not in label.counts:
                continue
            n_known += 1
            if real and finite_number(value) != finite_number(of_label):
                return False
            if pairs.setdefault(value, of_label) != of_label or (len(pairs) > n_classes):
                return False
        return n_known >= FEWEST_COPIED + len(pairs) and len({*pairs.values()}) == len(pairs) > 1


def are_real(numbers: Collection[float | None]) -> bool:
    """Return True if different labels most likely are real values: many, or several not whole."""
    if None in numbers:
        return False
    whole = all(number is not None and float(number).is_integer() for number in numbers)
    return len(numbers) > (MOST_CLASSES if whole else MOST_FRACTIONS)


@dataclass(frozen=True)
class TableProfile:
    """Columns of a table by name, and their roles."""

    columns: Mapping[str, Column]
    label: str = ""  # empty for the table of a view
    given_id: str | None = None  # what the user says of the table
    given_groups: str | None = None
    labels: Column | None = None  # those of the rows of a view

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())).cells)

    @cached_property
    def others(self) -> list[Column]:
        """Columns other than the label."""
        return [column for column in self.columns.values() if column.name != self.label]

    @cached_property
    def row_names(self) -> str | None:
        """The first column that names the rows one by one, None if there is none."""
        if self.given_id is not None:
            return self.given_id
        return next((column.name for column in self.others if column.names_rows), None)

    @cached_property
    def groups(self) -> Column | None:
        """The column that says whose the rows are, None if there is none."""
        if self.given_groups is not None:
            return self.columns[self.given_groups]
        if self.given_id is not None and self.columns[self.given_id].repeats:
            return self.columns[self.given_id]
        found = [c for c in self.others if c.names_subjects and c.name != UNNAMED]
        of_subjects = [c for c in found if c._called_subject]
        return max(of_subjects or found, key=lambda c: len(c.counts), default=None)

    @property
    def id(self) -> str | None:
        """The column of names for predictions: that of rows, else that of groups, else None."""
        return self.row_names or (self.groups.name if self.groups else None)

    @cached_property
    def _named(self) -> set[str | None]:
        """Columns of names of rows and of groups."""
        return {self.id, self.groups.name if self.groups else None}

    @cached_property
    def copies(self) -> list[Column]:
        """Columns that are the label once more, as no new row has them."""
        label = self.labels or self.columns.get(self.label)
        others = [c for c in self.others if c.name not in self._named]
        return [] if label is None else [c for c in others if c.copies(label)]

    @cached_property
    def _no_features(self) -> set[str | None]:
        """Columns of names, of groups, and copies of the label."""
        return {*self._named, *(column.name for column in self.copies)}

    @property
    def places(self) -> list[Column]:
        """Columns whose rows of equal value may belong together, such as centres."""
        return [c for c in self.others if c.names_places and c.name not in self._named]

    @property
    def texts(self) -> list[Column]:
        """Columns of sequences, for kernels of texts."""
        return [c for c in self.others if c.name not in self._no_features and c.holds_sequences]

    @cached_property
    def categorical(self) -> list[Column]:
        """Columns of few different texts."""
        return [c for c in self.others if c.is_categorical and c.name not in self._no_features]

    @cached_property
    def ignored(self) -> list[Column]:
        """Columns that are no features: copies of the label, dates, texts, names of rows, gaps."""
        return self.copies + [
            c for c in self.others
            if c.name not in self._no_features and not c.is_categorical and not c.holds_sequences
            and (c.names_rows or c.hardly_known or c.name == UNNAMED or not c.is_numeric)
        ]  # fmt: skip

    @cached_property
    def features(self) -> list[Column]:
        """Columns of numbers."""
        others = (*self.ignored, *self.categorical, *self.texts)
        left_out = self._no_features | {c.name for c in others}
        return [c for c in self.others if c.name not in left_out]

    @property
    def n_features(self) -> int:
        """Number of features that columns of numbers and of categories make."""
        of_categories = sum(len(c.counts) + (c.n_missing > 0) for c in self.categorical)
        return len(self.features) + of_categories

    @property
    def missing(self) -> tuple[int, int]:
        """Numbers of rows and of columns of numbers that miss values."""
        return len(set().union(*self._gaps)), len(self._gaps)

    @property
    def blank_rows(self) -> set[int]:
        """Rows that miss the values of all features."""
        filled = self.categorical or len(self._gaps) < len(self.features)
        return set() if filled or not self._gaps else set.intersection(*self._gaps)

    @cached_property
    def _gaps(self) -> list[set[int]]:
        """Rows that miss values, for each column of numbers that has such rows."""
        columns = [c for c in self.features if c.n_missing]
        return [{i for i, value in enumerate(c.values) if value not in c.counts} for c in columns]


def read_columns(
    path: Path, format: TableFormat = PLAIN, known: Collection[str | None] = ()
) -> dict[str, Column]:
    """Return the columns of a table as texts; none of a file that holds arrays."""
    where, n_rows = str(path), 0
    with open_source(path, where, format, known=known) as table:
        if not isinstance(table, Table):
            return {}
        check_names(table.names, where, parts=table.parts)
        blocks: list[tuple[npt.NDArray[np.object_], Floats, Bools]] = []
        for frame, row_labels in formatted(table, format).read(
            table.names, rows_at_once(8 * len(table.names))
        ):
            n_rows += len(frame)
            cells = frame.to_numpy(dtype=object)
            block, finite = _numbers(cells)
            try:
                as_texts = _underscored(cells)
            except TypeError:  # values of other types
                texts = [frame_texts(frame[name], where, row_labels) for name in table.names]
                cells = np.array(texts, dtype=object).reshape(cells.shape[::-1]).T
                as_texts = _underscored(cells)
            blocks.append((cells, block, finite & ~as_texts))
        table.problems.check(n_rows)
    if not n_rows:
        raise DataError(where, "a header and no rows", "at least one row of each class", REWRITE)
    fields, numbers = (np.concatenate([one[i] for one in blocks]) for i in (0, 1))
    of_numbers = np.all([whole for *_, whole in blocks], axis=0).tolist()
    return {
        name: Column(name, fields[:, place], numbers[:, place] if of_numbers[place] else None)
        for place, name in enumerate(table.names)
    }


def _underscored(cells: npt.NDArray[np.object_]) -> Bools:
    """Return the columns (d,) of which some cells have underscores, as only Python's numbers do."""
    if "_" not in "".join(cells.ravel().tolist()):
        return np.zeros(cells.shape[1], dtype=bool)
    return np.array(["_" in "".join(column) for column in cells.T.tolist()], dtype=bool)


def _numbers(cells: npt.NDArray[Any]) -> tuple[Floats, Bools]:
    """Return cells (n, d) as numbers, and the columns (d,) that hold finite numbers alone."""
    try:
        found = cells.astype(np.float64)
    except (TypeError, ValueError):
        half = cells.shape[1] // 2
        if not half:
            return np.full(cells.shape, np.nan), np.zeros(cells.shape[1], dtype=bool)
        parts = [_numbers(cells[:, :half]), _numbers(cells[:, half:])]
        return np.hstack([x for x, _ in parts]), np.concatenate([known for _, known in parts])
    return found, np.asarray(np.isfinite(found).all(axis=0))


def inspected(
    path: Path,
    header: bool | None = None,
    known: Collection[str | None] = (),
    *,
    transpose: bool = False,
) -> tuple[dict[str, Column], TableFormat]:
    """Return the columns of a table as it most likely is written, and how that is.

    A first line with a name of a column that is `known` is a header.  Numbers with units,
    separators of thousands or decimal commas are read, and values that most likely stand for
    missing ones are missing.
    """
    format = PLAIN
    if extension_of(path.name) in TEXT_TABLES:
        format = likely_format(path, str(path), header, known)
    elif extension_of(path.name) in WORKBOOKS:
        format = likely_sheet(path, str(path), header, known)
    if transpose:
        format = TableFormat(**format.changes, transpose=True)
    columns = read_columns(path, format, known)
    for _ in range(2):  # the second time, of numbers that are known by then
        keys = _keys_of_cells(columns)
        if not keys:
            break
        words = [*format.missing_values, *keys.pop("missing_values", ())]
        format = TableFormat(**{**format.changes, **keys, "missing_values": words})
        columns = read_columns(path, format)
    in_units = {name: replace(columns[name], unit=unit) for name, unit in format.units.items()}
    return columns | in_units, format


def _keys_of_cells(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Return how the numbers of a table are written, and what stands for missing ones."""
    found: dict[str, Any] = {"units": {}, "missing_values": []}
    others = [column for column in columns.values() if column.numbers is None]
    kept = {value.casefold() for c in others if len(c.counts) <= 2 for value in c.no_numbers}
    for column in columns.values():
        keys = likely_keys(column.name, column.counts) if column.no_numbers else {}
        markers = [word for word in keys.get("missing_values", ()) if word.casefold() not in kept]
        found["missing_values"] += [one for one in markers if one not in found["missing_values"]]
        found["units"] |= keys.get("units", {})
        found |= {key: keys[key] for key in ("decimal", "thousands") if key in keys}
    gappy = [map(finite_number, c.counts) for c in others if c.n_missing and c.is_numeric]
    blocks = [np.array([x for x in numbers if x is not None]).reshape(-1, 1) for numbers in gappy]
    whole = [column.numbers for column in columns.values() if column.numbers is not None]
    blocks += [np.column_stack(whole)] if whole else []
    for block in blocks:
        for _, value in apart(block, nines=True):
            if value not in found["missing_values"]:
                found["missing_values"].append(int(value))
    if found.get("decimal") == found.get("thousands", ""):
        del found["thousands"]
    return {key: value for key, value in found.items() if value}


def likely_label(columns: Mapping[str, Column]) -> str | None:
    """Return the one column that is called as label columns are, None if there is none."""
    likely = [name for name in columns if name.casefold() in LABEL_NAMES]
    return likely[0] if len(likely) == 1 else None


def possible_labels(columns: Mapping[str, Column]) -> list[str]:
    """Return the columns whose values may be labels, those of fewest different values first."""
    possible = [c for c in columns.values() if len(c.counts) > 1 and not c.names_rows]
    return [c.name for c in sorted(possible, key=lambda c: len(c.counts)) if not c.holds_dates]


def check_column(columns: Mapping[str, Column], name: str, where: str) -> None:
    """Refuse a column that the table does not have."""
    if name not in columns:
        listed = truncate(possible_labels(columns), SHOWN)
        hint = nearest(name, columns) or f"Choose one of {listed}"
        raise DataError(where, f"no column {name!r}", "the name of a column", hint)


def holds_label_as_row(columns: Mapping[str, Column], label: str | None) -> bool:
    """Return True if a row, by its first field, and no column is called as labels are."""
    words, names = LABEL_NAMES - {"y"}, next(iter(columns.values())).counts
    found = [n for n in (*columns, *names) if (n == label if label else n.casefold() in words)]
    return len(found) == 1 and names[found[0]] == 1 and names.total() == len(names)


def joining(
    columns: Mapping[str, Column], others: Mapping[str, Column], id: str | None, where: str
) -> tuple[str, str]:
    """Return the columns by which two tables are joined; refuse tables that share no names of rows.

    That of the first table is `id` if given.  Of all pairs with different names for the rows of the
    second table, the one is taken that shares most, of equal ones that of the same name.
    """
    firsts = [id] if id is not None else [c.name for c in columns.values() if not c.is_real]
    pairs = [
        (len(columns[one].counts.keys() & other.counts.keys()), one == other.name, one, other.name)
        for other in others.values()
        if not other.is_real
        for one in firsts
    ]
    fit = [pair for pair in pairs if not (others[pair[3]].repeats or others[pair[3]].n_missing)]
    shared, _, first, second = max(fit, key=lambda pair: pair[:2], default=(0, False, "", ""))
    if shared > 1:
        return first, second
    found = f"no column with the names of rows of {id or 'the data'}"
    hint = "Give --id, the column of DATA that names them" if id is None else "Add such a column"
    near = [pair for pair in pairs if 2 * len(others[pair[3]].counts) > len(others[pair[3]].values)]
    if near:
        shared, _, first, second = max(near, key=lambda pair: pair[:2])
        own, theirs = (table[name].counts for table, name in ((columns, first), (others, second)))
        found = (
            f"no column with the names of rows of {first!r}, such as {truncate(list(own), 2)}; "
            f"its {second!r}, such as {truncate(list(theirs), 2)}, has {shared} of {len(own)}"
        )
        hint = "Write the names of rows alike in both tables"
        value, count = theirs.most_common(1)[0]
        if count > 1 and shared > 1:
            found += f", but {value!r} occurs {count} times"
            hint = "Correct these rows, or write one row for each name"
    raise DataError(where, found, "a column in both tables that names the rows once", hint)
