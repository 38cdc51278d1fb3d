"""The header of an array in NumPy's file format, parsed without evaluating it as Python."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

LONGEST = 2**12
"""Bytes that are enough to hold the header of any array of numbers or text."""
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][a-zA-Z]\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, )*(?:\d{1,18},?)?)\), \} *\n",
    re.DOTALL,
)
_BEFORE_TEXT = 10  # bytes of the format's name and version, and of the text's length


class NpyHeader(NamedTuple):
    """What a header says of its array.

    Parameters
    ----------
    dtype : str
        Dtype, such as ``"<f8"``.
    by_columns : bool
        True if the entries follow each other along the first dim.
    shape : tuple of int
        Shape.
    n_bytes : int
        Length of the header, after which the entries begin.
    """

    dtype: str
    by_columns: bool
    shape: tuple[int, ...]
    n_bytes: int


def npy_header(content: bytes, start: int = 0) -> NpyHeader | None:
    """Return the header of an array of numbers or text that :func:`numpy.save` wrote.

    Parameters
    ----------
    content : bytes
        The file, or as much of it as :data:`LONGEST`.
    start : int
        Where the file begins in `content`.

    Returns
    -------
    NpyHeader or None
        None for anything else.

    Examples
    --------
    >>> import io, numpy as np
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3)))
    >>> npy_header(file.getvalue())
    NpyHeader(dtype='<f8', by_columns=False, shape=(2, 3), n_bytes=128)
    """
    length = int.from_bytes(content[start + 8 : start + _BEFORE_TEXT], "little")
    return _parsed(content[start : start + _BEFORE_TEXT + length])


@lru_cache(maxsize=1024)  # the arrays of a sweep's records have few shapes
def _parsed(header: bytes) -> NpyHeader | None:
    found = _HEADER.fullmatch(header)
    if found is None:
        return None
    sizes = tuple(int(size) for size in found[3].decode().split(",") if size.strip())
    return NpyHeader(found[1].decode(), found[2] == b"True", sizes, len(header))
