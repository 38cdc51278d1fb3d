"""Data sets in zarr: groups of named arrays such as x and y."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.wording import truncate
from mkldist.data.checks import check_fits, rows_at_once
from mkldist.data.npz_files import NamedArrays
from mkldist.data.opening import FEWER, REWRITE, check_file, exists, is_zarr
from mkldist.errors import DataError, MkldistError

EXECUTES = "pickle"
"""Codec of zarr version 2 by which an array executes what its file says."""
CHUNK_BYTES = 2**28
"""Most bytes of a chunk that is larger than its array: zarr unpacks all of it."""
SHOWN = 5
FORMS = "a group with x (n, d) and y (n,)"
WRITE = "Write one: zarr.save_group(folder, x=X, y=y)"
_DAMAGE = (
    OSError, ValueError, KeyError, TypeError, RuntimeError, ArithmeticError, AttributeError,
    IndexError, AssertionError, MemoryError,  # the last by the sizes that chunks claim
)  # fmt: skip


@contextmanager
def opened_zarr(path: Path, where: str) -> Iterator[Any]:
    """Open a folder of zarr: the array, or a dict of the arrays and groups of a group."""
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
        found = f"chunks of shape {chunks} of an array of shape {array.shape}"
        expected = "chunks that are no larger than their array"
        raise DataError(where, found, expected, "Write the array again with smaller chunks")


def whole_array(array: Any, where: str, hint: str) -> Array:
    """Read an array, numbers some chunks at a time, which zarr holds beside it."""
    if array.nchunks_initialized < array.nchunks:
        found = f"{array.nchunks_initialized} of {array.nchunks} chunks"
        remedy = "Write the array again, with write_empty_chunks so that chunks of zeros are kept"
        raise DataError(where, found, "all of them", remedy)
    numbers = array.dtype.kind in "fiub"  # which become float64
    check_fits(8 * array.size if numbers else array.nbytes, where, hint)
    if numbers and array.ndim:
        read = np.empty(array.shape, array.dtype)
        of_chunk = (array.shards or array.chunks)[0]
        rows = rows_at_once(array.nbytes // max(1, len(read)))
        step = max(of_chunk, rows // of_chunk * of_chunk)
        for start in range(0, len(read), step):
            read[start : start + step] = array[start : start + step]
        return read
    values = np.asarray(array[...])
    return np.array(values.tolist(), dtype=str) if values.dtype.kind in "TO" else values


@contextmanager
def open_group(path: Path, where: str) -> Iterator[ZarrArrays]:
    """Open a group of zarr: named arrays, features ``x`` or Gram matrices among them."""
    with opened_zarr(path, where) as node:
        if not isinstance(node, Mapping):
            found = f"a single array of shape {node.shape}"
            hint = "Name Gram matrices by grams = …, not by file" if node.ndim == 3 else WRITE
            raise DataError(where, found, FORMS, hint)
        arrays = {name: one for name, one in node.items() if hasattr(one, "shape")}
        if not arrays:
            found = f"a group of groups ({truncate([*map(repr, node)], SHOWN)})"
            found = found if node else "an empty group"
            raise DataError(where, found, FORMS, "Name the folder of one group of arrays")
        yield ZarrArrays(arrays, where)


class ZarrArrays(NamedArrays):
    """The arrays of an open group of zarr."""

    writer = "zarr.save_group(folder, {}=…)"

    def __init__(self, arrays: Mapping[str, Any], where: str, hint: str = FEWER) -> None:
        super().__init__(arrays, where)
        self._hint = hint

    def __getitem__(self, name: str) -> Array:
        own = self.own(name) or name
        return whole_array(self._arrays[own], f"{self.where}, array {own!r}", self._hint)
