"""The memory of this machine, and its division: known shares, and no more than there is."""

import resource
from pathlib import Path

import numpy as np
import pytest
from dask.utils import format_bytes
from hypothesis import given
from hypothesis import strategies as st

from mkldist.core import memory
from mkldist.core.memory import (
    ProblemSize,
    SolverMemory,
    available_memory,
    bank_bytes,
    groups_at_once,
    physical_memory,
    readable_bytes,
    row_cache_bytes,
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


def test_a_solver_takes_matrices_of_the_points_and_vectors_of_the_kernels():
    size = ProblemSize(n_points=1000, n_kernels=50, n_labelled=1000)
    assert size.memory().needed == np.zeros((4, 1000, 1000)).nbytes + np.zeros((8, 50)).nbytes
    other = size.memory(matrices=0, vectors=1, spare_vectors=3)
    assert (other.needed, other.spare) == (np.zeros(50).nbytes, np.zeros((3, 50)).nbytes)


@pytest.mark.parametrize(
    ("limit", "bytes_of_each", "sizes"),
    [
        (128 * MIB, [8 * MIB] * 10, [4, 4, 2]),
        (128 * MIB, [9 * MIB] * 10, [3, 3, 3, 1]),
        (None, [32 * MIB] * 33, [32, 1]),
        (1, [10, 10], [1, 1]),
        (128 * MIB, [MIB, 30 * MIB, 2 * MIB, 40 * MIB, MIB, MIB], [2, 1, 1, 2]),
        (None, [], []),
    ],
)
def test_a_quarter_of_the_memory_is_for_solvers(limit, bytes_of_each, sizes):
    groups = groups_at_once(bytes_of_each, limit)
    assert [len(bytes_of_each[group]) for group in groups] == sizes
    assert [n for group in groups for n in bytes_of_each[group]] == bytes_of_each


@pytest.mark.parametrize(
    ("limit", "taken"),
    [(None, 30 * MIB), (120 * MIB, 30 * MIB), (80 * MIB, 20 * MIB), (8 * MIB, 10 * MIB)],
)
def test_a_solver_keeps_no_more_than_the_share_of_solvers_has_room_for(limit, taken):
    memory = SolverMemory(needed=10 * MIB, spare=20 * MIB)
    assert memory.within(limit) == taken
    assert memory.spare_within(limit) == taken - 10 * MIB


@given(limit=st.integers(1, 2**45), needed=st.integers(0, 2**36), spare=st.integers(0, 2**36))
def test_shares_together_stay_within_the_limit_unless_one_solver_exceeds_it(limit, needed, spare):
    taken = SolverMemory(needed, spare).within(limit)
    others = bank_bytes(limit) + view_cache_bytes(limit)
    [group, *_] = groups_at_once([taken] * 100, limit)
    n_at_once = group.stop
    assert (n_at_once == 1 and taken == needed) or others + n_at_once * taken <= limit
    assert others <= limit
    assert row_cache_bytes(limit) <= bank_bytes(limit)  # a streamed bank has rows in its place


@pytest.mark.parametrize("n_bytes", [0, 921, 922, 75_000, 943_718, 943_719, 7 * 10**9, 2**60])
def test_bytes_are_written_as_dask_writes_them(n_bytes):
    assert readable_bytes(n_bytes) == format_bytes(n_bytes)


def test_the_memory_of_this_machine_is_that_which_the_system_names():
    lines = Path("/proc/meminfo").read_text().splitlines()
    told = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if "kB" in line}
    assert abs(physical_memory() - told["MemTotal"]) < resource.getpagesize()
    assert told["MemFree"] / 2 < available_memory() < physical_memory()


@pytest.mark.parametrize(
    ("group", "limits"),
    [
        ("5:cpu:/a\n0::/a/b\n", {"a/memory.max": "4096\n", "a/b/memory.max": "max\n"}),
        ("9:memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096\n"}),
        ("9:memory:/unseen\n", {"memory/memory.limit_in_bytes": "4096\n"}),
        ("0::/\n", {"memory.max": "4096\n", "../memory.max": "1\n"}),
    ],
    ids=["of a parent", "version 1", "container of version 1", "container"],
)
def test_the_memory_of_a_control_group_is_its_limit(tmp_path, monkeypatch, group, limits):
    top = tmp_path / "top"
    for name, limit in limits.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(limit)
    (tmp_path / "cgroup").write_text(group)
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory, "CONTROLLERS", top)
    assert physical_memory() == available_memory() == 4096
