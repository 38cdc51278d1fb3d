"""Content hashes: the names under which banks, runs and data sets are stored and found again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_PIECE = 2**20
_LONGEST_HEADER = 2**12
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][a-zA-Z]\d+)', 'fortran_order': (True|False), "
    rb"'shape': \(([\d, ]*)\), \} *\n",
    re.DOTALL,
)


def content_id(**parts: Any) -> str:
    """Return a 20-character hex id of JSON-serialisable `parts`, independent of their order.

    Examples
    --------
    >>> content_id(a=1, b="x") == content_id(b="x", a=1)
    True
    """
    return _id_of({name: json_text(part) for name, part in parts.items()})


class CommonParts:
    """Parts that many contents share, written as JSON once.

    Parameters
    ----------
    **parts : object
        JSON-serialisable parts.
    """

    def __init__(self, **parts: Any) -> None:
        self._texts = {name: json_text(part) for name, part in parts.items()}

    def id_with(self, **texts: str) -> str:
        """Return the :func:`content_id` of these parts and of others, given as :func:`json_text`.

        Examples
        --------
        >>> CommonParts(a=1).id_with(b=json_text("x")) == content_id(a=1, b="x")
        True
        """
        return _id_of(self._texts | texts)


def json_text(part: Any) -> str:
    """Return a part of a content as JSON, which does not depend on the order of keys."""
    return json.dumps(part, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _id_of(texts: Mapping[str, str]) -> str:
    """Return the id of parts that are written as JSON."""
    text = ",".join(f'"{name}":{texts[name]}' for name in sorted(texts))
    return hashlib.blake2b(f"{{{text}}}".encode(), digest_size=10).hexdigest()


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

    Raises
    ------
    ValueError
        If it is no file that :func:`numpy.save` wrote for an array of numbers or text.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(_LONGEST_HEADER)
        header = _NPY.match(start)
        if header is None or int.from_bytes(start[8:10], "little") != header.end() - 10:
            raise ValueError("no file of an array")
        sizes = [int(size) for size in header[3].decode().split(",") if size.strip()]
        shape = tuple(sizes) or (1,)
        digest = hashlib.blake2b(header[1] + f"{shape};".encode(), digest_size=10)
        if header[2] == b"True" and len(shape) > 1:
            for part in np.load(path, mmap_mode="r", allow_pickle=False):
                digest.update(np.ascontiguousarray(part).data)
        else:
            file.seek(header.end())
            while piece := file.read(_PIECE):
                digest.update(piece)
    return digest.hexdigest()
