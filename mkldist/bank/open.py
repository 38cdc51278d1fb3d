"""Opening of a Gram store as the kind of bank that suits the memory of a worker."""

from __future__ import annotations

from contextlib import suppress
from functools import cache as memoised
from functools import partial
from pathlib import Path
from typing import Literal

from mkldist.bank.bank import Bank, MemoryBank
from mkldist.bank.build import BlockBuilder
from mkldist.bank.cache import NodeCache, default_directory
from mkldist.bank.loading import BankBuffer, load_entries
from mkldist.bank.store import GramStore
from mkldist.bank.streamed import StreamedBank
from mkldist.core.memory import bank_bytes, row_cache_bytes
from mkldist.errors import OutputError

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
        ``"memory"`` loads the bank into this process.  ``"mmap"`` maps it from the node cache, so
        that the processes of a node share it; a bank too large for the cache, or a cache that
        cannot be written, is streamed.  ``"stream"`` reads the store in every pass.
    memory_limit : int, optional
        Bytes that this process may take.  A mapped bank larger than half of it gives pages back
        while it is read; a streamed one keeps single kernels in a quarter of it.
    cache : NodeCache, optional
        Node cache for ``"mmap"``; by default that of the user.
    builder : BlockBuilder, optional
        Builder that computes the blocks that the store lacks.
    buffer : BankBuffer, optional
        Memory into which a bank is loaded.

    Raises
    ------
    mkldist.bank.loading.DamagedBlocksError
        If blocks are damaged; its ``blocks`` names them.  A streamed bank raises it when it is
        read.
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
    """Return the node cache of a folder, one for a process, so that each file is checked once."""
    return NodeCache(directory)
