"""Opening a complete Gram store as the bank that suits the memory of a worker."""

from __future__ import annotations

from contextlib import suppress
from functools import cache as memoised
from functools import partial
from pathlib import Path
from typing import Literal

from mkldist.errors import OutputError
from mkldist.gram.bank import Bank, MemoryBank
from mkldist.gram.buffer import BankBuffer
from mkldist.gram.build import BlockBuilder
from mkldist.gram.cache import NodeCache, default_directory
from mkldist.gram.loading import load_entries
from mkldist.gram.store import GramStore
from mkldist.gram.streamed import StreamedBank
from mkldist.memory import bank_bytes, row_cache_bytes

Backend = Literal["memory", "mmap", "stream"]


def open_bank(
    store: GramStore,
    backend: Backend,
    memory_limit: int | None = None,
    cache: NodeCache | None = None,
    builder: BlockBuilder | None = None,
    buffer: BankBuffer | None = None,
) -> Bank:
    """Return the bank of a store.

    Parameters
    ----------
    store : GramStore
        A store, complete unless there is a builder.
    backend : {"memory", "mmap", "stream"}
        Loaded into this process; mapped from the node cache and so shared by its processes; or
        read from the store at every pass.  A bank that finds no room in the node cache,
        or a cache that cannot be written, is streamed.
    memory_limit : int, optional
        Bytes that this process may take.  A mapped bank larger than half of it gives pages back
        as it is read; a streamed one keeps single kernels in a quarter of it.
    cache : NodeCache, optional
        For ``"mmap"``; by default the user's.
    builder : BlockBuilder, optional
        What computes the blocks that the store lacks.
    buffer : BankBuffer, optional
        What a bank is loaded into.

    Raises
    ------
    mkldist.gram.loading.DamagedBlocksError
        If blocks are damaged; its ``blocks`` names them.  A streamed bank finds them when it
        is read.
    mkldist.errors.UnreadableError
        If the medium does not answer.
    mkldist.errors.GramError, mkldist.errors.OutputError
        If a block cannot be built.
    """
    if backend == "memory":
        load = builder.load if builder else partial(load_entries, store)
        return MemoryBank(load(buffer or BankBuffer()), store.layout)
    if builder is not None:
        builder.build(store.missing())
    return _large(store, backend, memory_limit, cache)


def _large(
    store: GramStore, backend: Backend, memory_limit: int | None, cache: NodeCache | None
) -> Bank:
    """Return a bank that is not loaded into this process."""
    if backend == "mmap":
        with suppress(OutputError):
            limit = None if memory_limit is None else bank_bytes(memory_limit)
            mapped = (cache or _node_cache(default_directory())).open(store, resident_limit=limit)
            if mapped is not None:
                return mapped
    return StreamedBank(store, row_cache_bytes(memory_limit))


@memoised
def _node_cache(directory: Path) -> NodeCache:
    """Return this process's view of a node cache, which checks each of its files once."""
    return NodeCache(directory)
