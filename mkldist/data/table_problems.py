"""Mistakes in the rows of a table, gathered while it is read, for one message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mkldist.core.wording import pluralize, truncate
from mkldist.errors import DataError

SHOWN = 8
DECIMALS = "Write decimals with a point"
NUMBERS = "a number, or an empty field for a missing value"
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?")


@dataclass
class _Column:
    """Values of a feature column that are no numbers."""

    line: int
    text: str
    count: int = 0

    @property
    def kind(self) -> str:
        return "dates" if is_date_text(self.text) else "text"


@dataclass
class TableProblems:
    """Rows of another length than the header, and values that are no numbers.

    Parameters
    ----------
    where : str
        The file, to name in the message.
    n_fields : int
        Fields of the header.
    """

    where: str
    n_fields: int
    _ragged: list[tuple[int, int]] = field(default_factory=list)
    _columns: dict[str, _Column] = field(default_factory=dict)

    def ragged(self, line: int, n_fields: int) -> None:
        """Keep a row that has another number of fields than the header."""
        self._ragged.append((line, n_fields))

    def no_number(self, column: str, line: int, text: str) -> None:
        """Keep a value of a feature column that is no number."""
        self._columns.setdefault(column, _Column(line, text.strip())).count += 1

    @property
    def has_decimal_commas(self) -> bool:
        """True if a column holds numbers with a decimal comma."""
        return any(decimal_comma(column.text) for column in self._columns.values())

    def check(self, n_rows: int) -> None:
        """Raise if there are any; a single one by its line.

        Parameters
        ----------
        n_rows : int
            Rows that were read, to tell a column of text from a slip.

        Raises
        ------
        DataError
            One message about all of them.
        """
        counts = [column.count for column in self._columns.values()]
        if not counts and not self._ragged:
            return
        if len(self._ragged) + sum(counts) == 1:
            raise self._single(n_rows)
        found = [
            f"{column.kind} in column {name!r} ({column.count} of {n_rows} rows, such as "
            f"{column.text!r} in line {column.line})"
            for name, column in self._columns.items()
        ]
        expected = [NUMBERS] if found else []
        if self._ragged:
            line, n_fields = self._ragged[0]
            found.append(
                f"{pluralize(len(self._ragged), 'row')} of another length than the header, the "
                f"first of {pluralize(n_fields, 'field')} in line {line}"
            )
            expected.append(f"{self.n_fields} fields in every row")
        hints = self._hints(n_rows) + ([_SEPARATORS] if self._ragged else [])
        raise DataError(self.where, truncate(found, SHOWN), "; ".join(expected), ". ".join(hints))

    def _single(self, n_rows: int) -> DataError:
        """Return the error of one row or value."""
        if self._ragged:
            [(line, n_fields)] = self._ragged
            return DataError(
                f"{self.where}, line {line}",
                pluralize(n_fields, "field"),
                f"{self.n_fields}, as in the header",
                _SEPARATORS,
            )
        [(name, column)] = self._columns.items()
        return DataError(
            f"{self.where}, line {column.line}, column {name!r}",
            f"{'a date' if column.kind == 'dates' else 'text'} {column.text!r}",
            NUMBERS,
            ". ".join(self._hints(n_rows)),
        )

    def _hints(self, n_rows: int) -> list[str]:
        """Return what to do about columns: slips are corrected, other columns get a role."""
        whole = {name: c for name, c in self._columns.items() if 2 * c.count >= n_rows}
        slips = [name for name in self._columns if name not in whole]
        commas = [name for name, c in self._columns.items() if decimal_comma(c.text)]
        dates = [name for name, c in whole.items() if c.kind == "dates"]
        words = [name for name in whole if name not in dates and name not in commas]
        slips = [name for name in slips if name not in commas]
        hints = [DECIMALS] if commas else []
        if words:
            hints.append(
                f"Set categorical = [{_listed(words)}] to encode these, texts = [{_listed(words)}] "
                "for kernels of texts, or ignore them"
            )
        if dates:
            hints.append(
                f"Set ignore = [{_listed(dates)}], or turn dates into numbers of days; [splits] of "
                f'kind = "time" with order = "{dates[0]}" tests later rows by earlier ones'
            )
        if slips:
            hints.append(f"Correct or empty these fields, or set ignore = [{_listed(slips)}]")
        return hints


_SEPARATORS = "Look for a missing or extra separator, or for unquoted text with a separator"


def is_date_text(text: str) -> bool:
    """Return True for a text that looks like a date, such as ``31.3.2021``."""
    return _DATE.fullmatch(text) is not None


def decimal_comma(text: str) -> bool:
    """Return True for a number with a decimal comma, such as ``1,5``."""
    return "," in text and text.replace(",", "").strip("+-").isdigit()


def _listed(names: Sequence[str]) -> str:
    return truncate([f'"{name}"' for name in names], SHOWN)
