"""A first look at a table: the kind of each column, and the role that it most likely has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from mkldist.data.checks import MISSING_VALUES, decimal_comma, rows_at_once
from mkldist.data.files import open_source
from mkldist.data.labels import finite_number, is_date
from mkldist.data.opening import REWRITE
from mkldist.data.tables import BOOLEANS, LABEL_NAMES, UNNAMED, Table, check_names, frame_texts
from mkldist.errors import DataError, nearest

MOST_CLASSES = 20  # distinct numbers of a label that are taken for classes
MOST_CATEGORIES = 30
FEWEST_ROWS = 10  # of a column that is taken for the numbers of the rows
MOSTLY = 0.8  # share of the values that tells what a column holds; the others are slips
NEARLY = 0.95  # share of different values in a column that was meant to name the rows
FEWEST_VALUES = 10  # of a column whose gaps are filled
FEWEST_GROUPS = 6  # of a column whose rows of equal value stay together
_DATE = re.compile(r"\d{4}([-/.])\d\d?\1\d\d?([ T].*)?|\d\d?([-/.])\d\d?\3\d{2,4}([ T]\d.*)?")
_SUBJECT = re.compile(
    r"(patient|subject|participant|proband|person|individual|donor|animal|mouse|customer|client|"
    r"user|student)([_ .-]?(id|no|nr|num|number|code|name))?"
)


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, and its fields without blanks around them."""

    name: str
    values: tuple[str, ...]

    @cached_property
    def counts(self) -> Counter[str]:
        """Rows by value, without missing values."""
        return Counter(v for v in self.values if v.casefold() not in MISSING_VALUES)

    @property
    def n_missing(self) -> int:
        """Number of missing values."""
        return len(self.values) - self.counts.total()

    @cached_property
    def no_numbers(self) -> tuple[str, ...]:
        """Values that are neither numbers nor true and false."""
        return tuple(
            v for v in self.counts if finite_number(v) is None and v.casefold() not in BOOLEANS
        )

    @cached_property
    def is_numeric(self) -> bool:
        """True if all values are numbers, or true and false, but for a few slips.

        Numbers with a decimal comma count as slips, for the plan tells how to write them.
        """
        slips = [v for v in self.no_numbers if not decimal_comma(v)]
        n_slips = sum(self.counts[v] for v in slips)
        return not slips or (n_slips <= (1.0 - MOSTLY) * self.counts.total() and self._vary)

    @property
    def _vary(self) -> bool:
        """True if the numbers are of more values than the slips, so that they are no codes."""
        n_numbers = len(self.counts) - len(self.no_numbers)
        return n_numbers > max(len(self.no_numbers), 2)

    @cached_property
    def holds_texts(self) -> bool:
        """True if most values are several words: free text, for kernels of texts."""
        if self.is_numeric or self.holds_dates or self.is_categorical:
            return False
        return sum(len(value.split()) > 1 for value in self.counts) > MOSTLY * len(self.counts)

    @cached_property
    def holds_dates(self) -> bool:
        """True if all values look like dates."""
        return bool(self.counts) and all(_DATE.fullmatch(value) for value in self.counts)

    @cached_property
    def is_number_of_row(self) -> bool:
        """True if the values are whole numbers that rise by one from row to row."""
        if len(self.values) < FEWEST_ROWS or not all(v.isdecimal() for v in self.values):
            return False
        numbers = list(map(int, self.values))
        return all(b - a == 1 for a, b in pairwise(numbers))

    @property
    def names_rows(self) -> bool:
        """True if the column most likely names the rows."""
        if self.is_number_of_row:
            return True
        all_differ = len(self.counts) == len(self.values) > 1
        if not all_differ or self.holds_dates:
            return False
        return self._called_id or not (self.is_numeric or self.holds_texts)

    @cached_property
    def orders_rows(self) -> bool:
        """True for dates by which a sweep can order the rows."""
        return self.holds_dates and not self.n_missing and all(map(is_date, self.counts))

    @cached_property
    def hardly_known(self) -> bool:
        """True if so many values are missing that a training part might hold none."""
        return self.n_missing > 0 and self.counts.total() < FEWEST_VALUES

    @property
    def names_subjects(self) -> bool:
        """True if the column most likely says whose the rows are, several of one patient or so."""
        if not (self._called_id or self._called_subject) or self.holds_dates or self.holds_texts:
            return False
        return FEWEST_GROUPS <= len(self.counts) < self.counts.total()

    @property
    def _called_subject(self) -> bool:
        """True if the name is that of somebody of whom there may be several rows."""
        return _SUBJECT.fullmatch(self.name.casefold()) is not None

    @property
    def _called_id(self) -> bool:
        """True if the name says that the column names the rows."""
        if self.name == UNNAMED:
            return True
        return re.search(r"(^|[_ -])id$|^id([_ -]|$)", self.name.casefold()) is not None

    @property
    def repeated(self) -> str | None:
        """The value that occurs most often, in a column that all but names the rows; else None."""
        if self.holds_dates or self.holds_texts or self.names_rows:
            return None
        if self.is_numeric and not self._called_id:
            return None
        if len(self.counts) < NEARLY * len(self.values) or len(self.values) < FEWEST_ROWS:
            return None
        value, count = self.counts.most_common(1)[0]
        return value if count > 1 else None

    @property
    def is_categorical(self) -> bool:
        """True if the column holds few different texts."""
        few = len(self.counts) <= min(MOST_CATEGORIES, len(self.values) // 2)
        return not self.is_numeric and few and not self.holds_dates

    @property
    def is_regression(self) -> bool:
        """True if the column, as a label, most likely holds real values."""
        numbers = [finite_number(value) for value in self.counts]
        return None not in numbers and len(numbers) > MOST_CLASSES

    @property
    def alike(self) -> list[tuple[str, ...]]:
        """Values that differ in capitals alone."""
        folded: dict[str, list[str]] = {}
        for value in self.counts:
            folded.setdefault(value.casefold(), []).append(value)
        return [tuple(values) for values in folded.values() if len(values) > 1]


@dataclass(frozen=True)
class TableProfile:
    """Columns of a table by name, and their roles."""

    columns: Mapping[str, Column]
    label: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[self.label].values)

    @property
    def others(self) -> list[Column]:
        """Columns other than the label."""
        return [column for column in self.columns.values() if column.name != self.label]

    @cached_property
    def row_names(self) -> str | None:
        """The first column that names the rows one by one, None if there is none."""
        return next((column.name for column in self.others if column.names_rows), None)

    @cached_property
    def groups(self) -> Column | None:
        """The column that says whose the rows are, None if there is none."""
        found = [c for c in self.others if c.names_subjects and c.name != UNNAMED]
        of_subjects = [c for c in found if c._called_subject]
        return max(of_subjects or found, key=lambda c: len(c.counts), default=None)

    @property
    def id(self) -> str | None:
        """The column of names for predictions: that of rows, else that of groups, else None."""
        return self.row_names or (self.groups.name if self.groups else None)

    @property
    def _named(self) -> set[str | None]:
        """Columns of names of rows and of groups."""
        return {self.id, self.groups.name if self.groups else None}

    @cached_property
    def categorical(self) -> list[Column]:
        """Columns of few different texts."""
        return [c for c in self.others if c.is_categorical and c.name not in self._named]

    @cached_property
    def ignored(self) -> list[Column]:
        """Columns of which no feature can be made: dates, texts, names of rows, hardly a value."""
        return [
            c for c in self.others
            if c.name not in self._named and not c.is_categorical
            and (c.names_rows or c.hardly_known or c.name == UNNAMED or not c.is_numeric)
        ]  # fmt: skip

    @cached_property
    def features(self) -> list[Column]:
        """Columns of numbers."""
        left_out = self._named | {c.name for c in (*self.ignored, *self.categorical)}
        return [c for c in self.others if c.name not in left_out]

    @property
    def n_features(self) -> int:
        """Number of features that columns of numbers and of categories make."""
        of_categories = sum(len(c.counts) + (c.n_missing > 0) for c in self.categorical)
        return len(self.features) + of_categories

    @property
    def missing(self) -> tuple[int, int]:
        """Numbers of rows and of columns of numbers that miss values."""
        columns = [c for c in self.features if c.n_missing]
        rows = {row for c in columns for row, value in enumerate(c.values) if value not in c.counts}
        return len(rows), len(columns)


def read_columns(path: Path) -> dict[str, Column]:
    """Return the columns of a table as texts; none of a file that holds arrays."""
    where = str(path)
    with open_source(path, where) as table:
        if not isinstance(table, Table):
            return {}
        check_names(table.names, where)
        values: dict[str, list[str]] = {name: [] for name in table.names}
        for frame, row_labels in table.read(table.names, rows_at_once(8 * len(values))):
            for name, found in values.items():
                found += frame_texts(frame[name], where, row_labels)
        n_rows = len(values[table.names[0]])
        table.problems.check(n_rows)
    if not n_rows:
        raise DataError(where, "a header and no rows", "at least one row of each class", REWRITE)
    return {name: Column(name, tuple(found)) for name, found in values.items()}


def likely_label(columns: Mapping[str, Column]) -> str | None:
    """Return the one column that is called as label columns are, None if there is none."""
    likely = [name for name in columns if name.casefold() in LABEL_NAMES]
    return likely[0] if len(likely) == 1 else None


def possible_labels(columns: Mapping[str, Column]) -> list[str]:
    """Return the columns whose values may be labels, those of fewest different values first."""
    possible = [c for c in columns.values() if len(c.counts) > 1 and not c.names_rows]
    return [c.name for c in sorted(possible, key=lambda c: len(c.counts)) if not c.holds_dates]


def check_label(columns: Mapping[str, Column], label: str, where: str) -> None:
    """Refuse a label column that the table does not have."""
    if label not in columns:
        raise DataError(
            where,
            f"no column {label!r}",
            "the name of the label column",
            nearest(label, columns) or f"Choose one of {', '.join(possible_labels(columns))}",
        )
