"""What facts of workers mean: alike ones together, faults that stop sweeps, and advice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mkldist.run.doctor import (
    cache_findings,
    clock_finding,
    failure_findings,
    limit_findings,
    memory_findings,
    place_findings,
    thread_findings,
    version_findings,
)
from mkldist.run.probe import NO_LOCK, NOT_SEEN, Difference, Environment

GIB = 2**30
ONE = Environment("a", 4, 8 * GIB, "/scratch", 100 * GIB, False, (), {})
TWO = {"tcp://a:1": ONE, "tcp://a:2": ONE}
THREE = {**TWO, "tcp://b:1": replace(ONE, host="b")}


def test_equal_versions_are_one_finding_and_each_difference_is_a_fault():
    [same] = version_findings([], 2)
    assert same.words.startswith("Python 3.")
    assert not same.hinders
    older = [Difference(f"tcp://a:{i}", "numpy", "version 1", "version 2") for i in range(5)]
    lacks = Difference("scheduler", "mkldist", "no installation", "version 2")
    found = list(version_findings([*older, lacks], 1))
    assert [one.hinders for one in found] == [False, True]
    assert found[0].words == (
        "worker tcp://a:0, worker tcp://a:1, worker tcp://a:2, … 2 more: "
        "version 1 of numpy; version 2 here; sweeps leave them out"
    )
    assert all(one.hinders for one in version_findings(older, 0))
    assert found[1].words == "scheduler: no installation of mkldist; version 2 here"


def test_a_folder_that_a_worker_does_not_share_is_no_fault_but_a_store_that_none_reaches_is():
    wrong = {"tcp://a:1": "", "tcp://b:1": NOT_SEEN}
    good, other = place_findings("banks", "/b", wrong)
    assert good.words == "/b, read and written by 1 worker"
    assert (good.hinders, other.hinders) == (False, False)
    assert other.words == (
        f"/b, worker tcp://b:1: {NOT_SEEN}; each machine builds banks for itself instead"
    )
    [records] = place_findings("results", "/r", {"tcp://a:1": NOT_SEEN})
    assert records.words.endswith("workers fetch the data through the scheduler instead")
    assert [one.hinders for one in place_findings("banks", "s3://b", wrong)] == [False, False]
    [unreached] = place_findings("banks", "s3://b", {"tcp://a:1": NOT_SEEN})
    assert unreached.hinders
    [unlocked] = place_findings("results", "/r", {"tcp://a:1": NO_LOCK})
    assert not unlocked.hinders
    assert "one machine alone" in unlocked.advice


@pytest.mark.parametrize(
    ("changes", "said", "advised"),
    [
        ({}, "/scratch on a, b, 100.00 GiB free", False),
        ({"cache_bytes": 5 * GIB}, "less than the 32.00 GiB", False),
        ({"cache_bytes": -1}, "cannot be written", True),
        ({"cache_is_remote": True}, "file system of other machines", True),
    ],
)
def test_node_caches_of_machines_are_told_together(changes, said, advised):
    [one] = cache_findings({name: replace(at, **changes) for name, at in THREE.items()})
    assert said in one.words
    assert bool(one.advice) == advised


@pytest.mark.parametrize(
    ("seconds", "said", "advised", "hinders"),
    [
        (0.0, "within 0.1 s", False, False),
        (61.0, "61 s away", True, False),
        (3000.0, "3000 s", True, True),
    ],
)
def test_clocks_may_differ_by_a_minute(seconds, said, advised, hinders):
    one = clock_finding({"tcp://a:1": 0.0, "tcp://b:1": seconds})
    assert said in one.words
    assert (bool(one.advice), one.hinders) == (advised, hinders)


def test_threads_of_all_workers_of_a_machine_share_its_processors():
    threads = {"tcp://a:1": 3, "tcp://a:2": 3, "tcp://b:1": 1}
    first, second = thread_findings(THREE, threads)
    assert first.words == "6 threads on 4 processors: a"
    assert first.advice
    assert second.words == "1 thread on 4 processors: b"
    assert not second.advice


def test_memory_is_divided_among_the_threads_of_a_machine():
    [enough] = memory_findings(THREE, {"tcp://a:1": 1, "tcp://a:2": 1, "tcp://b:1": 1})
    assert enough.words == "at least 4.00 GiB for each thread, on a"
    [few] = memory_findings(THREE, {"tcp://a:1": 4, "tcp://a:2": 4, "tcp://b:1": 1})
    assert few.words == "at least 1.00 GiB for each thread, on a"
    assert (bool(enough.advice), bool(few.advice)) == (False, True)


def test_limits_of_dask_are_told_where_they_hold():
    assert not list(limit_findings(TWO))
    [one] = limit_findings({**TWO, "tcp://b:1": replace(ONE, limits=("pause", "terminate"))})
    assert one.words == "memory limits of Dask (pause, terminate) hold for worker tcp://b:1"
    assert not one.hinders


def test_workers_that_answer_with_an_error_are_told_with_it():
    failed = {"tcp://a:1": OSError("too long"), "tcp://a:2": OSError("too long")}
    [one] = failure_findings(failed, 0)
    assert one.words == (
        "worker tcp://a:1, worker tcp://a:2 cannot be examined (OSError: too long)"
    )
    assert one.hinders
    [one] = failure_findings(failed, 1)
    assert not one.hinders
