"""Check of all files of a tree of results: that they are there and fit their checksums.

A sweep's command checks its tree before it says that there is nothing to do.  Several threads read
its thousands of small files.  That still takes a good part of the command's time, so that a tree
whose files are those of the last check is read again only after a day.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np

from mkldist.checked_json import parsed, write_checked
from mkldist.results.array_chunks import chunk_names, has_checksums, is_intact
from mkldist.results.convergence import trace_shape, traces_of
from mkldist.results.lost_chunks import lost_chunks
from mkldist.results.records import RecordStore
from mkldist.results.reported import scalars
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import CONVERGENCE, TRACES
from mkldist.results.tree_index import Place, TreeIndex
from mkldist.results.zarr_documents import DOCUMENT, Document, parsed_document, read_root

NOTE = ".checked.json"
SECONDS = 86400.0  # for which a check is trusted
READERS = 8  # threads: files are small, so that one thread waits for the disk most of the time
CHUNKS_AT_ONCE = 64  # for a thread
_DAMAGE = (ValueError, OSError, KeyError, TypeError, AttributeError, RuntimeError)


def is_sound(root: Path, note: Path) -> bool:
    """Return True if a tree has all chunks, and they and the root's document fit their checksums.

    Parameters
    ----------
    root : Path
        The tree.
    note : Path
        File that keeps when which files were found sound; it is written if the tree is.
    """
    try:
        documents = _documents(root)
        chunks = list(_chunks(root, documents))
    except _DAMAGE:
        return False
    files = _files(path for path, _ in chunks)
    with suppress(*_DAMAGE):
        known, checked = parsed(note.read_bytes())
        age = time.time() - known["time"]
        if checked and known["files"] == files and 0 <= age < SECONDS:
            return True
    if _damaged(chunks):
        return False
    try:
        if lost_chunks(root, documents):
            return False
    except _DAMAGE:
        return False
    with suppress(OSError):  # a folder that is full: the next check reads all files again
        write_checked(note, {"time": time.time(), "files": files})
    return True


def tree_files(root: Path) -> tuple[int, list[Path], bool]:
    """Return the number of a tree's files, the damaged and lost ones, and True if all are checked.

    Parameters
    ----------
    root : Path
        The tree.
    """
    try:
        documents = _documents(root)
        chunks = list(_chunks(root, documents))
    except _DAMAGE:
        return 1, [root / DOCUMENT], True
    damaged = [
        root / path / DOCUMENT
        for path, document in documents.items()
        if parsed_document(root / path) != document
    ]
    damaged += map(Path, _damaged(chunks))
    with suppress(*_DAMAGE):  # states that cannot be read are among the damaged files
        damaged += map(Path, lost_chunks(root, documents))
    there = sum(os.path.exists(path) for path, _ in chunks)  # noqa: PTH110, thousands of them
    checked = all(has_checksums(document) for _, document in chunks)
    return 1 + len(documents) + there, damaged, checked


def differing_runs(root: Path, store: RecordStore) -> list[str]:
    """Return the runs whose numbers in a tree are not those of their records.

    Runs without a record that can be read, and those that the tree does not hold yet, count as
    none.

    Parameters
    ----------
    root : Path
        The tree, without damaged files.
    store : RecordStore
        The records.
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


def _chunks(root: Path, documents: dict[str, Document]) -> Iterator[tuple[str, Document]]:
    """Yield the path of every chunk, written or not, and the document of its array."""
    for where, document in documents.items():
        if document["node_type"] == "array":
            folder = f"{root}/{where}/"
            for name in chunk_names(document):
                yield folder + name, document


def _files(paths: Iterator[str]) -> str:
    """Return a digest of the inodes, sizes and times of files."""
    digest = blake2b(digest_size=16)
    for path in paths:
        try:
            stat = os.stat(path)  # noqa: PTH116, thousands of them
        except OSError:
            digest.update(b"none;")
            continue
        digest.update(f"{stat.st_ino},{stat.st_size},{stat.st_mtime_ns};".encode())
    return digest.hexdigest()


def _damaged(chunks: Sequence[tuple[str, Document]]) -> list[str]:
    """Return the paths of the chunks that do not fit their checksums, in order."""

    def of_part(start: int) -> list[str]:
        part = chunks[start : start + CHUNKS_AT_ONCE]
        return [path for path, document in part if not _is_intact(path, document)]

    with ThreadPoolExecutor(READERS) as pool:
        parts = pool.map(of_part, range(0, len(chunks), CHUNKS_AT_ONCE))
        return [path for found in parts for path in found]


def _is_intact(path: str, document: Document) -> bool:
    """Return True if a chunk fits its checksum or was never written."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123, thousands of them
            content = file.readall()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return is_intact(content, document)
