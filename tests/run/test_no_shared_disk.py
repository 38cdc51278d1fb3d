"""Sweeps on workers that see no folder of the coordinator: each has a disk of its own there."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.run.dask_processes import dask_cluster, make_certificates
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

UNSHARE = shutil.which("unshare")
HIDE = 'mount -t tmpfs none "$0" && exec "$@"'
SLOW = sweep_text({"slow": [float(c) for c in range(1, 13)]}, execution="isolated", repeats=2)
QUICK = sweep_text({"level": [1.0, 10.0], "uniform": [1.0]}, backend="{backend}")


def hiding(folder: Path) -> list[str]:
    """Return the words that run a command which sees an empty disk in place of a folder."""
    return [str(UNSHARE), "--mount", "sh", "-c", HIDE, str(folder)]


pytestmark = pytest.mark.cluster


def folder_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of outputs, banks and node caches; each worker has one of its own there."""
    found = tmp_path / "disk"
    found.mkdir()
    if UNSHARE is None or subprocess.run([*hiding(found), "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not allowed")
    monkeypatch.setenv("MKLDIST_CACHE", str(found / "cache"))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return folder_of_each(tmp_path, monkeypatch)


@contextmanager
def machines(folder: Path) -> Iterator[list[str]]:
    """Yield the options of a sweep on two workers, each with a disk of its own."""
    certificates = make_certificates(folder.parent / "tls")
    with dask_cluster(certificates, through=[hiding(folder)] * 2) as address:
        yield ["--scheduler", address, "--tls", str(certificates)]


def workers() -> list[psutil.Process]:
    """Return the processes of workers, which their nannies started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that has ended
            if "multiprocessing.spawn" in " ".join(process.cmdline()):
                found.append(process)
    return found


def sweep(text: str, output: Path, options: list[str]) -> str:
    process = start_process(text, output, *options)
    try:
        said, _ = process.communicate(timeout=600)
    finally:
        end(process)
    assert process.returncode == 0, said
    return " ".join(said.split())


@pytest.mark.parametrize("backend", ["memory", "mmap", "sharded"])
def test_the_results_are_those_of_one_machine_to_the_bit(folder, tmp_path, backend):
    text = QUICK.replace("{backend}", backend)
    run_here(text, tmp_path / "here" / "small", None)
    with machines(folder) as options:
        said = sweep(text, folder / "small", options)
        again = sweep(text, folder / "small", options)
    assert f"workers do not share {folder}/small: they fetch the data from the scheduler" in said
    assert ("each machine builds banks for itself" in said) == (backend != "sharded")
    assert "Nothing to do" in again
    assert solutions(folder / "small") == solutions(tmp_path / "here" / "small")
    assert len(solutions(folder / "small")) == 6


def test_kills_of_a_worker_and_of_the_coordinator_lose_no_record(folder, tmp_path):
    with misbehaving_methods():
        run_here(SLOW, tmp_path / "here" / "small", None)
    output = folder / "small"
    with machines(folder) as options:
        process = start_process(SLOW, output, *options)
        try:
            wait_until(lambda: len(record_times(output)) >= 4, "4 runs are recorded", process)
            workers()[0].send_signal(signal.SIGKILL)
            n = len(record_times(output))
            wait_until(lambda: len(record_times(output)) >= n + 4, "4 more are", process)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        finally:
            end(process)
        before = record_times(output)
        assert 8 <= len(before) < 24
        sweep(SLOW, output, options)
    assert solutions(output) == solutions(tmp_path / "here" / "small")
    after = record_times(output)
    assert {name: after[name] for name in before} == before
    assert not [path for path in output.rglob("*") if "partial" in path.name]


def test_the_check_of_a_cluster_tells_that_it_shares_nothing(folder):
    (folder / "results").mkdir()
    with machines(folder) as options:
        words = [sys.executable, "-m", "mkldist", "cluster", "check", *options, "--json"]
        done = subprocess.run(
            [*words, "--output", str(folder / "results"), "--wait", "30"],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    found = {one["name"]: one for one in json.loads(done.stdout)["findings"]}
    assert done.returncode == 0
    assert "through the scheduler instead" in found["results"]["words"]
    assert "each machine builds banks for itself" in found["banks"]["words"]
