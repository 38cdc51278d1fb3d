"""CSV files: a header, then rows of features and a label, separated by comma, semicolon or tab."""

from __future__ import annotations

import io
import math
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from mkldist.core.wording import in_lines
from mkldist.data.columns import ColumnChoice, check_names, column_roles
from mkldist.data.csv_rows import LONG_TEXTS, Rows, csv_rows
from mkldist.data.missing import MISSING_VALUES
from mkldist.data.opening import REWRITE, opened
from mkldist.data.raw import RawData
from mkldist.data.table_problems import TableProblems
from mkldist.data.tables import of_table
from mkldist.errors import DataError

SEPARATORS = (",", ";", "\t")
BOOLEANS = {"true": 1.0, "false": 0.0}
UNNAMED = "Unnamed: 0"  # as pandas calls the column of its index, whose name it writes as blank


def read_csv(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read a CSV file with a header, plain or gzipped.

    Empty fields and ``NA``, ``NaN``, ``?``, ``null``, ``None`` in feature columns are missing
    values; ``true`` and ``false`` are 1 and 0.  Blank lines are skipped.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    choice : ColumnChoice
        The label column, and others that are no features of numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If the file is empty or damaged, lacks a header or a label column, or has rows of another
        length or text in feature columns; one message names all of these and their lines.
    """
    with opened_csv(path, where) as (names, rows):
        return _read_table(names, rows, choice, where)


@contextmanager
def opened_csv(path: Path, where: str) -> Iterator[tuple[list[str], Rows]]:
    """Open a CSV file; yield the names of its columns, and its rows with their lines.

    Rows have the fields that stand in the file, blank lines none.

    Raises
    ------
    DataError
        If the file is absent, empty or damaged or lacks a header; also inside the ``with`` block.
    """
    with opened(path, where) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        first = text.readline()
        if not first:
            raise DataError(where, "an empty file", "a table with a header and rows", REWRITE)
        with LONG_TEXTS:
            rows = csv_rows(chain([first], text), _separator(first), where)
            _, header = next(rows, (1, []))
            names = header_names(header)
            if not any(names):
                raise DataError(
                    where, "a blank first line", "a header of column names", "Remove the blank line"
                )
            _check_header(names, where)
            yield names, rows


def header_names(fields: Sequence[str]) -> list[str]:
    """Return the names of columns; one that alone is blank, at the beginning, is :data:`UNNAMED`.

    Examples
    --------
    >>> header_names(["", " age", "label"])
    ['Unnamed: 0', 'age', 'label']
    """
    names = [name.strip() for name in fields]
    if len(names) > 1 and not names[0] and all(names[1:]) and UNNAMED not in names:
        names[0] = UNNAMED
    return names


def _separator(header: str) -> str:
    return max(SEPARATORS, key=header.count)


def _read_table(names: Sequence[str], rows: Rows, choice: ColumnChoice, where: str) -> RawData:
    check_names(names, where)
    roles = column_roles(names, choice, where)
    if names[0] == UNNAMED and 0 in roles.features:
        raise _index_as_feature(where)
    others = sorted(set(range(len(names))) - set(roles.features), reverse=True)
    words: dict[int, list[str]] = {position: [] for position in others}
    features, values = roles.feature_names, array("d")
    problems, lines = TableProblems(where, len(names)), array("q")
    for line, fields in rows:
        if not fields:
            continue
        lines.append(line)
        if len(fields) != len(names):
            problems.ragged(line, len(fields))
            continue
        for position in others:
            words[position].append(fields.pop(position).strip())
        values.fromlist(numbers(fields, features, line, problems))
    n_rows = len(lines)
    if not n_rows:
        raise DataError(where, "a header and no rows", "at least one row of each class", REWRITE)
    problems.check(n_rows)
    x = np.frombuffer(values, dtype=np.float64).reshape(n_rows, len(features))
    texts = {names[position]: words[position] for position in others}
    labels = np.array(words[roles.label] if roles.label is not None else [""] * n_rows)
    return replace(of_table(roles, labels, x, texts, where), row_labels=in_lines(lines))


def _index_as_feature(where: str) -> DataError:
    """Return the error for a column of row numbers that would be learnt from."""
    return DataError(
        where,
        "no name of column 1, as pandas and R write the names of rows",
        "a name or a role for every column",
        f'Set id = "{UNNAMED}" if it names the rows, else ignore = ["{UNNAMED}"]; or write the '
        "table without it (index=False in pandas, row.names=FALSE in R)",
    )


def _check_header(names: Sequence[str], where: str) -> None:
    """Refuse a first line that looks like data: read as a header, its row would be lost.

    pandas names columns by their positions, so a number equal to its column's position is a name.
    """
    numbers = [
        name
        for position, name in enumerate(names)
        if name != str(position)
        and (_number(name) is not None or name.casefold() in MISSING_VALUES)
    ]
    if 2 * len(numbers) > len(names):
        raise DataError(
            f"{where}, line 1",
            f"numbers ({', '.join(numbers[:3])}, …) where column names should stand",
            "a header",
            "Add a line of column names; or, if these are names, put a letter before each",
        )


def numbers(
    fields: Sequence[str], features: Sequence[str], line: int, problems: TableProblems
) -> list[float]:
    """Return the features of a row, with NaN for missing values; keep what is no number."""
    try:
        row = list(map(float, fields))
    except ValueError:
        plain = False
    else:
        # Python reads 1_000 as a number; other programs do not, so that it may well be a mistake.
        plain = "_" not in "".join(fields)
    if plain:
        return row
    row = []
    for text, name in zip(fields, features, strict=True):
        value = _value(text)
        if value is None:
            problems.no_number(name, line, text)
        row.append(math.nan if value is None else value)
    return row


def _value(text: str) -> float | None:
    """Return a number, 1 for true, 0 for false, NaN for a missing value; None for other text."""
    number = _number(text)
    if number is not None:
        return number
    word = text.strip().casefold()
    return math.nan if word in MISSING_VALUES else BOOLEANS.get(word)


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
