"""Check of all files of a tree of results: that they are there and fit their checksums.

A sweep's command checks its tree before it says that there is nothing to do.  It reads all files
each time: a flipped bit changes neither the size of a file nor its time.  One thread reads
thousands of small files that the system has in memory faster than several, which wait for each
other; several read them faster from a disk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np

from mkldist.results.array_chunks import chunk_names, is_intact
from mkldist.results.convergence import trace_shape, traces_of
from mkldist.results.lost_chunks import lost_chunks
from mkldist.results.records import RecordStore
from mkldist.results.reported import scalars
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import CONVERGENCE, TRACES
from mkldist.results.tree_index import Place, TreeIndex
from mkldist.results.zarr_documents import DOCUMENT, Document, parsed_document, read_root

READERS = 8  # threads, once one thread waits for the disk
WAITS_FROM = 2.0  # wall time of one thread over its processor time, from which on it waits
CHUNKS_AT_ONCE = 64  # for a thread
_DAMAGE = (ValueError, OSError, KeyError, TypeError, AttributeError, RuntimeError)


def is_sound(root: Path) -> bool:
    """Return True if a tree has all chunks, and these and its root fit their checksums."""
    try:
        documents = _documents(root)
        damaged, absent = _looked_at(list(_chunks(root, documents)))
        return not damaged and not lost_chunks(root, documents, absent)
    except _DAMAGE:
        return False


def tree_files(root: Path) -> tuple[int, list[Path]]:
    """Return the number of a tree's files, and the damaged and lost ones."""
    try:
        documents = _documents(root)
        chunks = list(_chunks(root, documents))
    except _DAMAGE:
        return 1, [root / DOCUMENT]
    damaged = [
        root / path / DOCUMENT
        for path, document in documents.items()
        if parsed_document(root / path) != document
    ]
    unfit, absent = _looked_at(chunks)
    damaged += map(Path, unfit)
    with suppress(*_DAMAGE):  # states that cannot be read are among the damaged files
        damaged += map(Path, lost_chunks(root, documents, absent))
    return 1 + len(documents) + len(chunks) - len(absent), damaged


def differing_runs(root: Path, store: RecordStore) -> list[str]:
    """Return the runs whose numbers in a tree are not those of their records.

    Runs without a record that can be read, and those that the tree does not hold yet, count as
    none.
    """
    index = TreeIndex(root)
    states, recorded = index.states(), store.ids()
    values = {
        node: {name: index.read(node, name) for name in names}
        for node, names in index.scalars.items()
    }
    differing = []
    for run_id, (node, place) in index.places.items():
        if recorded.get(run_id) is not states[run_id] or not states[run_id].is_recorded:
            continue
        record = store.read(run_id)
        if record is None:
            continue
        numbers = scalars(record, index.nodes[node])
        if not all(
            np.array_equal(array[place], numbers.get(name, np.nan), equal_nan=True)
            for name, array in values[node].items()
        ) or not _holds_traces(index, node, place, record):
            differing.append(run_id)
    return differing


def unrecorded_runs(root: Path, store: RecordStore) -> list[str]:
    """Return the runs that a tree calls recorded, and that have no record.

    Parameters
    ----------
    root : Path
        The tree.
    store : RecordStore
        The records; damaged ones count.

    Raises
    ------
    mkldist.errors.StoreError
        If the tree is damaged.
    """
    recorded = store.ids()
    states = TreeIndex(root).states()
    return [run for run, state in states.items() if state.is_recorded and run not in recorded]


def _holds_traces(index: TreeIndex, node: str, place: Place, record: RunRecord) -> bool:
    """Return True if a tree has the traces of a run; of names of kernels, that they are there."""
    for variable in TRACES:
        shape = trace_shape(index, node, variable)
        if shape is None or variable.name not in record.trace:
            continue
        wanted = traces_of(record, variable, shape, ())
        found = index.read(f"{node}/{CONVERGENCE}", variable.name, place)
        if variable.dtype == "string":
            same = np.array_equal(found != "", wanted != "")
        else:
            same = np.array_equal(found, wanted, equal_nan=True)
        if not same:
            return False
    return True


def _documents(root: Path) -> dict[str, Document]:
    """Return the documents below the root by path."""
    found: dict[str, Document] = read_root(root)["consolidated_metadata"]["metadata"]
    return found


def _chunks(root: Path, documents: dict[str, Document]) -> Iterator[str]:
    """Yield the path of every chunk, written or not, and the document of its array."""
    for where, document in documents.items():
        if document["node_type"] == "array":
            folder = f"{root}/{where}/"
            for name in chunk_names(document):
                yield folder + name


def _looked_at(chunks: Sequence[str]) -> tuple[list[str], set[str]]:
    """Return the paths of the chunks that do not fit their checksums, and of those not there."""

    def of_part(start: int) -> list[tuple[str, bool | None]]:
        part = chunks[start : start + CHUNKS_AT_ONCE]
        return [(path, _is_intact(path)) for path in part]

    starts = iter(range(0, len(chunks), CHUNKS_AT_ONCE))
    found = list[tuple[str, bool | None]]()
    began, worked = time.perf_counter(), time.thread_time()
    for start in starts:
        found += of_part(start)
        if time.perf_counter() - began > WAITS_FROM * (time.thread_time() - worked):
            break
    with ThreadPoolExecutor(READERS) as pool:
        found += chain.from_iterable(pool.map(of_part, starts))
    damaged = [path for path, intact in found if intact is False]
    return damaged, {path for path, intact in found if intact is None}


def _is_intact(path: str) -> bool | None:
    """Return True if a chunk fits its checksum, None if there is none."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123, thousands of them
            content = file.readall()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return False
    return is_intact(content)
