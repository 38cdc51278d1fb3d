"""How messages name the rows of what a user gave.

A row of a text file is named by its line, the header's being line 1; a row of another file counts
from 1; a row of an array or a table in Python is a position from 0, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Ints


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """Where the rows of a source stand, in the words of messages.

    Parameters
    ----------
    word : str
        What a row is called.
    note : str
        How rows are counted; empty where the word says it.
    start : int
        Number of the first row, where `numbers` is None.
    numbers : (n,) intp, optional
        Number of each row; None for successive ones.

    Examples
    --------
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

        Examples
        --------
        >>> FROM_ZERO.names([0, 2])
        ['row 0 (from 0)', 'row 2']
        >>> FROM_ZERO.names([0, 2], ["p1", "p2", "p3"])
        ['p1', 'p3']
        """
        if ids is not None:
            return [str(ids[row]) for row in rows]
        named = [f"{self.word} {self._number(row)}" for row in rows]
        return [name + self.note * (place == 0) for place, name in enumerate(named)]

    def chosen(self, rows: Ints) -> RowPlaces:
        """Return the places of some of the rows.

        Examples
        --------
        >>> FROM_ONE.chosen(np.array([4, 7])).of(1)
        'row 8 (from 1)'
        """
        numbers = self.start + rows if self.numbers is None else self.numbers[rows]
        return replace(self, numbers=numbers)

    def after(self, count: int) -> RowPlaces:
        """Return the places of the rows that follow the first ones.

        Examples
        --------
        >>> FROM_ONE.after(100).of(0), in_lines([2, 3, 5]).after(1).of(1)
        ('row 101 (from 1)', 'line 5')
        """
        if self.numbers is None:
            return replace(self, start=self.start + count)
        return replace(self, numbers=self.numbers[count:])

    def _number(self, row: int) -> int:
        return self.start + row if self.numbers is None else int(self.numbers[row])


FROM_ZERO = RowPlaces()
"""Rows of arrays and tables in Python."""

FROM_ONE = RowPlaces(note=" (from 1)", start=1)
"""Rows of files that have no lines."""


def in_lines(lines: Sequence[int]) -> RowPlaces:
    """Return the places of rows that stand in these lines of a file."""
    return RowPlaces("line", "", numbers=np.asarray(lines, dtype=np.intp))
