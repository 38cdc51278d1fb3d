"""Two network namespaces, and a link between them that is cut in the middle of a sweep."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import pytest

from mkldist.errors import EXIT_INTERNAL
from tests.run.dask_processes import dask_cluster, dask_workers, make_certificates
from tests.run.sweeps import (
    end,
    misbehaving_methods,
    record_times,
    run_here,
    solutions,
    start_process,
    sweep_text,
    wait_until,
)

IP = shutil.which("ip")
NAMESPACE, HERE, THERE = f"mkldist-{os.getpid()}", "10.213.7.1", "10.213.7.2"
NEAR, FAR = f"mkln{os.getpid() % 10**6}", f"mklf{os.getpid() % 10**6}"
SWEEP = sweep_text({"slow": [float(c) for c in range(1, 31)]}, execution="isolated", repeats=1)


def ip(*words: str) -> bool:
    """Run a command of iproute2; return False if the system refuses it."""
    done = subprocess.run([str(IP), *words], capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def namespace() -> Iterator[bool]:
    """Make a namespace that one link joins to this one; yield False if that is not allowed."""
    try:
        made = IP is not None and ip("netns", "add", NAMESPACE)
        yield (
            made
            and ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR, "netns", NAMESPACE)
            and ip("addr", "add", f"{HERE}/30", "dev", NEAR)
            and ip("link", "set", NEAR, "up")
            and ip("-n", NAMESPACE, "addr", "add", f"{THERE}/30", "dev", FAR)
            and ip("-n", NAMESPACE, "link", "set", FAR, "up")
            and ip("-n", NAMESPACE, "link", "set", "lo", "up")
        )
    finally:
        if IP is not None:
            ip("link", "del", NEAR)
            ip("netns", "del", NAMESPACE)


pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def inside() -> Iterator[list[str]]:
    """Return the words that run a command on the other side of the link."""
    with namespace() as made:
        if not made:
            pytest.skip("without iproute2, or network namespaces are not allowed")
        yield [str(IP), "netns", "exec", NAMESPACE]


@pytest.mark.parametrize("seconds", [5, 30, 120])
def test_workers_behind_a_cut_link_return_or_others_do_and_no_result_differs(
    inside, tmp_path, seconds
):
    certificates = make_certificates(tmp_path / "tls")
    output, expected = tmp_path / "small", tmp_path / "undisturbed"
    with misbehaving_methods():
        run_here(SWEEP, expected, None)
    with dask_cluster(certificates, host=HERE, n_workers=2, through=[inside]) as address:
        process = start_process(SWEEP, output, "--scheduler", address, "--tls", str(certificates))
        try:
            wait_until(lambda: len(record_times(output)) >= 4, "4 runs are recorded", process)
            before = record_times(output)
            cut(seconds)
            # A connection of Dask ends after 30 s without an answer, and its worker with it.
            anew = dask_workers(certificates, n_workers=2, through=[inside])
            with anew if seconds >= 30 else nullcontext():
                said, _ = process.communicate(timeout=600)
        finally:
            end(process)
    assert process.returncode == 0, said
    assert solutions(output) == solutions(expected)
    after = record_times(output)
    assert {name: after[name] for name in before} == before


def test_a_scheduler_behind_a_cut_link_is_lost_or_found_and_the_command_resumes(inside, tmp_path):
    certificates = make_certificates(tmp_path / "tls")
    output = tmp_path / "small"
    with dask_cluster(certificates, host=HERE, n_workers=2) as address:
        words = ["--scheduler", address, "--tls", str(certificates)]
        process = start_process(SWEEP, output, *words, through=inside)
        try:
            wait_until(lambda: len(record_times(output)) >= 4, "4 runs are recorded", process)
            cut(30)
            said, _ = process.communicate(timeout=600)
        finally:
            end(process)
        if process.returncode:
            assert process.returncode == EXIT_INTERNAL, said
            assert "Repeat the command" in said
            before = record_times(output)
            process = start_process(SWEEP, output, *words, through=inside)
            said, _ = process.communicate(timeout=600)
            assert process.returncode == 0, said
            after = record_times(output)
            assert {name: after[name] for name in before} == before
    assert len(solutions(output)) == 30


def cut(seconds: float) -> None:
    """Take the link down for some seconds."""
    assert ip("link", "set", NEAR, "down")
    time.sleep(seconds)
    assert ip("link", "set", NEAR, "up")
