"""The order in time of the rows of a table, by a column of numbers or of dates."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Ints
from mkldist.core.wording import FROM_ZERO, RowLabels
from mkldist.data.number_texts import name_of_number, number_of_name
from mkldist.errors import DataError

_DOTTED = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})([ T].*)?")  # the day stands first
_IN_SLASHES = re.compile(r"\d+/\d+/\d+")
_SLASHES = "Write dates as year-month-day: 1/2/2021 is one day here and another there"


def rows_in_order(
    column: npt.NDArray[np.str_], where: str, row_labels: RowLabels = FROM_ZERO
) -> Ints:
    """Return the rows in ascending order of a column; equal ones stay in the order of the table.

    Parameters
    ----------
    column : (n,) array of str
        Numbers, or dates and times such as ``2021-03-01`` and ``2021-03-01T12:30``, or
        ``31.3.2021`` and ``31.3.2021 12:30``.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Returns
    -------
    (n,) intp

    Raises
    ------
    DataError
        For a value that is neither, and for a mix of both.

    Examples
    --------
    >>> rows_in_order(np.array(["2021-03-01", "1999-12-31"]), "t.csv")
    array([1, 0])
    """
    texts = [str(text).strip() for text in column]
    names = [name_of_number(text) for text in texts]
    numbers = [number_of_name(name) for name in names if name is not None]
    if len(numbers) == len(texts):  # whole ones keep all digits: nanoseconds are beyond 2**53
        return np.array(sorted(range(len(numbers)), key=numbers.__getitem__), dtype=np.intp)
    dates = [_date(text) for text in texts]
    wrong = [row for row, date in enumerate(dates) if date is None]
    if wrong:
        raise DataError(
            where,
            f"{texts[wrong[0]]!r} in {row_labels.of(wrong[0])}",
            "numbers, or dates such as 2021-03-01 or 31.3.2021, in every row",
            _SLASHES if _IN_SLASHES.match(texts[wrong[0]]) else "Correct this column",
        )
    return np.argsort(np.array(dates, dtype="datetime64[us]"), kind="stable")


def is_date(text: str) -> bool:
    """Return True for a date, with or without a time, by which :func:`rows_in_order` can order."""
    return _date(text) is not None


def _date(text: str) -> datetime | None:
    dotted = _DOTTED.fullmatch(text)
    if dotted:
        day, month, year, time = dotted.groups(default="")
        text = f"{year}-{month:0>2}-{day:0>2}{time}"
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date if date.tzinfo is None else None
