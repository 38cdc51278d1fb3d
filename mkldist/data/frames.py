"""Features and labels from pandas frames, as Parquet files and OpenML give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.wording import FROM_ZERO, RowLabels, truncate
from mkldist.data.columns import ColumnRoles
from mkldist.data.raw import RawData, check_fits
from mkldist.data.row_blocks import row_blocks
from mkldist.data.table_problems import DECIMALS, decimal_comma, is_date_text
from mkldist.data.tables import of_table
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5
MOST_EXACT = 2**53  # float64 holds all whole numbers up to it
BY_PANDAS = "Encode categories as numbers (pandas.get_dummies) or drop the columns"
BY_KEYS = "Set categorical = [names] to encode categories, or ignore = [names]"
DATES = "Turn dates into numbers, such as (dates - dates.min()).dt.days, or leave them out"
DATES_BY_KEYS = (
    "Set ignore = [names] for dates, or turn them into numbers of days; [splits] of "
    'kind = "time" with order = one of them tests later rows by earlier ones'
)


def pandas_frame(X: Any) -> Any:
    """Return a DataFrame of polars, or a table of Arrow, as one of pandas; other data as they are.

    Raises
    ------
    DataError
        For a lazy frame, which has no rows yet.
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise DataError(type(X).__name__, "a lazy frame", "rows", "Call its collect() first")
    if hasattr(X, "iloc") or not (hasattr(X, "columns") and hasattr(X, "to_pandas")):
        return X
    import pandas as pd

    if not all(isinstance(name, str) for name in X.columns):  # those of Arrow are arrays
        return X.to_pandas()
    # By columns, for polars makes frames of pandas by Arrow alone, which may not be there.
    return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})


def frame_data(frame: pd.DataFrame, roles: ColumnRoles, where: str) -> RawData:
    """Return the raw data of a frame whose columns have these roles.

    Raises
    ------
    DataError
        As for :func:`frame_features` and :func:`frame_texts`, or if categories cannot be encoded.
    """
    blocks = (frame.iloc[rows] for rows in row_blocks(len(frame), 8 * len(roles.names)))
    return frames_data(blocks, len(frame), roles, where)


def frames_data(
    frames: Iterable[pd.DataFrame],
    n_rows: int,
    roles: ColumnRoles,
    where: str,
    row_labels: RowLabels = FROM_ZERO,
) -> RawData:
    """Return the raw data of a table that comes a few rows at a time.

    Its features are written where they stay, so that memory holds them once.

    Parameters
    ----------
    frames : iterable of DataFrame
        Successive rows.
    n_rows : int
        Number of all rows.
    roles : ColumnRoles
        The role of each column.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        As for :func:`frame_data`, or if the features do not fit into memory.
    """
    names = roles.names
    check_fits(8 * n_rows * len(roles.features), where, "Ignore some columns, or write fewer rows")
    x = np.empty((n_rows, len(roles.features)))
    own = tuple(position for position in (roles.id, roles.weights) if position is not None)
    wanted = roles.categorical + roles.of_splits + roles.texts + own
    texts: dict[str, list[str]] = {names[p]: [] for p in wanted}
    labels: list[npt.NDArray[Any]] = []
    start = 0
    for frame in frames:
        places, rows = row_labels.after(start), slice(start, start + len(frame))
        if roles.features:
            x[rows] = frame_features(frame[list(roles.feature_names)], where, BY_KEYS, places)
        for name, found in texts.items():
            found += frame_texts(frame[name], where, places)
        if roles.label is not None:
            labels.append(_labels(frame[names[roles.label]], where, places))
        start = rows.stop
    whole = np.full(n_rows, "")
    if roles.label is not None:
        whole = _as_floats(np.concatenate([part for part in labels if len(part)] or [whole]))
    return replace(of_table(roles, whole, x, texts, where), row_labels=row_labels)


def frame_texts(
    column: pd.Series[Any], where: str = "table", row_labels: RowLabels = FROM_ZERO
) -> list[str]:
    """Return values as text, ``""`` where missing; 1.0 counts as 1, and bytes as UTF-8.

    Raises
    ------
    DataError
        For bytes that are not UTF-8.
    """
    values = [
        int(value) if isinstance(value, float) and value.is_integer() else value
        for value in decoded(column, where, row_labels)
    ]
    missing: Sequence[bool] = column.isna().tolist()
    return ["" if gone else str(v).strip() for v, gone in zip(values, missing, strict=True)]


def frame_features(
    frame: pd.DataFrame,
    where: str,
    hint: str = BY_PANDAS,
    row_labels: RowLabels = FROM_ZERO,
) -> Floats:
    """Return the columns of a frame as (n, d) float64; missing values become NaN.

    Text that holds a number counts as that number, as in a CSV file.

    Raises
    ------
    DataError
        If columns hold other text; the message names them, some of these values and the first row.
    """
    from pandas import to_numeric
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    columns: list[Floats] = []
    wrong: dict[str, pd.Series[Any]] = {}
    for name in frame.columns:
        column = frame[name]
        if is_bool_dtype(column.dtype) or is_numeric_dtype(column.dtype):
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            continue
        numbers = to_numeric(column.astype(object), errors="coerce")
        if numbers.isna().equals(column.isna()):
            columns.append(numbers.to_numpy(dtype=np.float64))
        else:
            wrong[repr(name)] = column.reset_index(drop=True)[
                (numbers.isna() & ~column.isna()).to_numpy()
            ]
    if wrong:
        raise _no_numbers(wrong, where, hint, row_labels)
    if not columns:
        raise DataError(
            where, "a label column alone", "at least one feature column", "Add a feature column"
        )
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _no_numbers(
    wrong: Mapping[str, pd.Series[Any]], where: str, hint: str, row_labels: RowLabels
) -> DataError:
    """Return the error of columns with values that are no numbers, by their names."""
    words = [f"{name} ({_some(values)})" for name, values in wrong.items()]
    first = min(int(values.index[0]) for values in wrong.values())
    samples = [str(values.iloc[0]).strip() for values in wrong.values()]
    commas, dates = sum(map(decimal_comma, samples)), sum(map(is_date_text, samples))
    hints = [DECIMALS] if commas else []
    if dates:
        hints.append(DATES_BY_KEYS if hint == BY_KEYS else DATES)
    if commas + dates < len(samples):
        hints.append(hint)
    return DataError(
        where,
        f"no numbers in {truncate(words, SHOWN, 'more columns')}, the first in "
        f"{row_labels.of(first)}",
        "numbers in every feature column",
        ". ".join(hints),
    )


def frame_labels(column: pd.Series[Any], where: str = "table") -> npt.NDArray[Any]:
    """Return numbers as float64 with NaN, and other labels as text with ``""``, where missing.

    Whole numbers of which float64 has not all digits stay integers.

    Raises
    ------
    DataError
        For bytes that are not UTF-8.
    """
    return _as_floats(_labels(column, where, FROM_ZERO))


def _as_floats(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return integers as float64 if it holds all of their digits, and other labels unchanged."""
    if labels.dtype.kind not in "iu":
        return labels
    large = len(labels) > 0 and max(-int(labels.min()), int(labels.max())) > MOST_EXACT
    return labels if large else labels.astype(np.float64)


def _labels(column: pd.Series[Any], where: str, row_labels: RowLabels) -> npt.NDArray[Any]:
    """Return the labels of some rows, whole numbers as integers where none is missing."""
    from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

    if is_integer_dtype(column.dtype) and not column.isna().any():
        numbers = column.to_numpy()
        return numbers if numbers.dtype.kind in "iu" else np.array(column.tolist())
    if is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    missing: Sequence[bool] = column.isna().tolist()
    values = decoded(column, where, row_labels)
    return np.array(["" if gone else str(v) for v, gone in zip(values, missing, strict=True)])


def decoded(column: pd.Series[Any], where: str, row_labels: RowLabels = FROM_ZERO) -> list[Any]:
    """Return the values of a column, bytes as the texts that they encode.

    Parameters
    ----------
    column : Series
        The column.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names a row.

    Raises
    ------
    DataError
        For bytes that are not UTF-8.
    """
    values = column.tolist()
    for row, value in enumerate(values):
        if isinstance(value, bytes):
            try:
                values[row] = value.decode()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{where}, column {column.name!r}, {row_labels.of(row)}",
                    f"bytes that are not UTF-8 ({value!r:.60})",
                    "texts",
                    "Convert the column before saving: column.str.decode(its encoding)",
                ) from error
    return values


def _some(column: pd.Series[Any]) -> str:
    distinct = list(dict.fromkeys(str(value) for value in column.dropna().head(1000)))[:3]
    return ", ".join(distinct) or str(column.dtype)
