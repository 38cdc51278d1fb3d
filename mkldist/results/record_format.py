"""The bytes of a record: an npz archive that carries a digest of itself.

The archive holds a JSON header and the arrays.  Its zip comment is the BLAKE2b digest of every byte
before it, because any zip tool and :func:`numpy.load` can read an archive with a comment, but not
one with a footer.  The digest is checked before any content is interpreted, so a truncated or
altered file is never read as a record.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.results.run_record import RunRecord
from mkldist.results.state import RunState

FORMAT = 1
DIGEST_BYTES = 16
_ARRAYS = (
    "kernels",
    "weights",
    "coefficients",
    "test_rows",
    "decision_values",
    "train_rows",
    "kernel_coefficients",
)
_GROUPS = {"trace": "trace.", "of_classes": "class."}


def encode(record: RunRecord) -> bytes:
    """Return a record as bytes, which :func:`decode` checks."""
    header = {
        item.name: getattr(record, item.name)
        for item in fields(record)
        if item.name not in (*_ARRAYS, *_GROUPS)
    }
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(record, name) for name in _ARRAYS}
    for group, prefix in _GROUPS.items():
        named = getattr(record, group).items()
        arrays |= {prefix + name: np.asarray(values) for name, values in named}
    text = json.dumps({"format": FORMAT, **header}).encode()
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, header=np.frombuffer(text, dtype=np.uint8), **arrays)
    return _seal(buffer.getvalue())


def is_whole(content: bytes) -> bool:
    """Return True if `content` equals the result of :func:`encode` to the last bit."""
    body, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
    return len(digest) == DIGEST_BYTES and digest == _digest(body)


def decode(content: bytes) -> RunRecord | None:
    """Return the record of `content`, or None for damaged bytes or another format."""
    if not is_whole(content):
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header: dict[str, Any] = json.loads(arrays.pop("header").tobytes())
    if header.pop("format", None) != FORMAT:
        return None
    header["state"] = RunState(header["state"])
    groups: dict[str, Any] = {
        group: {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        for group, prefix in _GROUPS.items()
    }
    given = {name: arrays[name] for name in _ARRAYS if name in arrays}
    return RunRecord(**header, **given, **groups)


def _seal(archive: bytes) -> bytes:
    """Append the digest as the zip comment; the comment's length is the archive's last field."""
    body = archive[:-2] + DIGEST_BYTES.to_bytes(2, "little")
    return body + _digest(body)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
