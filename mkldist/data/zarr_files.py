"""Data sets in zarr, read a few rows at a time: a group of x and y, or a table of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array, Floats
from mkldist.core.wording import natural_key, truncate
from mkldist.data.archives import NamedArrays
from mkldist.data.columns import ColumnChoice
from mkldist.data.npz_files import SPARSE_PARTS, arrays_data
from mkldist.data.raw import RawData, as_features, check_feature_array, check_fits
from mkldist.data.row_blocks import rows_at_once
from mkldist.data.table_blocks import TableBlocks, table_data
from mkldist.data.zarr_stores import check_whole, opened_zarr, whole_array
from mkldist.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5
FEWER = "Write fewer rows or columns, or use a machine with more memory"
FORMS = "a group with x (n, d) and y (n,), or with an array (n,) for each column"
WRITE = "Write one: zarr.save_group(folder, x=X, y=y)"
COLUMN_KINDS = "biufSUTOMm"


def read_zarr(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read features and labels from a group of zarr.

    It has the arrays of a ``.npz`` file, see :func:`mkldist.data.npz_files.arrays_data`, of which
    ``x`` is read a few rows at a time.  Or it is a table: an array (n,) for each column.

    Parameters
    ----------
    path : Path
        The folder.
    choice : ColumnChoice
        The label column or array, and others that are no features of numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If the store is damaged, or an array is absent or of another shape.
    """
    with opened_group(path, where) as group:
        if group.is_table:
            return table_data(group.table(), choice, where)
        choice.check_label_alone(where, arrays=True)
        raw = arrays_data(group, choice, where)
        return replace(raw, own_memory=True)


@contextmanager
def opened_group(path: Path, where: str) -> Iterator[ZarrArrays]:
    """Open a group of zarr that holds a data set or new rows of one.

    Raises
    ------
    DataError
        If it is damaged or holds no arrays; also inside the ``with`` block.
    """
    with opened_zarr(path, where) as node:
        if not isinstance(node, Mapping):
            found = f"a single array of shape {node.shape}"
            hint = WRITE
            if node.ndim == 3:
                hint = "Name Gram matrices by grams = …, not by file"
            raise DataError(where, found, FORMS, hint)
        arrays = {name: node[name] for name in sorted(node, key=natural_key)}
        groups = [name for name, one in arrays.items() if not hasattr(one, "shape")]
        if groups or not arrays:
            listed = truncate([repr(name) for name in groups], SHOWN)
            raise DataError(where, f"a group of groups ({listed})" if groups else "an empty group",
                            FORMS, "Name the folder of one group of arrays")  # fmt: skip
        yield ZarrArrays(arrays, where)


class ZarrArrays(NamedArrays):
    """The arrays of an open group of zarr.

    Parameters
    ----------
    arrays : mapping of str to zarr.Array
        The arrays.
    where : str
        The place to name in a message.
    """

    writer = "zarr.save_group(folder"

    def __init__(self, arrays: Mapping[str, Any], where: str) -> None:
        self._arrays, self.where = arrays, where

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> Array:
        return whole_array(self._arrays[name], self._place(name), FEWER)

    @property
    def is_table(self) -> bool:
        """True if each array is a column: there are neither features ``x`` nor Gram matrices."""
        sparse = all(part in self for part in SPARSE_PARTS)
        return not (sparse or "x" in self or "grams" in self)

    def features(self, name: str) -> Floats:
        """Return an array of features as (n, d) float64, read a few rows at a time.

        Raises
        ------
        DataError
            As for :func:`mkldist.data.raw.as_features`, or if half of the memory does not hold it.
        """
        array, place = self._checked_features(name)
        check_fits(8 * array.shape[0] * array.shape[1], place, FEWER)
        x = np.empty(array.shape)
        for rows in _row_slices([array], rows_at_once(8 * array.shape[1])):
            x[rows] = array[rows]
        return x

    def feature_blocks(self, name: str, rows: int) -> Iterator[Floats]:
        """Yield successive rows of an array of features, about so many at a time."""
        array, place = self._checked_features(name)
        for some in _row_slices([array], rows):
            yield as_features(np.asarray(array[some]), place)

    def n_features(self, name: str) -> int:
        """Return the number of columns of an array of features."""
        return int(self._checked_features(name)[0].shape[1])

    def length(self, name: str) -> int:
        """Return the number of rows of an array."""
        return int(self._arrays[name].shape[0])

    def table(self) -> TableBlocks:
        """Return the arrays as columns of a table.

        Raises
        ------
        DataError
            If they are not of one length, or a chunk is not stored.
        """
        shapes = {array.shape for array in self._arrays.values()}
        if len(shapes) > 1 or len(next(iter(shapes))) != 1:
            of_each = [f"{name!r} {array.shape}" for name, array in self._arrays.items()]
            raise DataError(
                self.where,
                f"neither 'x' nor columns of one length: {truncate(of_each, SHOWN)}",
                FORMS,
                WRITE,
            )
        for name, array in self._arrays.items():
            check_whole(array, self._place(name))
            if np.dtype(array.dtype).kind not in COLUMN_KINDS:
                raise DataError(
                    self._place(name), f"an array of {array.dtype}", "numbers or text",
                    "Convert it before saving: array.astype(float)",
                )  # fmt: skip
        [[n_rows]] = shapes
        return TableBlocks(tuple(self._arrays), n_rows, self._frames)

    def _frames(self, columns: Sequence[str], rows: int) -> Iterator[pd.DataFrame]:
        """Yield successive rows of some columns."""
        import pandas as pd

        arrays = {name: self._arrays[name] for name in columns}
        for some in _row_slices([*arrays.values()], rows):
            yield pd.DataFrame({name: _plain(array[some]) for name, array in arrays.items()})

    def _checked_features(self, name: str) -> tuple[Any, str]:
        """Return an array, which holds features, and its place."""
        array, place = self._arrays[name], self._place(name)
        check_feature_array(array.shape, array.dtype, place)
        check_whole(array, place)
        return array, place

    def _place(self, name: str) -> str:
        return f"{self.where}, array {name!r}"


def _row_slices(arrays: Sequence[Any], rows: int) -> Iterator[slice]:
    """Yield about so many successive rows of arrays of one length, whole chunks of the largest."""
    n_rows = arrays[0].shape[0]
    of_chunk = max((array.shards or array.chunks)[0] for array in arrays)
    step = max(of_chunk, rows // of_chunk * of_chunk)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def _plain(values: Any) -> Array:
    """Return a column as pandas takes it: texts as objects."""
    column = np.asarray(values)
    return column.astype(object) if column.dtype.kind in "TSU" else column
