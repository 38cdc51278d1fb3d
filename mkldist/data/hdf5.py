"""Files of HDF5, as ``.h5ad`` and newer ``.mat`` files are: read by h5py, an extra."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mkldist.core.arrays import Array
from mkldist.data.checks import check_fits
from mkldist.data.opening import REWRITE, check_file, check_unpacked, imports
from mkldist.errors import DataError, MkldistError

FEWER = "Write fewer rows or columns, or use a machine with more memory"
_DAMAGE = (
    OSError, KeyError, ValueError, TypeError, RuntimeError, IndexError, AttributeError, EOFError,
    MemoryError, OverflowError,
)  # fmt: skip


@contextmanager
def opened_hdf5(path: Path, where: str) -> Iterator[Any]:
    """Open a file of HDF5; one that is damaged is refused, also inside the ``with`` block."""
    check_file(path, where)
    with imports("h5py", "formats", where):
        import h5py
    try:
        with h5py.File(path, "r") as file:
            yield file
    except MkldistError:
        raise
    except _DAMAGE as error:
        found = f"a file of HDF5 that is damaged or of another kind ({error})"
        raise DataError(where, found, f"a complete {path.suffix} file", REWRITE) from error


def whole(item: Any, where: str) -> Array:
    """Return an array of a file; refuse one that memory does not hold."""
    place = f"{where}, array {item.name!r}"
    n_bytes = item.size * item.dtype.itemsize
    check_fits(n_bytes, place, FEWER)
    chunk = math.prod(item.chunks) * item.dtype.itemsize if item.chunks else 0
    stored = item.id.get_storage_size()
    check_unpacked(max(n_bytes, chunk), stored, place, "an array", "h5repack")
    strings = item.dtype.kind == "O" and item.dtype.metadata and "vlen" in item.dtype.metadata
    found: Array = (item.asstr() if strings else item)[()]
    return found
