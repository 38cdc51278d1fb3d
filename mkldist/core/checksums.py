"""Content hashes, under which banks, runs and data sets are stored, and checksums of files.

Checksums are CRC32C as zarr has it, of files, JSON documents and frames.

A frame holds a small dict and arrays.  It is a fixed header, a head and a body.  The header holds
the two lengths, the CRC32C of both and one of itself, so that a reader finds the next frame, or
passes over a body, without reading it.  The head is MessagePack: the dict, then name, dtype, shape
and length of each array.  The body holds the entries of the arrays.  Its checksum begins with that
of the head, so that head and body of different frames do not fit together.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mkldist.core.durable import MAGIC, write_file

CHECKSUM_BYTES = 4


def crc32c(parts: Iterable[bytes | npt.NDArray[np.uint8]]) -> bytes:
    """Return the CRC32C of bytes given in parts: 4 bytes, little-endian, as zarr writes it."""
    return _crc(0, *parts).to_bytes(CHECKSUM_BYTES, "little")


def _crc(start: int, *parts: bytes | npt.NDArray[np.uint8]) -> int:
    """Return the CRC32C of bytes given in parts, which goes on from `start`."""
    import google_crc32c

    for part in parts:
        start = google_crc32c.extend(start, part)
    return int(start)


@dataclass(frozen=True)
class Footer:
    """The end of a file: a mark of its format, then the CRC32C of everything before the mark."""

    magic: bytes

    @property
    def n_bytes(self) -> int:
        """Length of the footer."""
        return len(self.magic) + CHECKSUM_BYTES

    def of(self, parts: Iterable[bytes]) -> bytes:
        """Return the footer of a body that is given in parts."""
        return self.magic + crc32c(parts)

    def body(self, content: bytes) -> bytes | None:
        """Return a file's content without its footer, or None if the footer does not fit it."""
        body, footer = content[: -self.n_bytes], content[-self.n_bytes :]
        return body if footer == self.of([body]) else None


CHECKSUM = "checksum"
"""Name of the entry."""


def checked_json(document: Mapping[str, Any]) -> bytes:
    """Return a document as JSON text with its checksum, which :func:`parsed` checks."""
    others = {name: value for name, value in document.items() if name != CHECKSUM}
    checksum = crc32c([json.dumps(others).encode()]).hex()
    return json.dumps({CHECKSUM: f"crc32c:{checksum}", **others}).encode()


def parsed(text: bytes) -> dict[str, Any]:
    """Return a document without its checksum."""
    document = json_value(text)
    if not isinstance(document, dict) or text != checked_json(document):
        raise ValueError("its checksum is missing or does not fit")
    del document[CHECKSUM]
    return document


def json_value(text: str | bytes) -> Any:
    """Return the value of a JSON text."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects nested too deep") from None


def write_checked(target: Path, document: Mapping[str, Any]) -> None:
    """Write a document with its checksum at once; see :func:`mkldist.core.durable.replacing`."""
    write_file(target, [checked_json(document)])


Arrays = dict[str, npt.NDArray[Any]]

_FIELDS = struct.Struct("<8sIQII")  # magic, bytes of head and body, checksums of head and body
_CHECK = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECK.size
_INTEGER = 1  # code of integers of more than 64 bits
_RAW_KINDS = "biufcSU"  # dtypes whose entries are their bytes; texts of any length are packed


class FrameHeader(NamedTuple):
    """What precedes head and body of a frame."""

    head_bytes: int
    body_bytes: int
    head_crc: int
    body_crc: int

    @property
    def n_bytes(self) -> int:
        """Length of the whole frame."""
        return HEADER_BYTES + self.head_bytes + self.body_bytes

    def head(self, content: bytes) -> tuple[dict[str, Any], list[Any]] | None:
        """Return the dict of a head, and the descriptions of its arrays; None if it is damaged."""
        import msgpack

        if len(content) != self.head_bytes or _crc(0, content) != self.head_crc:
            return None
        try:
            found, arrays = msgpack.unpackb(content, strict_map_key=False, ext_hook=_from_extended)
        except (ValueError, TypeError, msgpack.UnpackException):
            return None
        return (found, arrays) if isinstance(found, dict) and isinstance(arrays, list) else None

    def is_body(self, content: bytes) -> bool:
        """Return True if `content` is the body of this frame."""
        return len(content) == self.body_bytes and _crc(self.head_crc, content) == self.body_crc


def frame(head: Mapping[str, Any], arrays: Mapping[str, npt.ArrayLike]) -> bytes:
    """Return a dict and arrays as a frame, which :func:`unframed` checks."""
    import msgpack

    described, parts = [], []
    for name, values in arrays.items():
        array = np.asarray(values)
        part = _entries(array)
        described.append([name, array.dtype.str, list(array.shape), len(part)])
        parts.append(part)
    packed = msgpack.packb([dict(head), described], default=_other)
    head_crc = _crc(0, packed)
    sizes = len(packed), sum(map(len, parts))
    fields = _FIELDS.pack(MAGIC, *sizes, head_crc, _crc(head_crc, *parts))
    return b"".join([fields, _CHECK.pack(_crc(0, fields)), packed, *parts])


def frame_header(content: bytes) -> FrameHeader | None:
    """Return the header with which `content` begins; None if there is none, or it is damaged."""
    fields, check = content[: _FIELDS.size], content[_FIELDS.size : HEADER_BYTES]
    if len(check) < _CHECK.size or not fields.startswith(MAGIC):
        return None
    if _CHECK.unpack(check) != (_crc(0, fields),):
        return None
    return FrameHeader(*_FIELDS.unpack(fields)[1:])


def unframed(content: bytes) -> tuple[dict[str, Any], Arrays] | None:
    """Return the dict and the arrays of one whole frame; None for anything else."""
    header = frame_header(content)
    if header is None or len(content) != header.n_bytes:
        return None
    body = HEADER_BYTES + header.head_bytes
    found = header.head(content[HEADER_BYTES:body])
    if found is None or not header.is_body(content[body:]):
        return None
    arrays = arrays_of(found[1], content[body:])
    return None if arrays is None else (found[0], arrays)


def arrays_of(described: Iterable[Any], body: bytes) -> Arrays | None:
    """Return the arrays of a sound body; None if their descriptions do not fit it."""
    import msgpack

    arrays, start = Arrays(), 0
    try:
        for name, dtype, shape, n_bytes in described:
            part = body[start : start + n_bytes]
            kind = np.dtype(dtype)
            if kind.kind in _RAW_KINDS:
                flat = np.frombuffer(part, kind)
            else:
                flat = np.array(msgpack.unpackb(part), dtype=object)
            arrays[name] = flat.reshape(shape).copy()
            start += n_bytes
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
    return arrays if start == len(body) else None


def _other(value: Any) -> Any:
    """Return numbers that MessagePack does not know: those of numpy, and integers over 64 bits."""
    import msgpack

    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, int):
        return msgpack.ExtType(_INTEGER, str(value).encode())
    raise TypeError(f"{type(value).__name__} in a head: numbers, texts, lists and mappings")


def _from_extended(code: int, data: bytes) -> int:
    if code != _INTEGER:
        raise ValueError(f"an unknown kind of value, {code}")
    return int(data)


def _entries(array: npt.NDArray[Any]) -> bytes:
    import msgpack

    if array.dtype.kind in _RAW_KINDS:
        return array.tobytes()
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array.flat):
        return bytes(msgpack.packb(array.ravel().tolist()))
    raise TypeError(f"an array of dtype {array.dtype}, which is neither of numbers nor of texts")


_PIECE = 2**20


def content_id(**parts: Any) -> str:
    """Return a 20-character hex id of JSON-serialisable `parts`, independent of their order."""
    document = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
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
