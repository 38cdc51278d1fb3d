"""Documents of zarr version 3 that describe a group and its arrays, written and read by themselves.

What is stored is read and written without an array library: see :mod:`mkldist.gram.chunks`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mkldist.checked_json import json_value
from mkldist.errors import StoreError
from mkldist.gram.blobs import Blobs

Store = TypeVar("Store")
GROUP = "zarr.json"
GROUP_DOCUMENT = {"zarr_format": 3, "node_type": "group"}

CHECKED_CODECS: list[dict[str, Any]] = [
    {"name": "bytes", "configuration": {"endian": "little"}},
    {"name": "crc32c"},
]


class DamagedDescriptionError(StoreError):
    """Documents of a bank that are missing, cut short or altered, and can be written again."""


def array_document(
    *,
    shape: tuple[int, ...],
    dtype: str,
    chunk: tuple[int, ...],
    fill_value: float,
    codecs: list[dict[str, Any]],
    dimension_names: list[str],
) -> dict[str, Any]:
    """Return the document of one array."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": codecs,
        "dimension_names": dimension_names,
        "attributes": {},
    }


def encoded(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a document."""
    return json.dumps(document, indent=2).encode()


def decoded(location: str, name: str, content: bytes | None) -> dict[str, Any]:
    """Return a document as a dictionary.

    Raises
    ------
    DamagedDescriptionError
        If it is missing or no JSON object.
    """
    where, hint = f"{location}/{name}", remedy(location)
    if content is None:
        raise DamagedDescriptionError(where, "no such file", "the description of a bank", hint)
    try:
        document = json_value(content)
    except ValueError as error:
        raise DamagedDescriptionError(
            where, f"{len(content)} bytes that are no JSON ({error})", "a whole document", hint
        ) from error
    if not isinstance(document, dict):
        raise DamagedDescriptionError(
            where, f"a JSON {type(document).__name__}", "a zarr document", hint
        )
    return document


def remedy(location: str) -> str:
    """Return what mends a damaged description."""
    return f"Repeat the sweep, which mends it, or delete {location}, to have it built again"


def described(
    blobs: Blobs,
    documents: Mapping[str, bytes],
    opened: Callable[[], Store],
    is_mostly: Callable[[], bool],
) -> Store:
    """Return a store whose documents are written if it is missing or its description is damaged.

    Any number of processes may do so at once.

    Parameters
    ----------
    blobs : Blobs
        The files of the store.
    documents : mapping of str to bytes
        The documents, that of the group last.
    opened : callable
        Opens the store by its documents.
    is_mostly : callable
        Returns True if enough documents are whole that the others are damaged, and not of others.

    Raises
    ------
    mkldist.errors.StoreError
        If something else has this name.
    mkldist.errors.OutputError
        If the documents cannot be written.
    """
    if blobs.get(GROUP) is None:
        _put(blobs, documents)
    blobs.discard_abandoned()
    try:
        return opened()
    except DamagedDescriptionError:
        if not is_mostly():
            raise
        _put(blobs, documents)
        return opened()


def _put(blobs: Blobs, documents: Mapping[str, bytes]) -> None:
    for name, document in documents.items():
        blobs.put(name, [document])


def check_documents(
    where: str, found: Mapping[str, Mapping[str, Any]], arrays: Mapping[str, Mapping[str, Any]]
) -> None:
    """Raise an error unless documents are those of a group and of its arrays.

    Parameters
    ----------
    where : str
        Place of the group, for messages.
    found : mapping of str to mapping
        The documents by name.
    arrays : mapping of str to mapping
        Those of the arrays as they should be.

    Raises
    ------
    DamagedDescriptionError
        Naming the first key that differs.
    """
    for name, wanted in {**arrays, GROUP: GROUP_DOCUMENT}.items():
        for key in sorted(set(wanted) | set(found[name])):
            if key != "attributes" and found[name].get(key) != wanted.get(key):
                raise DamagedDescriptionError(
                    f"{where}/{name}",
                    f"{key} = {found[name].get(key)!r}",
                    f"{wanted.get(key)!r}",
                    remedy(where),
                )
