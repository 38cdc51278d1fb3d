"""The state of this machine, or of a cluster, for sweeps, as findings."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mkldist.bank.cache import DEFAULT_BUDGET, DIRECTORY_VARIABLE, SUFFIX, default_directory, locked
from mkldist.core.compiled import jit_is_disabled
from mkldist.core.durable import ABANDONED_AFTER_SECONDS, write_file
from mkldist.core.memory import (
    DEFAULT_TASK_BYTES,
    available_memory,
    physical_memory,
    readable_bytes,
)
from mkldist.core.threads import n_processors
from mkldist.core.wording import pluralize, truncate
from mkldist.errors import MkldistError
from mkldist.run.cluster import ConnectOptions, joined
from mkldist.run.probe import (
    ADVICE,
    NO_LOCK,
    SCHEDULER,
    Difference,
    Environment,
    all_versions_here,
    check_storage,
    differences,
)

if TYPE_CHECKING:
    from distributed import Client

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
    """One thing that was looked at."""

    name: str  # what it is
    words: str  # its state
    advice: str = ""  # what to do about it; empty if nothing need be done
    hinders: bool = False  # True if no sweep can run like this


def examine(folder: Path) -> Iterator[Finding]:
    """Yield the findings, quick ones first."""
    yield Finding("mkldist", f"{metadata.version('mkldist')}, {Path(__file__).parents[1]}")
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield _packages()
    yield _extras()
    yield _processors()
    yield _memory()
    yield _linear_algebra()
    if jit_is_disabled():
        found = "none by NUMBA_DISABLE_JIT"
        yield Finding("compiled code", found, "Unset it: Python is slow")
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
    words = f"{readable_bytes(available)} of {readable_bytes(physical_memory())} available"
    few = available < SMALL_MEMORY
    return Finding("memory", words, "Give --memory, and fewer --workers" if few else "")


def _linear_algebra() -> Finding:
    import scipy.linalg  # noqa: F401  # loads the library whose threads are counted
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    words = {
        f"{pool.get('internal_api')} {pool.get('version')}, {pool.get('num_threads')} threads"
        for pool in pools
    }
    given = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    message = "; workers take one each"
    return Finding("BLAS", ", ".join([*sorted(words), *given] or ["unknown"]) + message)


def _disk(folder: Path) -> Iterator[Finding]:
    """Yield the room, the speed and the locks of a folder's disk."""
    usage = shutil.disk_usage(folder)
    free = (
        f"{readable_bytes(usage.free)} of {readable_bytes(usage.total)} free at {folder.absolute()}"
    )
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
    words = f"{readable_bytes(sum(files))} of {readable_bytes(DEFAULT_BUDGET)} in {folder}"
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


Answer = TypeVar("Answer", bound=Hashable)

SHOWN = 3
INSTEAD = {
    "results": "workers fetch the data through the scheduler instead",
    "banks": "each machine builds banks for itself instead",
}
"""What a sweep does where workers share no folder with its process."""
ADVICE_SHARED = "A folder that all machines see under one path, or a URL of banks, saves that work"
CLOCK_SECONDS = 60.0
"""Clocks that differ by more make the times of records misleading."""


def version_findings(unequal: Sequence[Difference], n_equal: int) -> Iterator[Finding]:
    """Yield a finding for each version that differs, or one of the versions that all have."""
    if not unequal:
        same = ", ".join(f"{name} {message}" for name, message in all_versions_here().items())
        yield Finding("versions", same.replace(" version ", " ") + ", everywhere")
    answers = ((one.process, str(one)) for one in unequal)
    for message, processes in _alike(answers).items():
        hinders = SCHEDULER in processes or not n_equal
        rest = "" if hinders else f"; sweeps leave {'it' if len(processes) == 1 else 'them'} out"
        yield Finding("versions", f"{_names(processes)}: {message}{rest}", ADVICE, hinders)


def failure_findings(failed: Mapping[str, BaseException], n_sound: int) -> Iterator[Finding]:
    """Yield the errors with which workers answered, alike ones together."""
    answers = ((worker, f"{type(error).__name__}: {error}") for worker, error in failed.items())
    for message, workers in _alike(answers).items():
        words = f"{_names(workers)} cannot be examined ({message})"
        yield Finding("workers", words, "Sweeps leave such workers out", hinders=not n_sound)


def place_findings(name: str, root: str, wrong: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether all workers share a folder or store with the coordinator."""
    for message, workers in _alike(wrong.items()).items():
        if not message:
            words = f"{root}, read and written by {pluralize(len(workers), 'worker')}"
            yield Finding(name, words)
        elif message == NO_LOCK:
            advice = "Start a sweep from one machine alone, or mount the folder with locks"
            yield Finding(name, f"{root}, {_names(workers)}: {message}", advice)
        elif "://" not in root:
            words = f"{root}, {_names(workers)}: {message}; {INSTEAD[name]}"
            yield Finding(name, words, ADVICE_SHARED)
        else:
            advice = "Choose a place that all machines reach under the same URL"
            hinders = len(workers) == len(wrong)
            yield Finding(name, f"{root}, {_names(workers)}: {message}", advice, hinders)


def cache_findings(found: Mapping[str, Environment]) -> Iterator[Finding]:
    """Yield room and kind of disk of the node cache of each machine, alike ones together."""
    name = "node cache"
    advice = f"Set {DIRECTORY_VARIABLE} on the workers to a folder of a disk of their machine"
    hosts = {(one.host, one.cache): one for one in found.values()}
    answers = ((host, (one.cache, *_of_cache(one))) for (host, _), one in hosts.items())
    for (folder, words, good), machines in _alike(answers).items():
        least = min(one.cache_bytes for one in hosts.values() if one.cache == folder)
        free = f", {readable_bytes(least)} free" if least >= 0 else ""
        yield Finding(name, f"{folder} on {_names(machines)}{free}{words}", "" if good else advice)


def _of_cache(one: Environment) -> tuple[str, bool]:
    """Return what to say of a node cache, and whether it is good."""
    if one.cache_bytes < 0:
        return ", which cannot be written: every pass reads banks from their store", False
    if one.cache_is_remote:
        return ", on a file system of other machines", False
    if one.cache_bytes < DEFAULT_BUDGET:
        return f", less than the {readable_bytes(DEFAULT_BUDGET)} that it may grow to", True
    return "", True


def clock_finding(seconds: Mapping[str, float]) -> Finding:
    """Return how far the clocks of workers are from the one here.

    Files that killed processes left are removed when they are an hour old, by these clocks.
    """
    worker, most = max(seconds.items(), key=lambda one: one[1])
    if most <= CLOCK_SECONDS:
        return Finding("clocks", f"within {max(most, 0.1):.1f} s of the one here")
    words = f"that of {worker} is {most:.0f} s away from the one here"
    hinders = most > ABANDONED_AFTER_SECONDS / 2
    return Finding("clocks", words, "Let NTP set the clocks of all machines", hinders)


def thread_findings(
    found: Mapping[str, Environment], threads: Mapping[str, int]
) -> Iterator[Finding]:
    """Yield the threads of workers and the processors of their machines, alike ones together."""
    taken, processors = _threads_of_machines(found, threads), dict[str, int]()
    for one in found.values():
        processors[one.host] = max(processors.get(one.host, 0), one.processors)
    answers = ((host, (taken[host], processors[host])) for host in taken)
    for (n_threads, there), machines in _alike(answers).items():
        here = f"{pluralize(n_threads, 'thread')} on {pluralize(there, 'processor')}"
        advice = "Start fewer workers or threads there" if n_threads > there else ""
        yield Finding("threads", f"{here}: {_names(machines)}", advice)


def memory_findings(
    found: Mapping[str, Environment], threads: Mapping[str, int]
) -> Iterator[Finding]:
    """Yield the memory that the machine with least of it has for each thread."""
    taken = _threads_of_machines(found, threads)
    each = {one.host: one.memory // max(1, taken[one.host]) for one in found.values()}
    host = min(each, key=lambda one: each[one])
    advice = "" if each[host] >= DEFAULT_TASK_BYTES else "Give --memory, or start fewer workers"
    words = f"at least {readable_bytes(each[host])} for each thread, on {host}"
    yield Finding("memory", words, advice)


def limit_findings(found: Mapping[str, Environment]) -> Iterator[Finding]:
    """Yield the limits on memory by which Dask would stop workers that map banks."""
    answers = ((worker, one.limits) for worker, one in found.items())
    for limits, workers in _alike(answers).items():
        if limits:
            words = f"memory limits of Dask ({', '.join(limits)}) hold for {_names(workers)}"
            advice = "Start workers with DASK_CONFIG=cluster/dask.yaml: mapped banks count in them"
            yield Finding("settings", words, advice)


def _threads_of_machines(
    found: Mapping[str, Environment], threads: Mapping[str, int]
) -> Counter[str]:
    """Return the threads of all workers of each machine."""
    taken: Counter[str] = Counter()
    for worker, one in found.items():
        taken[one.host] += threads.get(worker, 1)
    return taken


def _alike(answers: Iterable[tuple[str, Answer]]) -> dict[Answer, list[str]]:
    """Return who gave each answer."""
    found: dict[Answer, list[str]] = defaultdict(list)
    for who, answer in answers:
        found[answer].append(who)
    return found


def _names(processes: Sequence[str]) -> str:
    """Return the names of a few processes or machines, workers by their addresses."""
    names = [name if "://" not in name else f"worker {name}" for name in processes]
    return truncate(names, SHOWN)


POLL_SECONDS = 0.1


def examine_cluster(
    options: ConnectOptions, places: Mapping[str, str], wait_seconds: float
) -> Iterator[Finding]:
    """Yield what is found of a cluster; what stops every sweep at once ends it."""
    with ExitStack() as stack:
        start = time.monotonic()
        try:
            client = stack.enter_context(joined(options))
        except MkldistError as error:
            yield Finding(SCHEDULER, f"{error.where}: {error.found}", error.hint, hinders=True)
            return
        address = client.scheduler_info(n_workers=0)["address"]
        yield Finding(SCHEDULER, f"{address} answered in {time.monotonic() - start:.1f} s")
        expected = options.expected_threads()
        n_workers = _wait(client, expected, wait_seconds)
        yield _workers(client, n_workers, expected, wait_seconds)
        if n_workers:
            yield from _examine_workers(client, places)


def _wait(client: Client, expected: int, seconds: float) -> int:
    """Wait for so many workers, for one if the number is unknown; return how many there are."""
    deadline = time.monotonic() + seconds
    while (there := len(client.nthreads())) < max(1, expected) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return there


def _workers(client: Client, n_workers: int, expected: int, seconds: float) -> Finding:
    if not n_workers:
        advice = "Look at the queue of jobs and at what they logged, or wait longer: --wait"
        return Finding("workers", f"none joined within {seconds:g} s", advice, hinders=True)
    threads = pluralize(sum(client.nthreads().values()), "thread")
    words, advice = f"{pluralize(n_workers, 'worker')} with {threads}", ""
    if n_workers < expected:
        words += f"; {expected - n_workers} more did not join within {seconds:g} s"
        advice = "A sweep begins with the workers that are there"
    return Finding("workers", words, advice)


def _examine_workers(client: Client, places: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what is found of workers; those without an equal mkldist are asked nothing more."""
    compared = differences(client)
    yield from version_findings(compared.unequal, len(compared.equal))
    if not compared.equal:
        return
    tried = check_storage(client, places, compared.equal)
    for name, error in tried.refused.items():
        yield Finding(name, f"{error.where}: {error.found}", error.hint, hinders=True)
    for name, wrong in tried.wrong.items():
        yield from place_findings(name, places[name], wrong)
    yield from failure_findings(tried.failed, len(tried.found))
    if not tried.found:
        return
    yield from cache_findings(tried.found)
    if seconds := _clock_seconds(client, sorted(tried.found)):
        yield clock_finding(seconds)
    threads = client.nthreads()
    yield from thread_findings(tried.found, threads)
    yield from memory_findings(tried.found, threads)
    yield from limit_findings(tried.found)


def _clock_seconds(client: Client, workers: list[str]) -> dict[str, float]:
    """Return by how many seconds the clock of each worker differs from the one here, at least.

    Workers that have gone meanwhile are not among them.
    """
    before = time.time()
    replies = client.run(time.time, workers=workers, on_error="return")
    after = time.time()
    there = {worker: at for worker, at in replies.items() if isinstance(at, float)}
    return {worker: max(before - at, at - after, 0.0) for worker, at in there.items()}
