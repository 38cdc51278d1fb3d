"""CSV files: a header, then rows of features and a label, separated by comma, semicolon or tab.

Rows are read by Python's csv module, which, unlike pandas, tells rows of another length from those
with empty fields, and the line of each.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.core.wording import RowLabels, in_lines
from mkldist.data.checks import MISSING_VALUES
from mkldist.data.labels import finite_number
from mkldist.data.opening import REWRITE, opened
from mkldist.data.tables import UNNAMED, Table, TableProblems
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

EXTENSIONS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
SEPARATORS = (",", ";", "\t")
LONGEST_TEXT = 2**26  # characters; an open quotation mark ends before it fills the memory


@contextmanager
def open_csv(path: Path, where: str) -> Iterator[Table]:
    """Open a CSV file with a header, plain or gzipped, in UTF-8.

    Blank lines are skipped.  A single column without a name, at the beginning, is called as pandas
    calls it.  A file without a header is refused, and also inside the ``with`` block a damaged one.
    """
    with opened(path, where) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        first = text.readline()
        if not first:
            expected = "a table with a header and rows"
            raise DataError(where, "an empty file", expected, REWRITE)
        separator = max(SEPARATORS, key=first.count)
        rows = csv_rows(chain([first], text), separator, where)
        names = [name.strip() for name in next(rows, (1, []))[1]]
        if len(names) > 1 and not names[0] and all(names[1:]) and UNNAMED not in names:
            names[0] = UNNAMED
        if not any(names):
            expected = "a header of column names"
            raise DataError(where, "a blank first line", expected, "Remove the blank line")
        _check_header(names, where)
        problems = TableProblems(where, len(names))

        def read(columns: Sequence[str], count: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
            import pandas as pd

            filled = ((line, fields) for line, fields in rows if fields)
            while block := list(islice(filled, count)):
                for line, fields in block:
                    if len(fields) != len(names):
                        problems.ragged(line, len(fields))
                whole = [(line, fields) for line, fields in block if len(fields) == len(names)]
                frame = pd.DataFrame([f for _, f in whole], columns=names, dtype=object)
                yield frame[list(columns)], in_lines([line for line, _ in whole])

        yield Table(tuple(names), read, problems)


def csv_rows(lines: Iterable[str], separator: str, where: str) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the rows of a CSV file, each with its last line; blank lines have no fields.

    >>> list(csv_rows(['a,"b\n', 'c"\n', "\n"], ",", "t.csv"))
    [(2, ['a', 'b\nc']), (3, [])]
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_TEXT))  # a field may be a document
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


def _check_header(names: Sequence[str], where: str) -> None:
    """Refuse a first line that looks like data: read as a header, its row would be lost.

    pandas names columns by their positions, so a number equal to its column's position is a name.
    """
    numbers = [
        name
        for position, name in enumerate(names)
        if name != str(position)
        and (finite_number(name) is not None or name.casefold() in MISSING_VALUES | {"inf"})
    ]
    if 2 * len(numbers) > len(names):
        raise DataError(
            f"{where}, line 1",
            f"numbers ({', '.join(numbers[:3])}, …) where column names should stand",
            "a header",
            "Add a line of column names; or, if these are names, put a letter before each",
        )
