"""Tables that come as pandas frames: from Parquet and from OpenML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5


def frame_features(frame: pd.DataFrame, where: str) -> Floats:
    """Return the columns of a frame as (n, d) float64; missing values become NaN.

    Numbers written as text are numbers, as in a CSV file.

    Raises
    ------
    DataError
        Naming the columns that hold no numbers and some of what they hold.
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
        shown = ", ".join(words[:SHOWN])
        rest = f" and {len(words) - SHOWN} more columns" if len(words) > SHOWN else ""
        raise DataError(
            where,
            f"no numbers in {shown}{rest}",
            "numbers in every feature column",
            "Encode categories as numbers (pandas.get_dummies) or drop the columns.",
        )
    if not columns:
        raise DataError(where, "a label column alone", "at least one feature column", "Add one.")
    return np.ascontiguousarray(np.stack(columns, axis=1))


def frame_labels(column: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return labels as float64, or as text with ``""`` where one is missing."""
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
