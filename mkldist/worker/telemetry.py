"""Where and with what a run was computed: versions, BLAS, threads, machine."""

from __future__ import annotations

import os
import platform
import resource
import socket
import sys
from functools import cache
from importlib import metadata
from typing import Any

PACKAGES = ("mkldist", "numpy", "scipy", "numba", "scikit-learn", "zarr", "xarray", "distributed")


@cache
def environment() -> dict[str, Any]:
    """Return what is the same for all runs of this process, JSON-serialisable."""
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "host": socket.gethostname(),
        "processors": os.cpu_count() or 0,
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "blas": sorted(
            {f"{pool.get('internal_api')} {pool.get('version')}".strip() for pool in blas}
        ),
    }


def provenance(*, seed: int, data: str, bank: str, split: str, threads: int) -> dict[str, Any]:
    """Return what a run was computed from and with, JSON-serialisable.

    Parameters
    ----------
    seed : int
        Seed of the sweep.
    data, bank, split : str
        Fingerprints of the data set and the split, id of the bank.
    threads : int
        Threads that linear algebra may use.
    """
    return {
        **environment(),
        "seed": seed,
        "data_fingerprint": data,
        "bank": bank,
        "split_fingerprint": split,
        "blas_threads": threads,
        "pid": os.getpid(),
    }


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
