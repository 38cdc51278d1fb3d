"""Sweeps through ``cluster/slurm.yaml`` on a SLURM of this machine, whose jobs end too early."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mkldist.results.schema import RunState
from tests.run.dask_processes import CLUSTER, make_certificates
from tests.run.slurm import Slurm, needs_slurm, slurm
from tests.run.sweeps import (
    MISBEHAVING,
    Solution,
    end,
    misbehaving_methods,
    record_times,
    run_here,
    solutions,
    start_process,
    sweep_text,
    wait_until,
)

pytestmark = [pytest.mark.cluster, needs_slurm]

GRID = [float(c) for c in range(1, 41)]
SWEEP = sweep_text({"slow": GRID}, execution="isolated", repeats=1)
SMALL_JOBS = {
    "cores": 1,
    "processes": 1,
    "memory": "1GiB",
    "walltime": "00:10:00",
    "worker_extra_args": ["--preload", str(MISBEHAVING)],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    with (
        slurm(tmp_path_factory.mktemp("slurm") / "here") as here,
        pytest.MonkeyPatch.context() as m,
    ):
        for name, value in here.environment.items():
            m.setenv(name, value)
        yield here


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Solution]:
    """Return the solution of each run without any disturbance."""
    output = tmp_path_factory.mktemp("undisturbed") / "small"
    with misbehaving_methods():
        run_here(SWEEP, output, None)
    return solutions(output)


def profile(folder: Path, **changes: object) -> Path:
    """Write ``cluster/slurm.yaml`` with certificates and two jobs as small as this machine."""
    content = yaml.safe_load((CLUSTER / "slurm.yaml").read_text())
    content |= {"workers": 2, "tls": str(make_certificates(folder / "tls"))}
    folders = {"local_directory": str(folder / "dask"), "log_directory": str(folder / "logs")}
    content["options"] |= SMALL_JOBS | folders | changes
    path = folder / "slurm.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def sweep(folder: Path, path: Path) -> subprocess.Popen[str]:
    return start_process(SWEEP, folder / "small", "--cluster", str(path))


def finish(process: subprocess.Popen[str], seconds: float = 180) -> str:
    """Wait until a sweep ends well and return what it said."""
    try:
        said, _ = process.communicate(timeout=seconds)
    finally:
        end(process)
    assert process.returncode == 0, said
    return said


def check_undisturbed(folder: Path, before: dict[str, int], expected: dict[str, Solution]) -> None:
    """Hold the records to the undisturbed ones; those of before must not be written again."""
    output = folder / "small"
    assert solutions(output) == expected
    assert {state for state, *_ in expected.values()} == {RunState.COMPLETE}
    after = record_times(output)
    assert {name: after[name] for name in before} == before


def test_the_profile_is_sound_and_leaves_no_job(cluster, tmp_path):
    words = ["cluster", "check", str(profile(tmp_path)), "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "mkldist", *words],
        capture_output=True, text=True, check=False, timeout=600, cwd=tmp_path, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tls://" in done.stdout
    assert "2 workers with 2 threads" in done.stdout
    wait_until(lambda: not cluster.jobs(), "no job is left")


def test_cancelled_jobs_are_replaced_and_no_run_is_lost(cluster, tmp_path, expected):
    process = sweep(tmp_path, profile(tmp_path))
    wait_until(lambda: len(record_times(tmp_path / "small")) >= 4, "4 runs are recorded", process)
    before = record_times(tmp_path / "small")
    jobs = cluster.jobs()
    assert len(jobs) == 2
    cluster.call("scancel", *jobs)
    finish(process)
    check_undisturbed(tmp_path, before, expected)
    wait_until(lambda: not cluster.jobs(), "no job is left")


def test_a_drained_node_gets_no_more_jobs(cluster, tmp_path, expected):
    process = sweep(tmp_path, profile(tmp_path))
    wait_until(lambda: len(record_times(tmp_path / "small")) >= 4, "4 runs are recorded", process)
    before, old = record_times(tmp_path / "small"), cluster.jobs()
    drained = cluster.node_of(old[0])
    cluster.call("scontrol", "update", f"nodename={drained}", "state=drain", "reason=test")
    try:
        cluster.call("scancel", *[job for job in old if cluster.node_of(job) == drained])
        wait_until(lambda: set(cluster.jobs("RUNNING")) - set(old), "a new job runs", process)
        new = set(cluster.jobs("RUNNING")) - set(old)
        assert drained not in {cluster.node_of(job) for job in new}
        finish(process)
    finally:
        cluster.call("scontrol", "update", f"nodename={drained}", "state=resume")
    check_undisturbed(tmp_path, before, expected)


def test_jobs_that_reach_their_walltime_are_replaced(cluster, tmp_path, expected, monkeypatch):
    """SLURM ends jobs of one minute; the runs take longer than that on two workers."""
    monkeypatch.setenv("MKLDIST_TEST_SECONDS", "6")
    process = sweep(tmp_path, profile(tmp_path, walltime="00:01:00"))
    wait_until(lambda: "JobState=TIMEOUT" in cluster.ended(), "a job times out", process, 150)
    before = record_times(tmp_path / "small")
    assert 0 < len(before) < len(GRID)
    finish(process, 400)
    check_undisturbed(tmp_path, before, expected)


def test_a_scheduler_that_others_reach_needs_certificates_or_a_word(cluster, tmp_path):
    path = profile(tmp_path)
    content = yaml.safe_load(path.read_text())
    del content["tls"]
    path.write_text(yaml.safe_dump(content))
    process = sweep(tmp_path, path)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 2
    assert "without encryption" in said
    assert "allow_unencrypted: true" in said
    assert not cluster.jobs()
