"""Headers of arrays: those of numpy.save are parsed, all else is None."""

from __future__ import annotations

import io

import numpy as np
import pytest

from mkldist.npy_header import LONGEST, npy_header


def saved(array, version=(1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def with_size(size: bytes) -> bytes:
    """Return a header that says a size."""
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }\n" % size
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("dtype", ["<f8", ">i4", "|b1", "<U3", "<c16"])
def test_the_header_says_what_the_array_is(shape, dtype):
    array = np.zeros(shape, dtype=dtype)
    content = b"before" + saved(array)
    found = npy_header(content, len(b"before"))
    assert (np.dtype(found.dtype), found.shape) == (array.dtype, array.shape)
    assert not found.by_columns
    assert len(content) - len(b"before") == found.n_bytes + array.nbytes
    assert found.n_bytes < LONGEST


def test_columns_are_told_from_rows():
    assert npy_header(saved(np.asfortranarray(np.zeros((2, 3))))).by_columns


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        saved(np.zeros(2))[:40],
        saved(np.zeros(2), version=(2, 0)),
        saved(np.zeros(2, dtype=[("a", "<f8")])),
        saved(np.zeros(2)).replace(b"\x01\x00v\x00", b"\x01\x00u\x00"),
        saved(np.zeros(2)).replace(b"(2,)", b"(x,)"),
        saved(np.zeros((2, 3))).replace(b"(2, 3)", b"(2  3)"),
        with_size(b"9" * 5000),
    ],
)
def test_anything_else_has_no_header(content):
    assert npy_header(content) is None
