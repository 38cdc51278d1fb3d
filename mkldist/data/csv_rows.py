"""Rows of texts of CSV files, whose quotes must be closed and whose texts may be long."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from threading import Lock
from types import TracebackType

from mkldist.errors import DataError

LONGEST_TEXT = 2**26  # characters; an open quotation mark ends before it fills the memory

Rows = Iterator[tuple[int, list[str]]]


class _LongTexts:
    """A context in which the csv module reads texts of up to :data:`LONGEST_TEXT` characters.

    By itself it refuses those of more than 131072, which one document can have.  Its limit is one
    of the whole process: it is lifted while a table is open in some thread, and no longer.
    """

    def __init__(self) -> None:
        self._lock, self._n_open, self._before = Lock(), 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._n_open:
                self._before = csv.field_size_limit()
                csv.field_size_limit(max(self._before, LONGEST_TEXT))
            self._n_open += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._n_open -= 1
            if not self._n_open:
                csv.field_size_limit(self._before)


LONG_TEXTS = _LongTexts()
"""The context in which to read :func:`csv_rows`."""


def csv_rows(lines: Iterable[str], separator: str, where: str) -> Rows:
    r"""Yield the rows of a CSV file, each with its last line; blank lines have no fields.

    Parameters
    ----------
    lines : iterable of str
        Lines of the file, with their ends.
    separator : str
        What separates fields.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        For a quotation mark that is not closed, naming the line in which its row begins.

    Examples
    --------
    >>> list(csv_rows(['a,"b\n', 'c"\n', "\n"], ",", "t.csv"))
    [(2, ['a', 'b\nc']), (3, [])]
    """
    reader = csv.reader(lines, delimiter=separator, strict=True)
    first = 1
    try:
        for fields in reader:
            yield reader.line_num, fields
            first = reader.line_num + 1
    except csv.Error as error:
        several = f"; read to line {reader.line_num}" if reader.line_num > first else ""
        raise DataError(
            f"{where}, line {first}",
            f"a line that is no row of a table ({error}{several})",
            "fields separated by one separator, quotes closed",
            "Close the quotation mark that is open here, and write one inside a quoted text twice",
        ) from error
