"""Metadata documents of zarr version 3, written directly.

A sweep's tree has thousands of arrays of a few shapes.  Their metadata are small JSON documents,
which the format specifies.  Writing those of 3,000 arrays here takes 0.3 s of processor time;
``create_hierarchy`` of zarr 3.1 with the consolidation takes 2.7 s, and creating the arrays one by
one 6 s.  The document of the root repeats those of all nodes, as readers of consolidated metadata
expect, so that opening the tree reads one file.  Its attribute ``checksum`` covers all of it, and
the last codec of every array that of a chunk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mkldist.checked_json import BLANK, CHECKSUM, filled, is_checked, json_value
from mkldist.durable import write_file, write_json

DOCUMENT = "zarr.json"
CHUNK_BYTES = 4 * 2**20
NAMES_PER_CHUNK = 65536
CHARACTERS = "characters"
"""Attribute of a text coordinate: length of the longest text."""
COORDINATE_NAMES = "coordinates"
"""Attribute of a group, which xarray knows: its coordinates other than those of a dim."""
COMPRESSION_LEVEL = 0  # of zstd: its default

CHECKED = {"name": "crc32c"}
"""Codec of a checksum over all bytes of a chunk."""

Document = dict[str, Any]
_FILLS = {"float64": "NaN", "int64": 0, "bool": False, "string": ""}


def group_document(attributes: Mapping[str, Any] | None = None) -> Document:
    """Return the document of a group."""
    return {"zarr_format": 3, "node_type": "group", "attributes": dict(attributes or {})}


def array_document(
    dims: Mapping[str, int],
    dtype: str,
    chunks: Sequence[int],
    *,
    fill: Any = None,
    attributes: Mapping[str, Any] | None = None,
) -> Document:
    """Return the document of an array with compressed chunks, each followed by its checksum.

    Parameters
    ----------
    dims : mapping of str to int
        Names and sizes of its dims.
    dtype : str
        ``"float64"``, ``"int64"``, ``"bool"`` or ``"string"``.
    chunks : sequence of int
        Shape of a chunk.
    fill : optional
        Value of entries that were never written; by default NaN, 0, False or the empty string.
    attributes : mapping, optional
        Attributes of the array.
    """
    zstd = {"level": COMPRESSION_LEVEL, "checksum": False}
    bytes_codec: Document = {"name": "bytes", "configuration": {"endian": "little"}}
    if dtype == "bool":
        bytes_codec = {"name": "bytes"}
    elif dtype == "string":
        bytes_codec = {"name": "vlen-utf8", "configuration": {}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(dims.values()),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _FILLS[dtype] if fill is None else fill,
        "codecs": [bytes_codec, {"name": "zstd", "configuration": zstd}, CHECKED],
        "attributes": dict(attributes or {}),
        "dimension_names": list(dims),
        "storage_transformers": [],
    }


def run_chunks(run_dims: Mapping[str, int], vector: int | None = None) -> tuple[int, ...]:
    """Return the chunk shape of a variable: one split, with all hyperparameters if they fit.

    If a long vector makes the runs of one split too large for a chunk, each run has its own chunks.
    No chunk of such a vector is larger than :data:`CHUNK_BYTES`.

    Examples
    --------
    >>> run_chunks({"split": 20, "C": 13})
    (1, 13)
    >>> run_chunks({"split": 20, "C": 13}, 442)
    (1, 13, 442)
    >>> run_chunks({"split": 20, "C": 13}, 1_000_000)
    (1, 1, 524288)
    """
    sizes = [max(size, 1) for size in list(run_dims.values())[1:]]
    if vector is None:
        return (1, *sizes)
    total = 8 * max(vector, 1)
    for size in sizes:
        total *= size
    if total <= CHUNK_BYTES:
        return (1, *sizes, max(vector, 1))
    return (1, *(1 for _ in sizes), min(vector, CHUNK_BYTES // 8))


def write_documents(root: Path, documents: Mapping[str, Document]) -> None:
    """Write the documents of a new tree, that of the root (path ``""``) last.

    The root's makes the tree: no reader looks at the others before, so they are written plainly.
    """
    for path, document in documents.items():
        if path:
            folder = root / path
            folder.mkdir(parents=True, exist_ok=True)
            (folder / DOCUMENT).write_text(json.dumps(document))
    root.mkdir(parents=True, exist_ok=True)
    below = {path: document for path, document in documents.items() if path}
    write_root(root, _with_consolidated(documents[""], below))


def add_arrays(root: Path, documents: Mapping[str, Document]) -> None:
    """Add arrays to a tree that others may be reading, or replace the metadata of some.

    Temporary files lie beside the tree, where the next process to open it removes them.
    """
    for path, document in documents.items():
        write_json(root / path / DOCUMENT, document, through=root.parent)
    known = read_root(root)
    below = known["consolidated_metadata"]["metadata"]
    merged = _with_consolidated(known, {**below, **documents})
    write_root(root, merged, through=root.parent)


def write_root(root: Path, document: Document, *, through: Path | None = None) -> None:
    """Write the document of a root, with a checksum of its text as the first attribute."""
    attributes = {CHECKSUM: BLANK, **document["attributes"]}
    text = json.dumps({**document, "attributes": attributes}).encode()
    write_file(root / DOCUMENT, [filled(text)], through=through)


def read_root(root: Path) -> Document:
    """Return the document of a tree's root, with those of its nodes.

    Raises
    ------
    ValueError
        If it is damaged or lacks them.
    OSError
        If it cannot be read.
    """
    text = (root / DOCUMENT).read_bytes()
    if not is_checked(text):
        raise ValueError("its checksum is missing")
    document = json_value(text)
    try:
        nodes = document["consolidated_metadata"]["metadata"]
    except (KeyError, TypeError) as error:
        raise ValueError("no metadata of a tree") from error
    if not isinstance(nodes, dict):
        raise ValueError("no metadata of a tree")
    document.get("attributes", {}).pop(CHECKSUM, None)
    return dict(document)


def parsed_document(folder: Path) -> Document | None:
    """Return the document of a node as its own file has it, None if that is damaged."""
    try:
        document = json_value((folder / DOCUMENT).read_bytes())
    except (ValueError, OSError):
        return None
    return document if isinstance(document, dict) else None


def _with_consolidated(root: Document, below: Mapping[str, Document]) -> Document:
    # zarr finds the children of a group only if they follow each other, therefore sorted.
    metadata = dict(sorted(below.items()))
    inline = {"kind": "inline", "must_understand": False, "metadata": metadata}
    return {**root, "consolidated_metadata": inline}
