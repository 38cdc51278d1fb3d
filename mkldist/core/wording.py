"""Names and numbers for people: with nouns, cut lists, names of rows, the order of names.

A row of a text file is named by its line, the header's being line 1; a row of another file counts
from 1; a row of an array or a table in Python is a position from 0, and said to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Ints

if TYPE_CHECKING:
    import pandas as pd


SHOWN_PASSWORD = (
    "a URL with a password, which results and messages would show",
    "a URL without one",
    "Give the password in fsspec's configuration or in the variables of the store",
)
"""What an error says of such a URL: what is found, what is expected, what to do."""


def has_password(place: str) -> bool:
    """Return whether a URL holds a password, which messages, records and reports would show."""
    return re.search(r"://[^/?#]*:[^/?#]*@", place) is not None


def html_of(title: str, facts: Mapping[str, object], *tables: pd.DataFrame) -> str:
    """Return facts and tables as HTML for a notebook, escaped; long tables are cut."""
    import pandas as pd

    rows = pd.DataFrame({title: map(str, facts.values())}, index=list(facts))
    with pd.option_context("display.max_colwidth", None):
        return rows.to_html() + "".join(one.to_html(index=False, max_rows=10) for one in tables)


def pluralize(count: int, noun: str, nouns: str = "") -> str:
    """Return a number and its noun; `nouns` is the plural, by default with an s.

    >>> pluralize(1, "field"), pluralize(0, "field"), pluralize(2, "Gram matrix", "Gram matrices")
    ('1 field', '0 fields', '2 Gram matrices')
    """
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"


def truncate(items: Sequence[str], most: int, rest: str = "more") -> str:
    """Return up to `most` items as text, then the number of the others with the word `rest`.

    >>> truncate(["age", "size", "time"], 2), truncate(["age", "size"], 2)
    ('age, size, … 1 more', 'age, size')
    """
    shown = list(items[:most])
    if len(items) > most:
        shown.append(f"… {len(items) - most} {rest}")
    return ", ".join(shown)


@dataclass(frozen=True, eq=False)
class RowLabels:
    """How messages name the rows of a source: a word, a note on how they count, and numbers.

    Rows are numbered from `start` where `numbers`, (n,), is None.

    >>> FROM_ZERO.of(2), FROM_ONE.of(2), in_lines([2, 3, 5]).of(2)
    ('row 2 (from 0)', 'row 3 (from 1)', 'line 5')
    """

    word: str = "row"
    note: str = " (from 0)"
    start: int = 0
    numbers: Ints | None = None

    def of(self, row: int) -> str:
        """Return the name of the row at a position, from 0."""
        return f"{self.word} {self._number(row)}{self.note}"

    def names(
        self, rows: Iterable[int], ids: Sequence[str] | npt.NDArray[np.str_] | None = None
    ) -> list[str]:
        """Return the names of some rows, the first with the note; their ids if they have some.

        >>> FROM_ZERO.names([0, 2]), FROM_ZERO.names([0, 2], ["p1", "p2", "p3"])
        (['row 0 (from 0)', 'row 2'], ['p1', 'p3'])
        """
        if ids is not None:
            return [str(ids[row]) for row in rows]
        named = [f"{self.word} {self._number(row)}" for row in rows]
        return [name + self.note * (place == 0) for place, name in enumerate(named)]

    def chosen(self, rows: Ints) -> RowLabels:
        """Return the labels of some of the rows."""
        numbers = self.start + rows if self.numbers is None else self.numbers[rows]
        return replace(self, numbers=numbers)

    def after(self, count: int) -> RowLabels:
        """Return the labels of the rows that follow the first ones."""
        if self.numbers is None:
            return replace(self, start=self.start + count)
        return replace(self, numbers=self.numbers[count:])

    def _number(self, row: int) -> int:
        return self.start + row if self.numbers is None else int(self.numbers[row])


FROM_ZERO = RowLabels()
"""Rows of arrays and tables in Python."""

FROM_ONE = RowLabels(note=" (from 1)", start=1)
"""Rows of files that have no lines."""


def in_lines(lines: Sequence[int]) -> RowLabels:
    """Return the labels of rows that stand in these lines of a file."""
    return RowLabels("line", "", numbers=np.asarray(lines, dtype=np.intp))


_NUMBER = re.compile(r"(\d+)")


def natural_key(name: str) -> tuple[tuple[str, int, str], ...]:
    """Return a key by which names sort naturally.

    >>> sorted(["m1000", "m300", "level", "m20"], key=natural_key)
    ['level', 'm20', 'm300', 'm1000']
    """
    texts = _NUMBER.split(name)[::2]
    numbers = [*_NUMBER.findall(name), ""]
    # The digits themselves tell m01 from m1, which are equal as numbers.
    return tuple((text, int(n or -1), n) for text, n in zip(texts, numbers, strict=True))


def natural_path_key(path: str) -> tuple[tuple[tuple[str, int, str], ...], ...]:
    """Return a key by which paths sort naturally, name by name."""
    return tuple(map(natural_key, path.split("/")))
