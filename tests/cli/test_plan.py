"""Bytes with a unit, against Dask's words for them."""

from __future__ import annotations

import pytest
from dask.utils import format_bytes

from mkldist.cli.plan import readable_bytes


@pytest.mark.parametrize("n_bytes", [0, 921, 922, 75_000, 943_718, 943_719, 7 * 10**9, 2**60])
def test_bytes_are_written_as_dask_writes_them(n_bytes: int):
    assert readable_bytes(n_bytes) == format_bytes(n_bytes)
