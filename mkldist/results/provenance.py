"""Provenance of a run: versions, commit, BLAS, threads, machine, and fingerprints of its inputs."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import time
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from mkldist.core.memory import physical_memory

PACKAGE = Path(__file__).parents[1]
SECONDS = 10.0  # for git to answer, on a slow file system


@cache
def source_commit(package: Path = PACKAGE) -> str:
    """Return the commit of a package's checkout; empty where it is installed otherwise.

    Parameters
    ----------
    package : Path
        The folder of the package, which lies at the top of the checkout.

    Returns
    -------
    str
        40 hexadecimal digits, and ``-dirty`` if a file of the checkout differs from the commit.
        A package that is installed inside of somebody else's checkout has no commit.
    """
    if not (package.parent / ".git").exists():
        return ""
    command = ["git", "--no-optional-locks", "-C", str(package), "describe", "--always", "--dirty",
               "--abbrev=40", "--exclude=*"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


PACKAGES = ("mkldist", "numpy", "scipy", "numba", "scikit-learn", "zarr", "xarray", "distributed")
CPUINFO = Path("/proc/cpuinfo")


@cache
def environment() -> dict[str, Any]:
    """Return versions and machine of this process, JSON-serialisable.

    ``commit`` is that of mkldist, empty where it does not run from a git checkout.
    """
    import scipy.linalg  # noqa: F401  SciPy loads a BLAS of its own
    from threadpoolctl import threadpool_info

    blas = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "commit": source_commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "host": socket.gethostname(),
        "processor": processor_name(),
        "processors": os.cpu_count() or 0,
        "memory_bytes": physical_memory(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "blas": sorted(
            {f"{pool.get('internal_api')} {pool.get('version')}".strip() for pool in blas}
        ),
    }


def provenance(*, seed: int, data: str, bank: str, split: str, threads: int) -> dict[str, Any]:
    """Return inputs, software, machine and end of a run that has just ended, JSON-serialisable.

    Parameters
    ----------
    seed : int
        Seed of the sweep.
    data, bank, split : str
        Fingerprint of the data set, id of the bank, fingerprint of the split.
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
        "ended": time.time(),
    }


def processor_name(cpuinfo: Path = CPUINFO) -> str:
    """Return the model of the processor; elsewhere than on Linux, what Python knows of it."""
    with suppress(OSError):
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor()


def _version(name: str) -> str:
    """Return the version of an installed package; empty if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
