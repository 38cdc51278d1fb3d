"""Content hashes: the names under which banks, runs and data sets are stored and found again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_PIECE = 2**20


def content_id(**parts: Any) -> str:
    """Return a 20-character hex id of JSON-serialisable `parts`, independent of their order.

    Examples
    --------
    >>> content_id(a=1, b="x") == content_id(b="x", a=1)
    True
    """
    return _id_of(_document({name: json_text(part) for name, part in parts.items()}))


class CommonParts:
    """Parts that many contents share, written as JSON once."""

    def __init__(self, **parts: Any) -> None:
        self._texts = {name: json_text(part) for name, part in parts.items()}
        self._templates: dict[tuple[str, ...], str] = {}  # of these parts, by the names of others

    def id_with(self, texts: Mapping[str, str]) -> str:
        """Return the :func:`content_id` of these parts and of others, given as :func:`json_text`.

        Examples
        --------
        >>> CommonParts(a=1).id_with({"b": json_text("x")}) == content_id(a=1, b="x")
        True
        """
        names = tuple(texts)
        if names not in self._templates:
            own = {name: text.replace("%", "%%") for name, text in self._texts.items()}
            self._templates[names] = _document(own | {name: f"%({name})s" for name in names})
        return _id_of(self._templates[names] % texts)


def json_text(part: Any) -> str:
    """Return a part of a content as JSON, which does not depend on the order of keys."""
    return json.dumps(part, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _document(texts: Mapping[str, str]) -> str:
    """Return parts that are written as JSON as one document."""
    return "{" + ",".join(f'"{name}":{texts[name]}' for name in sorted(texts)) + "}"


def _id_of(document: str) -> str:
    return hashlib.blake2b(document.encode(), digest_size=10).hexdigest()


def array_id(*arrays: npt.NDArray[Any] | None) -> str:
    """Return a 20-character hex id of the shapes, dtypes and bytes of `arrays`."""
    digest = hashlib.blake2b(digest_size=10)
    for array in arrays:
        if array is None:
            digest.update(b"none;")
            continue
        contiguous = np.ascontiguousarray(array)
        digest.update(f"{contiguous.dtype.str}{contiguous.shape};".encode())
        digest.update(contiguous.tobytes() if contiguous.dtype.hasobject else contiguous.data)
    return digest.hexdigest()


def array_file_id(path: Path) -> str:
    """Return the :func:`array_id` of the array in a ``.npy`` file, without holding the array.

    The file is read piece by piece, not mapped, so that the memory of the process stays as it is.
    """
    with path.open("rb") as file:
        try:
            is_known = np.lib.format.read_magic(file) == (1, 0)
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # numpy evaluates headers, which fails in many ways
            raise ValueError("no file of an array") from error
        if not is_known or dtype.hasobject or dtype.names:
            raise ValueError("no file of an array of numbers or text")
        digest = hashlib.blake2b(f"{dtype.str}{shape or (1,)};".encode(), digest_size=10)
        if by_columns and len(shape) > 1:
            for part in np.load(path, mmap_mode="r", allow_pickle=False):
                digest.update(np.ascontiguousarray(part).data)
        else:
            while piece := file.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()
