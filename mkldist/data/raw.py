"""Raw data: the result of a reader, before classes, missing values and rows are settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.memory import GIB, SHARE_OF_MEMORY, at_most_half, physical_memory
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize
from mkldist.data.dataset import GivenGrams, Split, View
from mkldist.data.source_columns import SourceColumns
from mkldist.data.summary import ImportSummary
from mkldist.data.table_problems import DECIMALS, decimal_comma
from mkldist.data.texts import TextColumns
from mkldist.errors import DataError
from mkldist.spec.kinds import Task


@dataclass(frozen=True, eq=False)
class RawData:
    """Features (or Gram matrices) and labels as the source has them.

    Parameters
    ----------
    labels : (n,) array of str, float64, integers or bool
        Labels in the user's own terms; missing labels are ``""`` or NaN.
    x : (n, d) float64, or None when `grams` is given
        Features; missing values are NaN.
    feature_names : tuple of str
        d names.
    partitions : tuple of Split
        Partitions that came with the data.
    groups : dict of str to tuple of int
        Named feature groups that came with the data, as column indices.
    grams : (M, n, n) array, or None
        Gram matrices over all points.
    origin : str
        Where the data came from.
    task : {"classification", "regression"}
        Task of the labels unless the user sets another.
    of_splits : dict of str to (n,) array of str
        Columns by which rows are divided, by name.
    weights : (n,) array of str or numbers, or None
        Row weights as the source has them.
    summary : ImportSummary
        What the reader did with the columns.
    columns : SourceColumns, optional
        The columns that features are made of; None if each feature is a column.
    label_name : str
        The label column of a table; empty otherwise.
    ids : (n,) array of str, or None
        Names of the rows.
    views : dict of str to View
        Blocks of the features.
    given : dict of str to GivenGrams
        Views that are Gram matrices.
    sparse : (n, d) csr_array, or None
        Features in compressed sparse rows; `x` is then None.
    file_groups : dict of str to tuple of int
        Feature groups of files of groups, whose other members are left out.
    texts : TextColumns, optional
        Columns of texts.
    view_columns : dict of str to SourceColumns
        Columns of the views with a file of their own, whose features follow the others.
    row_labels : RowLabels
        How messages name the rows.
    own_memory : bool
        True if nothing else makes use of the memory of `x`, so that its rows and columns may be
        moved there.
    """

    labels: npt.NDArray[Any]
    x: Floats | None
    feature_names: tuple[str, ...] = ()
    partitions: tuple[Split, ...] = ()
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    grams: npt.NDArray[Any] | None = None
    origin: str = ""
    task: Task = "classification"
    of_splits: dict[str, npt.NDArray[np.str_]] = field(default_factory=dict)
    weights: npt.NDArray[Any] | None = None
    summary: ImportSummary = field(default_factory=ImportSummary)
    columns: SourceColumns | None = None
    label_name: str = ""
    ids: npt.NDArray[np.str_] | None = None
    views: dict[str, View] = field(default_factory=dict)
    given: dict[str, GivenGrams] = field(default_factory=dict)
    sparse: Any = None
    file_groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    texts: TextColumns | None = None
    view_columns: dict[str, SourceColumns] = field(default_factory=dict)
    row_labels: RowLabels = FROM_ZERO
    own_memory: bool = False


def numbered_features(n_features: int) -> tuple[str, ...]:
    """Return the names f0, f1, … of features that have none.

    Examples
    --------
    >>> numbered_features(3)
    ('f0', 'f1', 'f2')
    """
    return tuple(f"f{i}" for i in range(n_features))


def check_fits(n_bytes: int, where: str, hint: str) -> None:
    """Raise unless an array of `n_bytes` bytes fits into half of this machine's memory.

    Raises
    ------
    DataError
        If it is larger.
    """
    limit = int(SHARE_OF_MEMORY * physical_memory())
    if n_bytes > limit:
        found = f"an array of {n_bytes / GIB:.1f} GiB"
        raise DataError(where, found, at_most_half(limit), hint)


def check_rows(n_rows: int, n_labels: int, where: str) -> None:
    """Raise unless there are as many labels as rows, at least one.

    Raises
    ------
    DataError
        If the numbers differ or are zero.
    """
    if n_rows != n_labels:
        raise DataError(
            where,
            f"{pluralize(n_rows, 'row')} of features but {pluralize(n_labels, 'label')}",
            "one label per row",
            "Check that both come from the same version of the data",
        )
    if not n_rows:
        raise DataError(where, "no rows", "at least one point", "Write the data again")


def as_features(values: npt.NDArray[Any], where: str, names: Sequence[str] = ()) -> Floats:
    """Return an (n, d) array of real numbers as contiguous float64.

    Parameters
    ----------
    values : (n, d) array
        The features.
    where : str
        The place to name in a message.
    names : sequence of str
        Names of the columns, if they are known.

    Raises
    ------
    DataError
        If `values` is not two-dimensional, holds no real numbers or has no column.
    """
    if values.dtype.kind in "OU" and values.ndim == 2:
        _refuse_texts(values, where, names)
    check_feature_array(values.shape, values.dtype, where)
    return np.ascontiguousarray(values, dtype=np.float64)


def _refuse_texts(values: npt.NDArray[Any], where: str, names: Sequence[str]) -> None:
    """Refuse an array of which values stand for no numbers, naming the first; leave others."""
    found = next((one for one in np.ndenumerate(values) if not _is_number(one[1])), None)
    if found is None:
        return
    (row, column), value = found
    named = repr(names[column]) if len(names) == values.shape[1] else f"{column} (from 0)"
    hint = "Convert texts, categories and dates to numbers, and missing values to NaN"
    raise DataError(
        f"{where}, row {row} (from 0), column {named}",
        repr(str(value) if isinstance(value, str) else value)[:60],
        "a number",
        DECIMALS if decimal_comma(str(value)) else hint,
    )


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def check_feature_array(shape: tuple[int, ...], dtype: np.dtype[Any], where: str) -> None:
    """Raise unless an array of a shape and dtype can hold the features of points.

    Raises
    ------
    DataError
        If it is not two-dimensional, holds no real numbers or has no column.
    """
    if dtype.kind not in "fiub":
        raise DataError(
            where,
            f"an array of {dtype}",
            "real numbers",
            "Convert text and categories to numbers first",
        )
    if len(shape) != 2 or shape[1] == 0:
        raise DataError(
            where,
            f"an array of shape {shape}",
            "(n points, d ≥ 1 features)",
            "Reshape it to one row per point",
        )
