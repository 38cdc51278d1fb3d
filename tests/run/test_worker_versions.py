"""Schedulers and workers with other packages than this process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import LocalCluster

from mkldist.errors import UnfitClusterError
from mkldist.run.cluster import ConnectOptions
from mkldist.run.probe import PACKAGES, Compared, differences
from tests.run.dask_processes import DASK
from tests.run.sweeps import end, records, run_here, start_process, sweep_text, wait_until

OLDER = "Metadata-Version: 2.1\nName: mkldist\nVersion: 0.0.1\n"
WITHOUT = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mkldist":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusing())
"""


@pytest.mark.slow
def test_a_worker_with_another_version_is_named_before_any_task(tmp_path):
    older = tmp_path / "mkldist-0.0.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text(OLDER)
    assert PACKAGES[0] == "mkldist"
    with ConnectOptions(n_workers=1).connect() as client:
        address = client.scheduler_info()["address"]
        (worker,) = client.nthreads()
        with ConnectOptions(scheduler=address).connect() as second:  # equal versions are accepted
            assert second.submit(sum, (1, 2)).result(timeout=30) == 3
            assert differences(second) == Compared((), (worker,))
        client.run(lambda: sys.path.insert(0, str(tmp_path)))
        [unequal], equal = vars(differences(client)).values()
        assert (unequal.process, unequal.package, equal) == (worker, "mkldist", ())
        with pytest.raises(UnfitClusterError) as refused:
            run_here(sweep_text({"uniform": [1.0]}), tmp_path / "small", address)
    said = str(refused.value)
    assert said.startswith(f"worker {worker}: found version 0.0.1 of mkldist; version ")
    assert not records(tmp_path / "small")


@contextmanager
def late_worker(address: str, *words: str, path: str = "") -> Iterator[None]:
    """Start a worker, with a folder before all others from which it imports."""
    command = [*DASK, "worker", address, "--nthreads", "1", "--no-nanny", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([path, *sys.path])}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as worker:
        try:
            yield
        finally:
            worker.terminate()


@contextmanager
def begun_sweep(output: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the address of a scheduler without workers, and a sweep that waits for some."""
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        process = start_process(sweep_text({"uniform": [1.0]}), output, "--scheduler", address)
        try:
            wait_until((output / "sweep.json").exists, "the sweep has begun", process)
            yield address, process
        finally:
            end(process)


@pytest.mark.slow
def test_a_worker_that_joins_late_with_another_version_ends_the_sweep(tmp_path):
    (tmp_path / "mkldist-0.0.1.dist-info").mkdir()
    (tmp_path / "mkldist-0.0.1.dist-info" / "METADATA").write_text(OLDER)
    output = tmp_path / "small"
    with begun_sweep(output) as (address, process), late_worker(address, path=str(tmp_path)):
        told, _ = process.communicate(timeout=100)
    assert process.returncode == 2, told
    assert "found version 0.0.1 of mkldist; version " in told
    assert not records(output)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["sound", "lacking"])
def test_a_worker_without_mkldist_is_named_and_the_others_do_the_sweep(tmp_path, first):
    (tmp_path / "without.py").write_text(WITHOUT)
    output = tmp_path / "small"
    lacking = ["--preload", str(tmp_path / "without.py")]
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        orders = [(), lacking] if first == "sound" else [lacking, ()]
        with late_worker(address, *orders[0]), late_worker(address, *orders[1]):
            wait_until(lambda: len(cluster.scheduler.workers) == 2, "both workers are there")
            process = start_process(sweep_text({"uniform": [1.0]}), output, "--scheduler", address)
            try:
                told, _ = process.communicate(timeout=100)
            finally:
                end(process)
    assert process.returncode == 0, told
    assert len(records(output)) == 2
    told = " ".join(told.split())
    assert "is left out: no installation of mkldist; version" in told
    assert told.count("is left out") == 1
