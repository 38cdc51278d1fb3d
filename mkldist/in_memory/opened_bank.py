"""Banks of a Python session by their backend: loaded, mapped, streamed or computed in passes."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from mkldist.arrays import Floating
from mkldist.blas_threads import single_threaded
from mkldist.durable import temporary_folder, writing
from mkldist.errors import DataError
from mkldist.gram.bank import Bank, MemoryBank
from mkldist.gram.layout import TileLayout
from mkldist.gram.recomputed import RecomputedBank
from mkldist.gram.sources import BankSource, check_finite
from mkldist.in_memory.bank_size import Backend, BankSize
from mkldist.in_memory.side_by_side import side_by_side
from mkldist.machine_memory import GIB
from mkldist.memory import row_cache_bytes
from mkldist.processors import n_processors


def loaded(source: BankSource, dtype: np.dtype[np.floating]) -> MemoryBank:
    """Compute a bank into memory, several kernels side by side.

    Raises
    ------
    mkldist.errors.GramError
        If a kernel has values that the type cannot hold.
    """
    layout = TileLayout.for_points(source.n_points)
    values: Floating = np.empty((source.n_kernels, layout.n_entries), dtype=dtype)
    tiles = values.reshape(len(values), layout.n_tiles, layout.tile, layout.tile)

    def work(kernels: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            source.fill(kernels, slice(0, layout.n_tiles), layout, tiles[kernels])
            check_finite(values[kernels], kernels.start, source)

    with single_threaded():
        side_by_side(work, len(values), layout.n_entries)
    return MemoryBank(values, layout)


def recomputed(source: BankSource) -> RecomputedBank:
    """Return a bank whose kernels are computed in every pass."""
    return RecomputedBank(source, row_cache_bytes(None), n_processors())


class TemporaryFolder:
    """A new folder that is deleted with this object, or at the end of the process.

    Raises
    ------
    mkldist.errors.OutputError
        If no folder for temporary files can be written.
    """

    def __init__(self) -> None:
        with writing(parent := temporary_folder()):
            self.path = Path(tempfile.mkdtemp(prefix="mkldist-", dir=parent))
        self.delete = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class StoredBank:
    """A bank in a folder, and the temporary folder that ends with it.

    Parameters
    ----------
    bank : Bank
        The bank, open.
    temporary : TemporaryFolder or None
        The folder; None if the user gave one.
    """

    bank: Bank
    temporary: TemporaryFolder | None


def stored(
    make_source: Callable[[], BankSource],
    bank_id: str,
    size: BankSize,
    backend: Backend,
    folder: str | Path | None,
) -> StoredBank:
    """Build what a folder lacks of a bank, and open it there.

    Parameters
    ----------
    make_source : callable
        Returns the source of the bank's values; called only if blocks are missing.
    bank_id : str
        Name of the bank in the folder: a content hash, under which it is found again.
    size : BankSize
        Its size.
    backend : {"mmap", "stream"}
        How it is read.
    folder : str, Path or None
        The folder; None for a temporary one.

    Raises
    ------
    mkldist.errors.DataError
        If the disk has too little room.
    mkldist.errors.OutputError
        If the folder cannot be written.
    """
    from mkldist.gram.build import build_blocks
    from mkldist.gram.cache import NodeCache
    from mkldist.gram.open import open_bank
    from mkldist.gram.store import GramStore

    temporary = TemporaryFolder() if folder is None else None
    root = temporary.path if temporary is not None else Path(folder or ".")
    reading: Literal["mmap", "stream"] = "mmap" if backend == "mmap" else "stream"
    layout = TileLayout.for_points(size.n_points)
    store = GramStore.create(root, bank_id, size.n_kernels, layout, size.dtype)
    missing = store.missing()
    if missing:
        _require_room(root, len(missing) / len(store.blocks) * store.n_bytes)
        source = make_source()

        def build(blocks: slice) -> None:
            build_blocks(source, store, missing[blocks])

        with single_threaded():
            side_by_side(build, len(missing), store.n_bytes // len(store.blocks))
    return StoredBank(open_bank(store, reading, cache=NodeCache(root / "mapped")), temporary)


def _require_room(folder: Path, n_bytes: float) -> None:
    """Raise DataError if a disk has too little room for the blocks to build."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise DataError(
            str(folder),
            f"{free / GIB:.1f} GiB of free space",
            f"{n_bytes / GIB:.1f} GiB for the bank",
            "Choose another folder, or backend='recompute' for kernels of features",
        )
