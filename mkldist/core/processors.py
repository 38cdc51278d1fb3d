"""Processors that this process may use, as Dask counts them, without the import of Dask."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

GROUP = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")


@cache
def n_processors() -> int:
    """Return the number of processors that this process may run on.

    A container may be given less than the machine has: the quota of its control group counts,
    rounded up.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    return min([count, *map(math.ceil, quotas(GROUP, GROUPS))])


def quotas(group: Path, groups: Path) -> Iterator[float]:
    """Yield the processors that Linux grants a control group.

    Parameters
    ----------
    group : Path
        File that names the group of the process.
    groups : Path
        Folder of all groups, of version 1 or 2.
    """
    for name in ("cpuacct,cpu", "cpu,cpuacct"):
        with suppress(OSError, ValueError):
            quota = int((groups / name / "cpu.cfs_quota_us").read_text())
            period = int((groups / name / "cpu.cfs_period_us").read_text())
            if quota > 0:
                yield quota / period
    with suppress(OSError, ValueError):
        own = group.read_text().strip().rpartition(":")[2].lstrip("/")
        quota, period = map(int, (groups / own / "cpu.max").read_text().split())
        yield quota / period
