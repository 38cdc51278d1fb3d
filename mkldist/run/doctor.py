"""The state of this machine, or of a cluster, for sweeps, as findings."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

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
from mkldist.run.cluster import ConnectOptions, joined, no_worker
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
    """Yield the findings on this machine, quick ones first."""
    import scipy.linalg  # noqa: F401  # loads the library whose threads are counted
    from threadpoolctl import threadpool_info

    yield Finding("mkldist", f"{metadata.version('mkldist')}, {Path(__file__).parents[1]}")
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("system", f"{platform.system()} {platform.release()}, {platform.machine()}")
    there = {name: version for name in PACKAGES if (version := _version(name))}
    missing = ", ".join(name for name in PACKAGES if name not in there)
    advice = f"Install {missing}: pip install mkldist" if missing else ""
    words = ", ".join(f"{name} {version}" for name, version in there.items())
    yield Finding("packages", words, advice, hinders=bool(missing))
    usable, of_all = n_processors(), os.cpu_count() or 1
    but = f" of {of_all} that this process may use" * (usable != of_all)
    yield Finding("processors", f"{usable}{but}")
    available = available_memory()
    words = f"{readable_bytes(available)} of {readable_bytes(physical_memory())} available"
    few = "Give --memory, and fewer --workers" if available < SMALL_MEMORY else ""
    yield Finding("memory", words, few)
    libraries = {
        f"{pool.get('internal_api')} {pool.get('version')}, {pool.get('num_threads')} threads"
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    given = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    words = ", ".join([*sorted(libraries), *given] or ["unknown"])
    yield Finding("BLAS", f"{words}; workers take one each")
    if jit_is_disabled():
        found = "none by NUMBA_DISABLE_JIT"
        yield Finding("compiled code", found, "Unset it: Python is slow")
    yield from _disk(folder)
    cache = default_directory()
    files = [file.stat().st_size for file in cache.glob(f"*{SUFFIX}")] if cache.is_dir() else []
    words = f"{readable_bytes(sum(files))} of {readable_bytes(DEFAULT_BUDGET)} in {cache}"
    above = next(place for place in (cache, *cache.parents) if place.exists())
    refused = f"It cannot be written: set {DIRECTORY_VARIABLE} to a folder of a local disk"
    yield Finding("node cache", words, "" if os.access(above, os.W_OK) else refused)


def _version(name: str) -> str:
    """Return the version of an installed package; empty if it is not installed."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(name)
    return ""


def _disk(folder: Path) -> Iterator[Finding]:
    """Yield the room, the speed and the locks of a folder's disk."""
    usage = shutil.disk_usage(folder)
    free = f"{readable_bytes(usage.free)} of {readable_bytes(usage.total)} free"
    yield Finding("disk", f"{free} at {folder.absolute()}")
    probe = folder / f".mkldist-doctor-{os.getpid()}"
    try:
        speed = speed_of_writing(probe)
        slow = "" if speed > SLOW else "Choose a faster disk for banks: outputs.banks"
        yield Finding("disk speed", f"{speed / 2**20:.0f} MiB/s written and flushed", slow)
        with locked(probe.with_suffix(".lock")):
            yield Finding("locks", "work")
    except Exception as error:
        advice = "Choose another folder: --output, or outputs.path in the sweep file"
        yield Finding("disk", str(error) or type(error).__name__, advice, hinders=True)
    finally:
        probe.unlink(missing_ok=True)
        probe.with_suffix(".lock").unlink(missing_ok=True)


def speed_of_writing(path: Path) -> float:
    """Return bytes a second, written and flushed to the device as results and banks are."""
    start = time.perf_counter()
    write_file(path, [os.urandom(PIECE_BYTES)] * PIECES)
    return PIECES * PIECE_BYTES / max(time.perf_counter() - start, 1e-9)


SHOWN = 3
INSTEAD = {
    "results": "workers fetch the data through the scheduler instead",
    "banks": "each machine builds banks for itself instead",
}
"""What a sweep does where workers share no folder with its process."""
ADVICE_SHARED = "A folder that all machines see under one path, or a URL of banks, saves that work"
LEFT_OUT = "sweeps leave such workers out"
CLOCK_SECONDS = 60.0
"""Clocks that differ by more make the times of records misleading."""

State = tuple[str, str, str, bool]
"""Process or machine, what is found of it, advice, and whether no sweep can run like this."""


def alike(name: str, states: Iterable[State]) -> Iterator[Finding]:
    """Yield a finding for each state, which names a few of the processes or machines in it."""
    found: dict[tuple[str, str, bool], list[str]] = defaultdict(list)
    for who, words, advice, hinders in states:
        found[words, advice, hinders].append(who if "://" not in who else f"worker {who}")
    for (words, advice, hinders), names in found.items():
        yield Finding(name, f"{truncate(names, SHOWN)}: {words}", advice, hinders)


def version_findings(unequal: Sequence[Difference], n_equal: int) -> Iterator[Finding]:
    """Yield a finding for each version that differs, or one of the versions that all have."""
    if not unequal:
        same = ", ".join(f"{name} {message}" for name, message in all_versions_here().items())
        yield Finding("versions", same.replace(" version ", " ") + ", everywhere")

    def state(one: Difference) -> State:
        hinders = one.process == SCHEDULER or not n_equal
        return one.process, f"{one}{'' if hinders else f'; {LEFT_OUT}'}", ADVICE, hinders

    yield from alike("versions", map(state, unequal))


def place_findings(name: str, root: str, wrong: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether all workers share a folder or store with the coordinator."""
    n_good = sum(not message for message in wrong.values())
    if n_good:
        yield Finding(name, f"{root}, read and written by {pluralize(n_good, 'worker')}")

    def state(worker: str, message: str) -> State:
        if message == NO_LOCK:
            advice = "Start a sweep from one machine alone, or mount the folder with locks"
            return worker, f"{root}: {message}", advice, False
        if "://" not in root:
            return worker, f"{root}: {message}; {INSTEAD[name]}", ADVICE_SHARED, False
        advice = "Choose a place that all machines reach under the same URL"
        return worker, f"{root}: {message}", advice, not n_good

    yield from alike(name, (state(*one) for one in wrong.items() if one[1]))


def cache_state(one: Environment) -> State:
    """Return room and kind of disk of the node cache of a worker's machine."""
    full = readable_bytes(DEFAULT_BUDGET)
    advice = f"Set {DIRECTORY_VARIABLE} on the workers to a folder of a disk of their machine"
    if one.cache_bytes < 0:
        found = "which cannot be written: every pass reads banks from their store"
    elif one.cache_is_remote:
        found = "on a file system of other machines"
    else:
        few = one.cache_bytes < DEFAULT_BUDGET
        found = f"with {'less than' if few else 'at least'} the {full} free that it may grow to"
        advice = ""
    return one.host, f"{one.cache}, {found}", advice, False


def machine_findings(
    found: Mapping[str, Environment], threads: Mapping[str, int]
) -> Iterator[Finding]:
    """Yield what is found of the machines of workers: cache, threads, memory, limits of Dask."""
    yield from alike("node cache", dict.fromkeys(map(cache_state, found.values())))
    hosts = {one.host: one for one in sorted(found.values(), key=lambda one: one.processors)}
    taken: Counter[str] = Counter()  # threads of all workers of each machine
    for worker, one in found.items():
        taken[one.host] += threads.get(worker, 1)

    def thread_state(host: str) -> State:
        there = hosts[host].processors
        words = f"{pluralize(taken[host], 'thread')} on {pluralize(there, 'processor')}"
        advice = "Start fewer workers or threads there" if taken[host] > there else ""
        return host, words, advice, False

    yield from alike("threads", map(thread_state, hosts))
    each, host = min((one.memory // max(1, taken[host]), host) for host, one in hosts.items())
    advice = "" if each >= DEFAULT_TASK_BYTES else "Give --memory, or start fewer workers"
    yield Finding("memory", f"at least {readable_bytes(each)} for each thread, on {host}", advice)
    advice = "Start workers with DASK_CONFIG=cluster/dask.yaml: mapped banks count in them"
    limited = ((worker, ", ".join(one.limits)) for worker, one in found.items() if one.limits)
    yield from alike(
        "settings", ((w, f"memory limits of Dask hold: {at}", advice, False) for w, at in limited)
    )


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
        deadline = time.monotonic() + wait_seconds
        while (there := len(client.nthreads())) < max(1, expected) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        if not there:
            advice = "Look at the queue of jobs and at what they logged, or wait longer: --wait"
            found = no_worker(f"none joined within {wait_seconds:g} s")
            yield Finding("workers", found, advice, hinders=True)
            return
        threads = pluralize(sum(client.nthreads().values()), "thread")
        words, advice = f"{pluralize(there, 'worker')} with {threads}", ""
        if there < expected:
            words += f"; {expected - there} more did not join within {wait_seconds:g} s"
            advice = "A sweep begins with the workers that are there"
        yield Finding("workers", words, advice)
        yield from _examine_workers(client, places)


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
    failed = {w: f"cannot be examined ({type(e).__name__}: {e})" for w, e in tried.failed.items()}
    advice, none = LEFT_OUT.capitalize(), not tried.found
    yield from alike("workers", ((worker, words, advice, none) for worker, words in failed.items()))
    if not tried.found:
        return
    before = time.time()
    replies = client.run(time.time, workers=sorted(tried.found), on_error="return")
    after = time.time()
    clocks = {worker: at for worker, at in replies.items() if isinstance(at, float)}
    if clocks:  # of workers that are still there, by how many seconds they differ at least
        yield clock_finding({w: max(before - at, at - after, 0.0) for w, at in clocks.items()})
    yield from machine_findings(tried.found, client.nthreads())
