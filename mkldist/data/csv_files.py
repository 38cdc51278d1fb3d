"""Text tables: a header, then rows of features and a label, separated as in CSV files.

Rows are read by Python's csv module, which, unlike pandas, tells rows of another length from those
with empty fields, and the line of each.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from mkldist.core.wording import RowLabels, in_lines, pluralize, truncate
from mkldist.data.checks import MISSING_VALUES, numbered_features
from mkldist.data.labels import finite_number
from mkldist.data.opening import REWRITE, opened
from mkldist.data.tables import LABEL_NAMES, PLAIN, UNNAMED, Table, TableProblems
from mkldist.errors import DataError
from mkldist.spec.datasets import WHITE_SPACE, TableFormat

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = (",", ";", "\t")
LONGEST_TEXT = 2**26  # characters; an open quotation mark ends before it fills the memory
LOOKED_AT = 200  # first rows by which a header is told from a row
LOOKED_AT_CELLS = 2**17  # of wide tables, but ten rows at least
BEGINNING = 2**24  # bytes by which an encoding is told
SHOWN = 4
COMMENTS = ("#", "%")
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*')  # of Excel
_LONG = 20  # characters of a text, such as a sequence, that is no name
Rows = Iterator[tuple[int, list[Any]]]  # each with its line
_COMMA = re.compile(r"[-+]?\d*,\d+")
_POINT = re.compile(r"[-+]?\d*\.(\d{1,2}|\d{4,})|[-+]?\d+(,\d{3}){2,}.*")  # no sign of thousands


@contextmanager
def open_csv(
    path: Path,
    where: str,
    format: TableFormat = PLAIN,
    may_lack: str = "",
    known: Collection[str | None] = (),
) -> Iterator[Table]:
    """Open a text table, plain or gzipped, as its format says.

    Blank lines are skipped.  A column of row names without a name, at the beginning, is called as
    pandas calls it.  A first line that looks like a row, and has no name of a column that is
    `known`, is refused where a header is expected, and inside the ``with`` block a damaged file.
    """
    notes: list[str] = []
    with (
        opened(path, where) as stream,
        io.TextIOWrapper(
            stream, encoding=format.encoding or _encoding(stream, notes), newline=""
        ) as text,
    ):
        lines, separator, quote = _plain_lines(text, format, where, notes)
        filled = ((n, fields) for n, fields in csv_rows(lines, separator, where, quote) if fields)
        names, rows = named_columns(filled, format, where, may_lack, known, notes)
        yield table_of_rows(names, rows, where, notes)


def table_of_rows(
    names: Sequence[str], rows: Rows, where: str, notes: Sequence[str], part: str = ""
) -> Table:
    """Return the table of rows with their lines; those of another length are problems."""
    problems = TableProblems(where, len(names))

    def read(columns: Sequence[str], count: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
        import pandas as pd

        while block := list(islice(rows, count)):
            whole = [(line, fields) for line, fields in block if len(fields) == len(names)]
            for line, fields in block if len(whole) < len(block) else ():
                if len(fields) != len(names):
                    problems.ragged(line, len(fields))
            cells = np.empty((len(whole), len(names)), dtype=object)  # of which columns are fast
            cells[:] = [fields for _, fields in whole] if whole else cells
            frame = pd.DataFrame(cells, columns=list(names), dtype=object)
            yield frame[list(columns)], in_lines([line for line, _ in whole])

    return Table(tuple(names), read, problems, notes=tuple(notes), part=part)


def _plain_lines(
    lines: Iterable[str], format: TableFormat, where: str, notes: list[str]
) -> tuple[Iterator[str], str, str]:
    """Return the lines of a table, blank for those that are no part of it, separator and quote."""
    lines = iter(lines)
    head = list(islice(lines, LOOKED_AT))
    if not head:
        expected = "a table with a header and rows"
        raise DataError(where, "an empty file", expected, REWRITE)
    separator, skipped = format.separator, format.comment
    if not head[0].strip():
        expected = "a header of column names"
        raise DataError(where, "a blank first line", expected, "Remove the blank line")
    given = _SEPARATOR_LINE.fullmatch(head[0])
    if given:
        separator, head[0] = separator or given[1], "\n"
        notes.append(f"its first line names the separator {given[1]!r}")
    lines = chain(head, lines)
    if skipped is not None:
        lines = ("\n" if line.startswith(skipped) else line for line in lines)
        head = [line for line in head if not line.startswith(skipped)]
    head = [line for line in head if line.strip()]
    if skipped is None and (sign := _sign_of_comments(head)):
        expected, hint = "a header or a row", f'Set comment = "{sign}" to skip such lines'
        raise DataError(f"{where}, line 1", f"a comment ({head[0].strip()!r:.60})", expected, hint)
    if separator is None:
        separator = _likely_separator(head)
        if separator == WHITE_SPACE:
            notes.append("its fields are separated by white space")
    if separator == WHITE_SPACE:
        return map(_with_tabs, lines), "\t", '"'
    return lines, separator, _quote(head, separator, notes)


def _quote(lines: Sequence[str], separator: str, notes: list[str]) -> str:
    """Return the quotation mark of first lines; note it, and comments that end some of them."""
    comment = re.compile(rf"\s(#[^{re.escape(separator)}\"']*)$")
    marked = [line.rstrip() for line in lines if "#" in line]
    tails = [found[1] for line in marked if (found := comment.search(line))]
    if 0 < len(tails) < len(lines) - 1:
        notes.append(f"some rows end in what may be a comment ({tails[0]!r:.30}): it is in a value")
    if any(not re.fullmatch("'.*'", name.strip()) for name in lines[0].split(separator)):
        return '"'
    notes.append("its fields are in single quotes")
    return "'"


def likely_format(
    path: Path, where: str, header: bool | None = None, known: Collection[str | None] = ()
) -> TableFormat:
    """Return how a text table most likely is written, where open_csv would have to be told."""
    keys: dict[str, Any] = {} if header is None else {"header": header}
    with opened(path, where) as stream:
        start = stream.read(BEGINNING)
        stream.seek(0)
        marked = _encoding(stream, [])
        for encoding in (marked, "cp1252", "latin-1"):
            with suppress(UnicodeDecodeError):
                text = codecs.getincrementaldecoder(encoding)().decode(start)
                keys |= {} if encoding == marked else {"encoding": encoding}
                break
    first_lines = list(islice(io.StringIO(text, newline=""), LOOKED_AT))
    sign = _sign_of_comments([line for line in first_lines if line.strip()])
    if sign:
        keys["comment"] = sign
    with open_csv(path, where, TableFormat(**{**keys, "header": False})) as table:
        frame, _ = next(table.read(table.names, _n_looked_at(len(table.names))))
        first, *rows = frame.to_numpy().tolist()
    if header is None and looks_like_row([name.strip() for name in first], rows, known):
        keys["header"] = False
    _, separator, _ = _plain_lines(first_lines, TableFormat(**keys), where, [])
    cells = {cell.strip() for row in rows for cell in row} if separator == ";" else set()
    if any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells)):
        keys["decimal"] = ","
    return TableFormat(**keys)


def _encoding(stream: BinaryIO, notes: list[str]) -> str:
    """Return UTF-8, or UTF-16 of a stream with its mark, or with a NUL in most pairs of bytes."""
    start = stream.read(64)
    stream.seek(0)
    firsts, seconds = start[::2].count(0), start[1::2].count(0)
    found = "utf-8-sig"
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        found = "utf-16"
    elif 4 * max(firsts, seconds) > len(start) and not min(firsts, seconds):
        found = "utf-16-be" if firsts else "utf-16-le"
    if found != "utf-8-sig":
        notes.append("it is written in UTF-16")
    return found


def _sign_of_comments(lines: Sequence[str]) -> str:
    """Return the sign of first lines that are no header and no row of those after it, or ""."""
    sign = lines[0][:1] if lines else ""
    others = [line for line in lines if not line.startswith(sign)]
    if not others or sign not in COMMENTS:
        return ""
    separator, last = _likely_separator(others), lines[lines.index(others[0]) - 1]
    return sign if _n_fields(last, separator) != _n_fields(others[0], separator) else ""


def _n_fields(line: str, separator: str) -> int:
    return len(line.split(None if separator == WHITE_SPACE else separator))


def _likely_separator(lines: Sequence[str]) -> str:
    """Return the separator of the first line that all lines have as often, else most often."""
    counts = {one: [line.count(one) for line in lines] for one in SEPARATORS}
    found = {one: own for one, own in counts.items() if own and own[0]}
    if not found:
        widths = {len(line.split()) for line in lines}
        if min(widths, default=1) > 1 and len(widths) <= 2:
            return WHITE_SPACE
        found = {one: own for one, own in counts.items() if own and own[-1]} or {",": [1]}
        return max(found, key=lambda one: found[one][-1])
    return max(found, key=lambda one: (len({*found[one]}) == 1, found[one][0]))


def _with_tabs(line: str) -> str:
    """Return a line with a tab in place of white space that is not quoted."""
    parts = line.strip().split('"')
    parts[::2] = [re.sub(r"\s+", "\t", part) for part in parts[::2]]
    return '"'.join(parts) + "\n"


def named_columns(
    rows: Rows,
    format: TableFormat,
    where: str,
    may_lack: str,
    known: Collection[str | None],
    notes: list[str],
) -> tuple[list[str], Rows]:
    """Return the names of the columns, and the rows below the header."""
    line, first = next(rows, (1, []))
    names, given = list(map(cell_text, first)), list(format.names)
    if not any(names):
        raise DataError(where, "no names and no rows", "a header of column names", REWRITE)
    looked_at = list(islice(rows, _n_looked_at(len(names))))
    if format.header is False or (given and format.header is None):
        looked_at.insert(0, (line, first))
        names = list(numbered_features(len(names), where))
    else:
        below = [fields for _, fields in looked_at]
        is_short = {len(fields) for fields in below} == {len(names) + 1}
        if is_short and not any(cell_text(fields[-1]) for fields in below):
            notes.append("its rows, not its header, end with a separator, which is dropped")
            looked_at, rows = list(_shortened(looked_at, len(names))), _shortened(rows, len(names))
        elif is_short and len({cell_text(fields[0]) for fields in below}) == len(below) > 1:
            names = [UNNAMED, *names]
            notes.append("its header is one short, as R writes it: rows begin with their names")
        elif len(names) > 1 and not names[0] and all(names[1:]) and UNNAMED not in names:
            names[0] = UNNAMED
        elif format.header is None:
            _check_length(names, below, f"{where}, line {line}")
            if looks_like_row(names, below, known):  # read as a header, it would be lost
                listed = truncate([repr(name) for name in names], SHOWN)
                raise DataError(
                    f"{where}, line {line}",
                    f"what looks like a row ({listed}: numbers, or values of their own columns) "
                    "where column names should stand",
                    "a header",
                    "Set header = false, and perhaps names = [...]; or header = true if these are "
                    "names; or add a line of column names",
                )
    if len(given) == len(names) + 1 and may_lack in given:
        given.remove(may_lack)
    if given and len(given) != len(names):
        found = f"{pluralize(len(given), 'name')} of {pluralize(len(names), 'column')}"
        raise DataError(f"{where}: names", found, "a name for each", "Correct names")
    return given or names, chain(looked_at, rows)


def _n_looked_at(n_columns: int) -> int:
    """Return the number of first rows by which a header is told from a row."""
    return min(LOOKED_AT, max(10, LOOKED_AT_CELLS // n_columns))


def _shortened(rows: Iterable[tuple[int, list[str]]], n_fields: int) -> Rows:
    """Yield rows of so many fields, without an empty one after them."""
    for line, fields in rows:
        ends = len(fields) == n_fields + 1 and not cell_text(fields[-1])
        yield line, fields[:-1] if ends else fields


def cell_text(cell: Any) -> str:
    """Return the text of a cell without blanks around it."""
    return "" if cell is None else str(cell).strip()


def csv_rows(
    lines: Iterable[str], separator: str, where: str, quote: str = '"'
) -> Iterator[tuple[int, list[str]]]:
    r"""Yield the rows of a CSV file, each with its last line; blank lines have no fields.

    >>> list(csv_rows(['a,"b\n', 'c"\n', "\n"], ",", "t.csv"))
    [(2, ['a', 'b\nc']), (3, [])]
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_TEXT))  # a field may be a document
    reader = csv.reader(lines, delimiter=separator, quotechar=quote, strict=True)
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


def _check_length(names: Sequence[str], rows: Sequence[Sequence[str]], where: str) -> None:
    """Refuse lines before a header: they have fewer fields than all rows after them."""
    widths = [len(names), *map(len, rows)]
    n_lines = next((i for i, width in enumerate(widths) if width == widths[-1]), 0)
    if len(names) < widths[-1] and n_lines < len(widths) - 1 and len({*widths[n_lines:]}) == 1:
        found = f"{names[0]!r:.40}, of {pluralize(len(names), 'field')}, above rows of {widths[-1]}"
        hint = f"Remove {pluralize(n_lines, 'line')} above the header, or set comment to skip them"
        raise DataError(where, found, "a header of column names", hint)


def looks_like_row(
    names: Sequence[str], rows: Sequence[Sequence[Any]], known: Collection[str | None] = ()
) -> bool:
    """Return True if a first line holds numbers, or values like those below it, in most columns.

    pandas names columns by their positions, so a number equal to its column's position is a name.
    A line with a `known` name of a column, or one of a label, which is no value below it, is none.
    """
    words = LABEL_NAMES - {"y"}  # which often stands for yes
    for place, name in enumerate(names):
        is_name = name in known or name.casefold() in words  # above wavelengths, for example
        if is_name and all(cell_text(row[place]) != name for row in rows if place < len(row)):
            return False
    step = max(1, len(names) // LOOKED_AT)
    names = names if step == 1 else [*names[::step], names[-1]]
    rows = rows if step == 1 else [[*row[::step], row[-1]] for row in rows]
    numbers = [
        name != str(place * step)
        and (finite_number(name) is not None or name.casefold() in MISSING_VALUES | {"inf"})
        for place, name in enumerate(names)
    ]
    columns = [{*map(cell_text, column)} for column in zip(*rows, strict=False)]
    if 2 * sum(numbers) > len(names):
        return True
    alike = [
        bool(name) and (name in own or _is_like(name, own))
        for name, own in zip(names, columns, strict=False)
    ]
    return any(alike) and 2 * sum(map(max, numbers, alike)) >= len(names)


def _is_like(name: str, values: Collection[str]) -> bool:
    """Return True if a name with digits, or a long one, is written like all values of a column."""
    shape = _shape(name)
    if len(values) < 2 or not (len(name) > _LONG or "9" in shape):
        return False
    return all(_shape(value) == shape for value in values)


def _shape(text: str) -> str:
    """Return a text with one letter or digit for each run of them, such as ``A9`` for S10."""
    return re.sub(r"[^\W\d]+", "A", re.sub(r"\d+", "9", text))
