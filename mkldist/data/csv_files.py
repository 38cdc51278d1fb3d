"""CSV files: a header, then rows of features and a label, separated by comma, semicolon or tab."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from mkldist.data.columns import check_names, label_position
from mkldist.data.missing import MISSING_VALUES
from mkldist.data.opening import REWRITE, opened
from mkldist.data.raw import RawData
from mkldist.errors import DataError

SEPARATORS = (",", ";", "\t")


def read_csv(path: Path, label: str | int | None, where: str) -> RawData:
    """Read a CSV file with a header, plain or gzipped.

    Empty fields and ``NA``, ``NaN``, ``?``, ``null``, ``None`` in feature columns are missing
    values.  Blank lines are skipped.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    label : str, int or None
        Name or position of the label column; None means the last.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If the file is empty or damaged, lacks a header, or has a row of another length or text in a
        feature column; the message names the line.
    """
    with opened(path, where) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
        first = text.readline()
        if not first:
            raise DataError(where, "an empty file", "a table with a header and rows", REWRITE)
        reader = csv.reader(chain([first], text), delimiter=_separator(first), strict=True)
        try:
            return _read_table(reader, label, where)
        except csv.Error as error:
            raise DataError(
                f"{where}, line {reader.line_num}",
                f"not a row of a table ({error})",
                "fields separated by one separator, quotes closed",
                "Close the quotation mark that is open in or before this line",
            ) from error


def _separator(header: str) -> str:
    return max(SEPARATORS, key=header.count)


def _read_table(reader: Iterator[list[str]], label: str | int | None, where: str) -> RawData:
    names = [name.strip() for name in next(reader, [])]
    if not any(names):
        raise DataError(
            where, "a blank first line", "a header of column names", "Remove the blank line"
        )
    _check_header(names, where)
    check_names(names, where)
    position = label_position(names, label, where)
    features = names[:position] + names[position + 1 :]
    labels: list[str] = []
    values = array("d")
    for fields in reader:
        if not fields:
            continue
        line = f"{where}, line {reader.line_num}"  # type: ignore[attr-defined]
        if len(fields) != len(names):
            raise DataError(
                line,
                f"{len(fields)} fields",
                f"{len(names)}, as in the header",
                "Look for a missing or extra separator, or for unquoted text with a separator",
            )
        labels.append(fields.pop(position).strip())
        values.fromlist(_numbers(fields, features, line))
    if not labels:
        raise DataError(where, "a header and no rows", "at least one row of each class", REWRITE)
    x = np.frombuffer(values, dtype=np.float64).reshape(len(labels), len(features))
    return RawData(np.array(labels), x, tuple(features))


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


def _numbers(fields: list[str], features: Sequence[str], line: str) -> list[float]:
    """Return the features of a row, with NaN for missing values."""
    try:
        row = list(map(float, fields))
    except ValueError:
        row = [_value(text, name, line) for text, name in zip(fields, features, strict=True)]
    else:
        # Python reads 1_000 as a number; other programs do not, so that it may well be a mistake.
        if any("_" in text for text in fields):
            row = [_value(text, name, line) for text, name in zip(fields, features, strict=True)]
    return row


def _value(text: str, name: str, line: str) -> float:
    value = _number(text)
    if value is not None:
        return value
    if text.strip().casefold() in MISSING_VALUES:
        return float("nan")
    hint = "Write decimals with a point" if text.replace(",", "").strip("+-").isdigit() else ""
    raise DataError(
        f"{line}, column {name!r}",
        f"text {text.strip()!r}",
        "a number, or an empty field for a missing value",
        hint or "Encode categories as numbers, or name the label column by label = …",
    )


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
