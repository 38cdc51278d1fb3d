"""Features and labels from pandas frames, as Parquet files and OpenML give them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.data.listing import first_of
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5


def frame_features(frame: pd.DataFrame, where: str) -> Floats:
    """Return the columns of a frame as (n, d) float64; missing values become NaN.

    Text that holds a number counts as that number, as in a CSV file.

    Raises
    ------
    DataError
        If columns hold other text; the message names them and some of their values.
    """
    from pandas import to_numeric
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    columns, words = [], []
    for name in frame.columns:
        column = frame[name]
        if is_bool_dtype(column.dtype) or is_numeric_dtype(column.dtype):
            columns.append(column.to_numpy(dtype=np.float64, na_value=np.nan))
            continue
        numbers = to_numeric(column.astype(object), errors="coerce")
        if numbers.isna().equals(column.isna()):
            columns.append(numbers.to_numpy(dtype=np.float64))
        else:
            words.append(f"{name!r} ({_some(column)})")
    if words:
        raise DataError(
            where,
            f"no numbers in {first_of(words, SHOWN, 'more columns')}",
            "numbers in every feature column",
            "Encode categories as numbers (pandas.get_dummies) or drop the columns",
        )
    if not columns:
        raise DataError(
            where, "a label column alone", "at least one feature column", "Add a feature column"
        )
    return np.ascontiguousarray(np.stack(columns, axis=1))


def frame_labels(column: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return numbers as float64 with NaN, and other labels as text with ``""``, where missing."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype):
        numbers: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return numbers
    missing: Sequence[bool] = column.isna().tolist()
    values = column.tolist()
    return np.array(["" if gone else str(v) for v, gone in zip(values, missing, strict=True)])


def _some(column: pd.Series[Any]) -> str:
    distinct = [str(value) for value in column.dropna().unique()[:3].tolist()]
    return ", ".join(distinct) or str(column.dtype)
