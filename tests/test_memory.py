"""Division of a worker's memory: known shares, and no more than there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.memory import (
    bank_bytes,
    live_solvers,
    row_cache_bytes,
    solver_bytes,
    view_cache_bytes,
)

MIB, GIB = 2**20, 2**30


@pytest.mark.parametrize(
    ("limit", "bank", "rows", "views"),
    [
        (None, GIB, 256 * MIB, 512 * MIB),
        (16 * GIB, 8 * GIB, 256 * MIB, 512 * MIB),
        (800 * MIB, 400 * MIB, 200 * MIB, 100 * MIB),
    ],
)
def test_shares_of_bank_and_caches(limit, bank, rows, views):
    assert (bank_bytes(limit), row_cache_bytes(limit), view_cache_bytes(limit)) == (
        bank,
        rows,
        views,
    )


def test_a_solver_takes_four_matrices_and_on_a_graph_nine():
    assert solver_bytes(1000) == 4 * 8 * 1000**2
    assert solver_bytes(1000, on_graph=True) == 9 * 8 * 1000**2


@pytest.mark.parametrize(
    ("limit", "n_points", "solvers"),
    [(128 * MIB, 512, 4), (128 * MIB, 500, 4), (128 * MIB, 513, 3), (None, 1024, 32), (1, 10, 1)],
)
def test_a_quarter_of_the_memory_is_for_solvers(limit, n_points, solvers):
    assert live_solvers(n_points, limit) == solvers


@given(limit=st.integers(1, 2**45), n_points=st.integers(1, 20_000), on_graph=st.booleans())
def test_shares_together_stay_within_the_limit_unless_one_solver_exceeds_it(
    limit, n_points, on_graph
):
    solvers = live_solvers(n_points, limit, on_graph=on_graph)
    taken = solvers * solver_bytes(n_points, on_graph=on_graph)
    others = bank_bytes(limit) + view_cache_bytes(limit)
    assert solvers == 1 or others + taken <= limit
    assert others <= limit
    assert row_cache_bytes(limit) <= bank_bytes(limit)  # a streamed bank has rows in its place
