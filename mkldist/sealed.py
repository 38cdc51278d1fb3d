"""Sealed archives: arrays and a JSON header as bytes that carry a digest of themselves.

The bytes are an ``.npz`` archive.  Its zip comment is the BLAKE2b digest of every byte before it,
because any zip tool and :func:`numpy.load` can read an archive with a comment, but not one with a
footer.  The digest is checked before any content is interpreted, so that truncated or altered bytes
are never read, and nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mkldist.npy_header import NpyHeader, npy_header

DIGEST_BYTES = 16
HEADER = "header"
_LOCAL = struct.Struct("<4s5H3L2H")  # what a zip archive has before the name of each file
_ZIP64 = struct.Struct("<HHQ")  # what follows the name: a kind, a length, the bytes of the file
_LOCAL_MARK, _CENTRAL_MARK = b"PK\x03\x04", b"PK\x01\x02"
_IN_ZIP64, _UNKNOWN_LENGTH = 2**32 - 1, 8
_SUFFIX = b".npy"
_NO_ARCHIVE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,  # an encrypted file, or one that is packed in an unknown way
    TypeError,  # a single array instead of an archive
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)

Arrays = dict[str, npt.NDArray[Any]]


def sealed(header: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return a header and arrays as bytes, which :func:`unsealed` checks.

    Parameters
    ----------
    header : mapping
        JSON-serialisable.
    arrays : mapping of str to array
        Arrays of numbers or text, none of them called ``header``.
    """
    text = json.dumps(header).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, header=np.frombuffer(text, dtype=np.uint8), **arrays)
    # The length of the comment is the last field of a zip archive.
    body = buffer.getvalue()[:-2] + DIGEST_BYTES.to_bytes(2, "little")
    return body + _digest(body)


def is_whole(content: bytes) -> bool:
    """Return True if `content` equals the result of :func:`sealed` to the last bit."""
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    return len(digest) == DIGEST_BYTES and digest == _digest(body)


def unsealed(content: bytes) -> tuple[dict[str, Any], Arrays] | None:
    """Return the header and the arrays of sealed bytes, or None if they are damaged.

    A right digest does not make an archive: whatever else carries one is None, too.
    """
    if not is_whole(content):
        return None
    try:
        arrays = _plain_arrays(content)
        if arrays is None:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        header = json.loads(arrays.pop(HEADER).tobytes())
    except _NO_ARCHIVE:
        return None
    are_arrays = all(isinstance(values, np.ndarray) for values in arrays.values())
    return (header, arrays) if isinstance(header, dict) and are_arrays else None


def _plain_arrays(content: bytes) -> Arrays | None:
    """Return the arrays of a whole archive that :func:`sealed` wrote; None for any other.

    A sweep has a hundred thousand of them, of twenty arrays each.  :func:`numpy.load` takes more
    than thirty times as long, since it evaluates every header as Python.
    """
    arrays, start = Arrays(), 0
    while content.startswith(_LOCAL_MARK, start):
        fields = _LOCAL.unpack_from(content, start)
        flags, packing, (n_bytes, n_name, n_more) = fields[2], fields[3], fields[-3:]
        after_name = start + _LOCAL.size + n_name
        name = content[start + _LOCAL.size : after_name]
        if n_bytes == _IN_ZIP64:
            n_bytes = _ZIP64.unpack_from(content, after_name)[-1]
        begin = after_name + n_more
        start = begin + n_bytes
        header = npy_header(content, begin)
        if packing or flags & _UNKNOWN_LENGTH or header is None or not name.endswith(_SUFFIX):
            return None
        values = _entries(content[begin:start], header)
        if values is None:
            return None
        arrays[name.removesuffix(_SUFFIX).decode()] = values
    return arrays if content.startswith(_CENTRAL_MARK, start) else None


def _entries(file: bytes, header: NpyHeader) -> npt.NDArray[Any] | None:
    """Return the array of a file; None if its header does not fit it."""
    try:
        flat = np.frombuffer(file, np.dtype(header.dtype), offset=header.n_bytes)
        order: Literal["F", "C"] = "F" if header.by_columns else "C"
        return flat.reshape(header.shape, order=order).copy(order)
    except (TypeError, ValueError):
        return None


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
