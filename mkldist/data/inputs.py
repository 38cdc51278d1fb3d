"""Data sets as inputs of Python: arrays, frames, Gram matrices, labels, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.core.checksums import array_id
from mkldist.core.durable import replacing
from mkldist.core.wording import truncate
from mkldist.data.checks import (
    SHOWN,
    as_features,
    check_rows,
    common_rows,
    dense_features,
    gram_indexes,
)
from mkldist.data.dataset import ImportSummary, RawData, sparse_parts
from mkldist.data.npz_files import (
    FEATURE_NAMES,
    SPARSE_PARTS,
    Archive,
    feature_names,
    npz_features,
    npz_sparse,
    open_npz,
)
from mkldist.data.splits import INDEX_ARRAYS, partitions_of
from mkldist.data.tables import (
    ColumnChoice,
    decoded,
    frame_labels,
    frame_table,
    of_categories,
    pandas_frame,
    table_data,
)
from mkldist.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd


SUFFIX = ".inputs.npz"
REPEAT = "Repeat the call in Python that gave the data, which writes the file anew"
X, GRAMS, Y, WEIGHTS = "x", "grams", "y", "weights"
COLUMNS, CATEGORIES, LABEL, BESIDE = "columns", "categories", "label", "beside"
OF_SPLITS = ("groups", "order")
"""Names of arrays by which rows are divided, and of the keys of ``[splits]`` that take them."""
BESIDES = (*OF_SPLITS, WEIGHTS)  # what may stand beside the features of a table
KEYS = (X, GRAMS, Y, *BESIDES, FEATURE_NAMES, "train", "test", "unlabelled")
ONE_TABLE = (
    "Join views to one table, pandas.concat(views, axis=1), and name the columns of each in "
    '"views": [{"name": NAME, "columns": [...]}]'
)
EXPECTED = "(X, y), (X, y, groups), a DataFrame, or a mapping with x or grams, and y"


@dataclass(frozen=True, eq=False)
class InputData:
    """Data set of Python, as plain arrays by their names.

    A table has ``columns`` (names of the columns), ``column 0`` and so on, ``missing 0`` for a
    column of texts, and perhaps ``categories`` (columns of a categorical type), ``label`` (name of
    the label column) and ``beside`` (columns that were given beside the table, to divide or weigh
    the rows).  Other data have ``x`` (n, d), the parts ``data``, ``indices``, ``indptr`` and
    ``shape`` of a sparse matrix, or ``grams`` (M, n, n); ``y`` (n,); and perhaps ``feature_names``,
    ``groups``, ``order``, ``weights`` and the indices ``train``, ``test`` and ``unlabelled``.
    """

    arrays: dict[str, npt.NDArray[Any]]

    @cached_property
    def id(self) -> str:
        """Content id of the arrays and their names."""
        return array_id(np.array(list(self.arrays)), *self.arrays.values())

    @property
    def of_splits(self) -> tuple[str, ...]:
        """Columns that were given to divide the rows."""
        return tuple(name for name in OF_SPLITS if name in self._beside)

    @property
    def weighs_rows(self) -> bool:
        """True if row weights were given."""
        return WEIGHTS in self._beside

    @property
    def _beside(self) -> Any:
        """Names of what was given beside features and labels."""
        return self.arrays.get(BESIDE, np.array([])) if COLUMNS in self.arrays else self.arrays

    def save(self, path: Path) -> None:
        """Write the arrays, whole or not at all."""
        with replacing(path) as temporary, temporary.open("xb") as file:
            np.savez(file, **self.arrays)  # type: ignore[arg-type]  # named by the user's columns

    def raw_data(
        self, choice: ColumnChoice, where: str, origin: str = "given in Python"
    ) -> RawData:
        """Return features or Gram matrices, and labels, by the columns that the sweep names."""
        arrays = self.arrays
        if choice.sparse and not arrays.keys().isdisjoint((COLUMNS, GRAMS, X)):
            raise dense_features(where)
        if choice.label is not None and (LABEL in arrays or COLUMNS not in arrays):
            found = f"label = {choice.label!r} beside given labels"
            hint = "Remove label, or give a DataFrame that holds the label column"
            raise DataError(where, found, "labels once", hint)
        if COLUMNS in arrays:
            beside = LABEL in arrays
            chosen = replace(choice, label=str(arrays[LABEL])) if beside else choice
            table = frame_table(_frame(arrays), where)
            table = replace(table, categories=tuple(arrays.get(CATEGORIES, np.array([])).tolist()))
            raw = table_data(table, chosen, where)
            if beside:
                summary = replace(raw.summary, label="given beside the features")
                raw = replace(raw, summary=summary)
            return replace(raw, origin=origin)
        _check_choice(choice, arrays, where)
        others: dict[str, Any] = {
            "of_splits": {name: arrays[name].astype(str) for name in choice.of_splits},
            "weights": None if choice.weights is None else arrays[choice.weights],
            "origin": origin,
        }
        y, indices = arrays[Y], {name: arrays[name] for name in INDEX_ARRAYS if name in arrays}
        partitions = partitions_of(indices, len(y), where)
        if GRAMS in arrays:
            from mkldist.data.grams import Repairs, usable_grams  # with scipy.linalg

            repairs = Repairs.of(choice.indefinite)
            grams = usable_grams(arrays[GRAMS], y, where, repairs)
            notes = () if repairs is None else repairs.notes(len(grams))
            summary = ImportSummary(notes=notes)
            return RawData(y, None, (), partitions, grams=grams, summary=summary, **others)
        place = f"{where}: X"
        if X in arrays:
            x: Any = as_features(arrays[X], place)
        else:
            x = (npz_sparse if choice.sparse else npz_features)(Archive(arrays, place), place)
        check_rows(x.shape[0], len(y), where)
        names = feature_names(arrays, x.shape[1], where)
        dense, sparse = (None, x) if choice.sparse else (x, None)
        return RawData(y, dense, names, partitions, sparse=sparse, **others)


def read_inputs(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Return what :meth:`InputData.raw_data` does, from a file, unless that is damaged."""
    return _checked(path, where).raw_data(choice, where, path.name)


def is_sound(path: Path) -> bool:
    """Return True if the content of a file is the one that its name says."""
    try:
        _checked(path, path.name)
    except DataError:
        return False
    return True


def _checked(path: Path, where: str) -> InputData:
    """Return the data of a file whose name says which they are."""
    try:
        with open_npz(path, where) as archive:
            data = InputData({name: archive[name] for name in archive})
    except DataError as error:
        raise DataError(error.where, error.found, error.expected, REPEAT) from error
    if data.id != path.name.removesuffix(SUFFIX).rpartition("-")[2]:
        expected = "the data whose id stands in its name"
        raise DataError(where, "other data, or damaged ones", expected, REPEAT)
    return data


def _check_choice(choice: ColumnChoice, arrays: Mapping[str, Any], where: str) -> None:
    """Refuse the choice of columns that arrays do not have."""
    named = [(name, "splits", OF_SPLITS[0]) for name in choice.of_splits]
    named += [] if choice.weights is None else [(choice.weights, WEIGHTS, WEIGHTS)]
    for name, key, example in named:
        known = [one for one in (OF_SPLITS if key == "splits" else (WEIGHTS,)) if one in arrays]
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "a DataFrame with this column"
            hint = nearest(name, known)
            hint = hint or f'Give it as data={{"NAME": {{"x": X, "y": y, "{example}": …}}}}'
            raise DataError(f"{where}: {key}", f"no column {name!r}", expected, hint)
    replace(choice, of_splits=(), groups=None, weights=None).check_label_alone(where)


def _frame(arrays: Mapping[str, npt.NDArray[Any]]) -> pd.DataFrame:
    """Return a table as a frame; its texts are objects, None where missing."""
    import pandas as pd

    columns = []
    for place in range(len(arrays[COLUMNS])):
        column = arrays[f"column {place}"]
        if f"missing {place}" in arrays:
            column = column.astype(object)
            column[arrays[f"missing {place}"]] = None
        columns.append(pd.Series(column))
    frame = pd.concat(columns, axis="columns")
    return frame.set_axis(arrays[COLUMNS].tolist(), axis="columns")


def input_data(data: Any, where: str) -> InputData:
    """Return a data set of Python, checked.

    That is a DataFrame that holds the label column; ``(X, y)`` or ``(X, y, groups)``; or a mapping
    with ``x`` or ``grams``, ``y``, and perhaps ``groups``, ``order``, ``weights``,
    ``feature_names`` and the indices ``train``, ``test`` and ``unlabelled``.  X is (n, d): an
    array, a sparse matrix or a DataFrame; of shape (M, n, n) it holds Gram matrices.  Anything
    else, and parts of different lengths or whose indexes of pandas name other rows, are refused by
    a DataError that names the place `where`.
    """
    data = pandas_frame(data)
    if _is_frame(data):
        return InputData(_table(data, where))
    parts = _parts(data, where)
    of_rows = {name: parts[name] for name in (Y, *BESIDES) if name in parts}
    first = {"X": parts.get(X), **gram_indexes(GRAMS, parts.get(GRAMS))}
    common_rows(where, first | of_rows)
    labels = _labels(parts.pop(Y), f"{where}: y")
    points = pandas_frame(parts.pop(X, None))
    for name in BESIDES:
        if name in parts and len(parts[name]) != len(labels):
            expected = f"{len(labels)}, one a point"
            raise DataError(f"{where}: {name}", f"{len(parts[name])}", expected)
    if points is not None and _is_frame(points):
        check_rows(len(points), len(labels), where)
        return InputData(_with_labels(points, labels, parts, where))
    arrays = {Y: labels}
    if hasattr(points, "tocsr"):
        arrays |= zip(SPARSE_PARTS, sparse_parts(points.tocsr()), strict=True)
    elif points is not None:
        array = _array(points, f"{where}: X")
        arrays[GRAMS if array.ndim == 3 else X] = array
    for name, values in parts.items():
        if name not in (*OF_SPLITS, FEATURE_NAMES):
            arrays[name] = _array(values, where)
            continue
        if any(np.ndim(value) for value in values):
            found = f"{_described(values)} of lists"
            raise DataError(f"{where}: {name}", found, "one value a row")
        import pandas as pd

        texts = ["" if pd.isna(value) else _text(value) for value in values]
        arrays[name] = np.array(texts, dtype=np.str_)
    return InputData(arrays)


def _parts(data: Any, where: str) -> dict[str, Any]:
    """Return the parts of a data set by name, y and x or grams among them."""
    if isinstance(data, tuple) and len(data) in (2, 3):
        data = dict(zip((X, Y, "groups"), data, strict=False))
    if not isinstance(data, Mapping):
        raise DataError(where, f"{_described(data)}", EXPECTED)
    parts = {X if key == "X" else key: value for key, value in data.items() if value is not None}
    for key in parts:
        if key not in KEYS:
            hint = nearest(str(key), KEYS)
            raise DataError(where, f"the unknown key {key!r}", f"keys {', '.join(KEYS)}", hint)
    if Y not in parts or (X in parts) == (GRAMS in parts):
        found = f"keys {', '.join(map(str, parts)) or 'none'}"
        raise DataError(where, found, "x or grams, and y")
    if isinstance(parts.get(X), Mapping):
        found = f"a mapping of {truncate([*map(repr, parts[X])], SHOWN)}"
        raise DataError(f"{where}: X", found, "one array or DataFrame", ONE_TABLE)
    return parts


def _with_labels(
    points: pd.DataFrame, labels: npt.NDArray[Any], parts: Mapping[str, Any], where: str
) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a table whose labels, and perhaps groups, were given beside it."""
    frame = points.set_axis(list(map(str, points.columns)), axis="columns").reset_index(drop=True)
    beside = {LABEL: labels, **{name: parts[name] for name in BESIDES if name in parts}}
    for name in beside:
        if name in frame.columns:
            found = f"a column {name!r} in X, beside {'y' if name == LABEL else name}"
            raise DataError(where, found, "features alone", f"Drop it: X.drop(columns={name!r})")
    others = [name for name in parts if name not in beside]
    if others:
        raise DataError(where, f"{others[0]} beside a DataFrame", "none", "Give X.to_numpy()")
    for name, values in beside.items():
        frame[name] = np.asarray(values)
    columns = np.array([name for name in beside if name != LABEL], dtype=np.str_)
    return {**_table(frame, where), LABEL: np.array(LABEL), BESIDE: columns}


def _table(frame: pd.DataFrame, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of a frame as arrays of numbers, or of texts and where they miss."""
    from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

    names = [str(name).strip() for name in frame.columns]
    arrays: dict[str, npt.NDArray[Any]] = {COLUMNS: np.array(names, dtype=np.str_)}
    for place in range(frame.shape[1]):
        column, key = frame.iloc[:, place], f"column {place}"
        missing, kind = column.isna().to_numpy(), column.dtype
        if is_bool_dtype(kind) and not missing.any():
            arrays[key] = column.to_numpy(dtype=bool)
        elif is_integer_dtype(kind) and not missing.any():
            beyond = len(column) > 0 and int(column.max()) > np.iinfo(np.int64).max
            arrays[key] = column.to_numpy(dtype=np.uint64 if beyond else np.int64)
        elif is_numeric_dtype(kind) and not is_bool_dtype(kind):
            arrays[key] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            values = decoded(column, where)
            texts = ["" if gone else _text(v) for v, gone in zip(values, missing, strict=True)]
            arrays[key], arrays[f"missing {place}"] = np.array(texts, dtype=np.str_), missing
    declared = [names[place] for place, kind in enumerate(frame.dtypes) if of_categories(kind)]
    return arrays | ({CATEGORIES: np.array(declared)} if declared else {})


def _labels(labels: Any, where: str) -> npt.NDArray[Any]:
    """Return labels as numbers, bools or texts, (n,)."""
    import pandas as pd

    if isinstance(labels, pd.Series):
        return frame_labels(labels, where)
    try:
        array = np.asarray(labels)
    except ValueError as error:
        raise DataError(where, f"{_described(labels)}: {error}", "one label a point") from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(where, f"{_described(labels)} of shape {array.shape}", "one dimension")
    return frame_labels(pd.Series(array), where)


def _array(values: Any, where: str) -> npt.NDArray[Any]:
    """Return numbers as an array."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(where, f"{_described(values)}: {error}", "an array") from None
    if array.dtype.kind != "O":
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        found = f"values that are no numbers ({error})"
        raise DataError(where, found, "numbers", "Give texts in a DataFrame") from None


def _text(value: Any) -> str:
    """Return a value as text; 1.0 counts as 1, and a day without a time as a day."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if hasattr(value, "isoformat"):
        day = hasattr(value, "time") and value.time() == time()
        return str(value.date().isoformat() if day else value.isoformat())
    return str(value)


def _is_frame(data: Any) -> bool:
    return hasattr(data, "columns") and hasattr(data, "iloc")


def _described(data: Any) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}".removeprefix("builtins.")
