"""Data sets in zarr, read a few rows at a time: a group of x and y, or a table of columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array, Floats
from mkldist.core.wording import FROM_ONE, RowLabels, natural_key, truncate
from mkldist.data.checks import as_features, check_feature_array, check_fits, rows_at_once
from mkldist.data.npz_files import SPARSE_PARTS, NamedArrays
from mkldist.data.opening import REWRITE, check_file, exists
from mkldist.data.tables import Table, TableProblems
from mkldist.errors import DataError, MkldistError

if TYPE_CHECKING:
    import pandas as pd

EXTENSIONS = (".zarr",)
MARKS = ("zarr.json", ".zarray", ".zgroup")
EXECUTES = "pickle"
"""Codec of zarr version 2 by which an array executes what its file says."""
CHUNK_BYTES = 2**28
"""Most bytes of a chunk that is larger than its array: zarr unpacks all of it."""
SHOWN = 5
FEWER = "Write fewer rows or columns, or use a machine with more memory"
FORMS = "a group with x (n, d) and y (n,), or with an array (n,) for each column"
WRITE = "Write one: zarr.save_group(folder, x=X, y=y)"
COLUMN_KINDS = "biufSUTOMm"
_DAMAGE = (
    OSError, ValueError, KeyError, TypeError, RuntimeError, ArithmeticError, AttributeError,
    IndexError, AssertionError, MemoryError,  # the last by the sizes that chunks claim
)  # fmt: skip


def is_zarr(path: Path) -> bool:
    """Return True for a folder that is an array or a group of zarr."""
    return exists(path) and any((path / mark).is_file() for mark in MARKS)


@contextmanager
def opened_zarr(path: Path, where: str) -> Iterator[Any]:
    """Open a folder of zarr: the array, or a dict of the arrays and groups of a group.

    Other paths are refused, and arrays that are damaged, pickled or have huge chunks; also inside
    the ``with`` block.
    """
    import zarr

    if not is_zarr(path):
        if not (exists(path) and path.is_dir()):
            check_file(path, where)
        found = "a directory without zarr.json" if path.is_dir() else "a file"
        raise DataError(where, found, "a folder that zarr wrote", REWRITE)
    try:
        node = zarr.open(path, mode="r")
        if isinstance(node, zarr.Array):
            _check_array(node, where)
            yield node
        else:
            # Opened one by one: where zarr lists them and one is damaged, it leaves tasks behind,
            # of which Python tells the user.
            paths = [one for one in sorted(path.iterdir()) if is_zarr(one)]
            members = {one.name: zarr.open(one, mode="r") for one in paths}
            for name, one in members.items():
                if isinstance(one, zarr.Array):
                    _check_array(one, f"{where}, array {name!r}")
            yield members
    except MkldistError:
        raise
    except _DAMAGE as error:
        found = f"a zarr store that is damaged or cut short ({error or type(error).__name__})"
        raise DataError(where, found, "a complete zarr store", REWRITE) from error


def _check_array(array: Any, where: str) -> None:
    """Refuse an array whose chunks zarr might execute, or unpack to far more than the array."""
    named = (getattr(codec, "codec_id", "") for codec in (*array.filters, *array.compressors))
    if EXECUTES in named:
        found = f"an array that the codec {EXECUTES!r} has written, which may execute code"
        raise DataError(where, found, "numbers or text", "Write it with the codecs of zarr 3")
    chunks = array.shards or array.chunks
    if math.prod(chunks) * array.dtype.itemsize > max(array.nbytes, CHUNK_BYTES):
        raise DataError(
            where,
            f"chunks of shape {chunks} of an array of shape {array.shape}",
            "chunks that are no larger than their array",
            "Write the array again with smaller chunks",
        )


def _check_whole(array: Any, where: str) -> None:
    """Refuse an array of which chunks are not stored."""
    if array.nchunks_initialized < array.nchunks:
        hint = "Write the array again, with write_empty_chunks so that chunks of zeros are kept"
        found = f"{array.nchunks_initialized} of {array.nchunks} chunks"
        raise DataError(where, found, "all of them", hint)


def whole_array(array: Any, where: str, hint: str) -> Array:
    """Read an array at once; `hint` says what to do about one that memory does not hold."""
    _check_whole(array, where)
    check_fits(array.nbytes, where, hint)
    values = np.asarray(array[...])
    return np.array(values.tolist(), dtype=str) if values.dtype.kind in "TO" else values


@contextmanager
def open_group(path: Path, where: str) -> Iterator[Table | ZarrArrays]:
    """Open a group of zarr: named arrays, or a table where each array is a column."""
    with opened_zarr(path, where) as node:
        if not isinstance(node, Mapping):
            found = f"a single array of shape {node.shape}"
            hint = "Name Gram matrices by grams = …, not by file" if node.ndim == 3 else WRITE
            raise DataError(where, found, FORMS, hint)
        arrays = {name: node[name] for name in sorted(node, key=natural_key)}
        groups = [repr(name) for name, one in arrays.items() if not hasattr(one, "shape")]
        if groups or not arrays:
            found = f"a group of groups ({truncate(groups, SHOWN)})" if groups else "an empty group"
            raise DataError(where, found, FORMS, "Name the folder of one group of arrays")
        sparse = all(part in arrays for part in SPARSE_PARTS)
        if sparse or "x" in arrays or "grams" in arrays:
            yield ZarrArrays(arrays, where)
        else:
            yield _table(arrays, where)


class ZarrArrays(NamedArrays):
    """The arrays of an open group of zarr."""

    writer = "zarr.save_group(folder, {}=…)"

    def __init__(self, arrays: Mapping[str, Any], where: str, hint: str = FEWER) -> None:
        self._arrays, self.where, self._hint = arrays, where, hint

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __getitem__(self, name: str) -> Array:
        return whole_array(self._arrays[name], f"{self.where}, array {name!r}", self._hint)

    def features(self, name: str) -> Floats:
        """Return an array of features as (n, d) float64, read a few rows at a time."""
        n, d = self.shape(name)
        check_fits(8 * n * d, f"{self.where}, array {name!r}", FEWER)
        x = np.empty((n, d))
        array = self._arrays[name]
        for rows in _row_slices([array], rows_at_once(8 * d)):
            x[rows] = array[rows]
        return x

    def feature_blocks(self, name: str, rows: int) -> Iterator[Floats]:
        """Yield successive rows of an array of features, about so many at a time."""
        array = self._arrays[name]
        for some in _row_slices([array], rows):
            yield as_features(np.asarray(array[some]), f"{self.where}, array {name!r}")

    def shape(self, name: str) -> tuple[int, int]:
        """Return the shape (n, d) of an array, which must hold features."""
        array, place = self._arrays[name], f"{self.where}, array {name!r}"
        check_feature_array(array.shape, array.dtype, place)
        _check_whole(array, place)
        n, d = array.shape
        return n, d


def _table(arrays: Mapping[str, Any], where: str) -> Table:
    """Return arrays of one length as columns of a table."""
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) > 1 or len(next(iter(shapes))) != 1:
        of_each = truncate([f"{name!r} {array.shape}" for name, array in arrays.items()], SHOWN)
        found = f"neither 'x' nor columns of one length: {of_each}"
        raise DataError(where, found, FORMS, WRITE)
    for name, array in arrays.items():
        place = f"{where}, array {name!r}"
        _check_whole(array, place)
        if np.dtype(array.dtype).kind not in COLUMN_KINDS:
            hint = "Convert it before saving: array.astype(float)"
            raise DataError(place, f"an array of {array.dtype}", "numbers or text", hint)

    def read(columns: Sequence[str], rows: int) -> Iterator[tuple[pd.DataFrame, RowLabels]]:
        import pandas as pd

        for some in _row_slices([arrays[name] for name in columns], rows):
            values = {name: np.asarray(arrays[name][some]) for name in columns}
            texts = {name: v.astype(object) for name, v in values.items() if v.dtype.kind in "TSU"}
            yield pd.DataFrame(values | texts), FROM_ONE.after(some.start)

    [[n_rows]] = shapes
    return Table(tuple(arrays), read, TableProblems(where), n_rows)


def _row_slices(arrays: Sequence[Any], rows: int) -> Iterator[slice]:
    """Yield about so many successive rows of arrays of one length, whole chunks of the largest."""
    n_rows = arrays[0].shape[0]
    of_chunk = max((array.shards or array.chunks)[0] for array in arrays)
    step = max(of_chunk, rows // of_chunk * of_chunk)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
