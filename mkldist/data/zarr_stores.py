"""Folders of zarr: open them, and hold their arrays to be whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.data.opening import REWRITE, check_file, exists
from mkldist.data.raw import check_fits
from mkldist.errors import DataError, MkldistError

MARKS = ("zarr.json", ".zarray", ".zgroup")
EXECUTES = "pickle"
"""Codec of zarr version 2 by which an array executes what its file says."""
CHUNK_BYTES = 2**28
"""Most bytes of a chunk that is larger than its array: zarr unpacks all of it."""
_DAMAGE = (
    OSError, ValueError, KeyError, TypeError, RuntimeError, ArithmeticError, AttributeError,
    IndexError, AssertionError, MemoryError,  # the last by the sizes that chunks claim
)  # fmt: skip


def is_zarr(path: Path) -> bool:
    """Return True for a folder that is an array or a group of zarr."""
    return exists(path) and any((path / mark).is_file() for mark in MARKS)


def check_zarr(path: Path, where: str) -> None:
    """Raise unless `path` is a folder of zarr.

    Raises
    ------
    DataError
        If it is absent, a file or another folder; as
        :func:`mkldist.data.opening.check_file` says it of files.
    """
    if is_zarr(path):
        return
    if not (exists(path) and path.is_dir()):
        check_file(path, where)
    found = "a directory without zarr.json" if path.is_dir() else "a file"
    raise DataError(where, found, "a folder that zarr wrote", REWRITE)


@contextmanager
def opened_zarr(path: Path, where: str) -> Iterator[Any]:
    """Open a folder of zarr: the array, or a dict of the arrays and groups of a group.

    Raises
    ------
    DataError
        If it is damaged, or an array is pickled or has huge chunks; also inside the ``with`` block.
    """
    import zarr

    try:
        node = zarr.open(path, mode="r")
        if isinstance(node, zarr.Array):
            _check_array(node, where)
            yield node
        else:
            yield _members(path, where)
    except MkldistError:
        raise
    except _DAMAGE as error:
        said = str(error) or type(error).__name__
        raise DataError(
            where,
            f"a zarr store that is damaged or cut short ({said})",
            "a complete zarr store",
            REWRITE,
        ) from error


def _members(path: Path, where: str) -> dict[str, Any]:
    """Return the arrays and groups of a group.

    They are opened one by one: where zarr lists them and one is damaged, it leaves tasks behind, of
    which Python tells the user.
    """
    import zarr

    members = {one.name: zarr.open(one, mode="r") for one in sorted(path.iterdir()) if is_zarr(one)}
    for name, one in members.items():
        if isinstance(one, zarr.Array):
            _check_array(one, f"{where}, array {name!r}")
    return members


def _check_array(array: Any, where: str) -> None:
    """Refuse an array whose chunks zarr might execute, or unpack to far more than the array."""
    named = (getattr(codec, "codec_id", "") for codec in (*array.filters, *array.compressors))
    if EXECUTES in named:
        found = f"an array that the codec {EXECUTES!r} has written, which may execute code"
        raise DataError(where, found, "numbers or text", "Write it with the codecs of zarr 3")
    most = max(array.nbytes, CHUNK_BYTES)
    chunks = array.shards or array.chunks
    if math.prod(chunks) * array.dtype.itemsize > most:
        raise DataError(
            where,
            f"chunks of shape {chunks} of an array of shape {array.shape}",
            "chunks that are no larger than their array",
            "Write the array again with smaller chunks",
        )


def check_whole(array: Any, where: str) -> None:
    """Raise unless all chunks of an array are stored.

    Raises
    ------
    DataError
        With the number of chunks that are.
    """
    if array.nchunks_initialized < array.nchunks:
        raise DataError(
            where,
            f"{array.nchunks_initialized} of {array.nchunks} chunks",
            "all of them",
            "Write the array again, with write_empty_chunks so that chunks of zeros are kept",
        )


def whole_array(array: Any, where: str, hint: str) -> Array:
    """Read an array at once.

    Parameters
    ----------
    array : zarr.Array
        The array.
    where : str
        The place to name in a message.
    hint : str
        What to do about an array that is too large.

    Raises
    ------
    DataError
        If chunks are not stored, or half of the memory does not hold it.
    """
    check_whole(array, where)
    check_fits(array.nbytes, where, hint)
    values = np.asarray(array[...])
    return np.array(values.tolist(), dtype=str) if values.dtype.kind in "TO" else values
