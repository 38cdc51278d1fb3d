"""The state of this machine for sweeps: software, processors, memory, disk and caches."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

from mkldist.bank.cache import DEFAULT_BUDGET, DIRECTORY_VARIABLE, SUFFIX, default_directory, locked
from mkldist.core.durable import write_file
from mkldist.core.memory import available_memory, physical_memory
from mkldist.core.processors import n_processors

PACKAGES = (
    "numpy", "scipy", "numba", "scikit-learn", "pandas", "xarray", "zarr", "dask", "distributed",
)  # fmt: skip
EXTRAS = {
    "figures": (("matplotlib",), "figures of reports"),
    "netcdf": (("netCDF4",), "export to netCDF"),
    "parquet": (("pyarrow",), "data and exports in Parquet"),
    "search": (("optuna",), "adaptive search"),
    "dashboard": (("bokeh",), "the page that shows workers"),
    "cluster": (("dask_jobqueue",), "SLURM and other schedulers"),
    "gpu": (("torch", "array_api_compat"), "banks on a device"),
}
"""Packages that each extra installs, by the names under which they are imported; what it gives."""
PIECE_BYTES, PIECES = 2**20, 64  # of the file whose writing is timed
SLOW = 50 * 2**20  # bytes a second; a slower disk keeps processors waiting for banks
SMALL_MEMORY = 2 * 2**30
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    name : str
        What it is.
    words : str
        Its state.
    advice : str
        What to do about it; empty if nothing need be done.
    hinders : bool
        True if no sweep can run like this.
    """

    name: str
    words: str
    advice: str = ""
    hinders: bool = False


def examine(folder: Path) -> Iterator[Finding]:
    """Yield the findings, quick ones first.

    Parameters
    ----------
    folder : Path
        Folder on whose disk results shall lie; a file is written there and removed.
    """
    yield Finding("mkldist", f"{metadata.version('mkldist')}, {Path(__file__).parents[1]}")
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield _packages()
    yield _extras()
    yield _processors()
    yield _memory()
    yield _linear_algebra()
    yield _compiled_code()
    yield from _disk(folder)
    yield _node_cache()


def _packages() -> Finding:
    found, missing = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    advice = f"Install {', '.join(missing)}: pip install mkldist" if missing else ""
    return Finding("packages", ", ".join(found), advice, hinders=bool(missing))


def _extras() -> Finding:
    there = {
        extra: all(util.find_spec(module) is not None for module in modules)
        for extra, (modules, _) in EXTRAS.items()
    }
    missing = [extra for extra, found in there.items() if not found]
    groups = {"installed": [extra for extra in there if there[extra]], "not installed": missing}
    words = "; ".join(
        f"{state}: {', '.join(f'{extra} ({EXTRAS[extra][1]})' for extra in extras)}"
        for state, extras in groups.items()
        if extras
    )
    advice = f"If needed: pip install 'mkldist[{','.join(missing)}]'" if missing else ""
    return Finding("extras", words, advice)


def _processors() -> Finding:
    usable, there = n_processors(), os.cpu_count() or 1
    words = f"{usable}" if usable == there else f"{usable} of {there} that this process may use"
    return Finding("processors", words)


def _memory() -> Finding:
    available = available_memory()
    words = f"{_gib(available)} of {_gib(physical_memory())} available"
    few = available < SMALL_MEMORY
    return Finding("memory", words, "Give --memory, and fewer --workers" if few else "")


def _linear_algebra() -> Finding:
    import scipy.linalg  # noqa: F401  # loads the library whose threads are pluralize
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    words = {
        f"{pool.get('internal_api')} {pool.get('version')}, {pool.get('num_threads')} threads"
        for pool in pools
    }
    given = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    said = "; workers take one each"
    return Finding("BLAS", ", ".join([*sorted(words), *given] or ["unknown"]) + said)


def _compiled_code() -> Finding:
    from mkldist.core.compiled import jit_is_disabled
    from mkldist.solvers.hinge import slack_rounding

    if jit_is_disabled():
        return Finding("compiled code", "none by NUMBA_DISABLE_JIT", "Unset it: Python is slow")
    one: Any = slack_rounding  # any compiled function knows where numba keeps its code
    folder = Path(one.stats.cache_path)
    place = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parents[1])
    place = place if place in (folder, *folder.parents) else folder
    there = len(list(place.rglob("*.nbi"))) if place.is_dir() else 0
    advice = "" if there else "The first sweep compiles what it needs, which takes a minute or two"
    return Finding("compiled code", f"{there} functions in {place}", advice)


def _disk(folder: Path) -> Iterator[Finding]:
    """Yield the room, the speed and the locks of a folder's disk."""
    usage = shutil.disk_usage(folder)
    free = f"{_gib(usage.free)} of {_gib(usage.total)} free at {folder.absolute()}"
    yield Finding("disk", free)
    probe = folder / f".mkldist-doctor-{os.getpid()}"
    try:
        speed = speed_of_writing(probe)
        yield Finding(
            "disk speed",
            f"{speed / 2**20:.0f} MiB/s written and flushed",
            "" if speed > SLOW else "Choose a faster disk for banks: outputs.banks",
        )
        with locked(probe.with_suffix(".lock")):
            yield Finding("locks", "work")
    except Exception as error:
        advice = "Choose another folder: --output, or outputs.path in the sweep file"
        yield Finding("disk", str(error) or type(error).__name__, advice, hinders=True)
    finally:
        probe.unlink(missing_ok=True)
        probe.with_suffix(".lock").unlink(missing_ok=True)


def _node_cache() -> Finding:
    folder = default_directory()
    files = [file.stat().st_size for file in folder.glob(f"*{SUFFIX}")] if folder.is_dir() else []
    words = f"{_gib(sum(files))} of {_gib(DEFAULT_BUDGET)} in {folder}"
    there = next(place for place in (folder, *folder.parents) if place.exists())
    advice = ""
    if not os.access(there, os.W_OK):
        advice = f"It cannot be written: set {DIRECTORY_VARIABLE} to a folder of a local disk"
    return Finding("node cache", words, advice)


def speed_of_writing(path: Path) -> float:
    """Return bytes a second, written and flushed to the device as results and banks are."""
    start = time.perf_counter()
    write_file(path, [os.urandom(PIECE_BYTES)] * PIECES)
    return PIECES * PIECE_BYTES / max(time.perf_counter() - start, 1e-9)


def _gib(n_bytes: float) -> str:
    return f"{n_bytes / 2**30:.1f} GiB"
