"""The state of a cluster for sweeps: its scheduler, its workers, and what they share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from mkldist.counted import counted
from mkldist.errors import MkldistError
from mkldist.run.cluster import ConnectOptions, joined
from mkldist.run.cluster_findings import (
    cache_findings,
    clock_finding,
    failure_findings,
    limit_findings,
    memory_findings,
    place_findings,
    thread_findings,
    version_findings,
)
from mkldist.run.doctor import Finding
from mkldist.run.shared_places import try_places
from mkldist.run.worker_versions import SCHEDULER, differences

if TYPE_CHECKING:
    from distributed import Client

POLL_SECONDS = 0.1


def examine_cluster(
    options: ConnectOptions, places: Mapping[str, str], wait_seconds: float
) -> Iterator[Finding]:
    """Yield what is found of a cluster; what stops every sweep at once ends it.

    Parameters
    ----------
    options : ConnectOptions
        The scheduler to join, or the file of the cluster to start.
    places : mapping of str to str
        Folders and URLs that the workers of a sweep share with this process, by what they hold.
    wait_seconds : float
        Longest time to wait for workers.
    """
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
    threads = counted(sum(client.nthreads().values()), "thread")
    words, advice = f"{counted(n_workers, 'worker')} with {threads}", ""
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
    tried = try_places(client, places, compared.equal)
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
    told = client.run(time.time, workers=workers, on_error="return")
    after = time.time()
    there = {worker: at for worker, at in told.items() if isinstance(at, float)}
    return {worker: max(before - at, at - after, 0.0) for worker, at in there.items()}
