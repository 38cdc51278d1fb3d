"""Sweeps through ``cluster/slurm.yaml`` on a SLURM of this machine, whose jobs end too early.

It has a controller, two nodes of two processors, and munge.  All of it lies in one folder and
listens on the loopback address, beside any SLURM of the machine.  It ends with the process that
started it, even by a kill.
"""

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from mkldist.results.schema import RunState
from tests.run.dask_processes import CLUSTER, make_certificates
from tests.run.guardian import guarded
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

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
MISSING = [program for program in PROGRAMS if shutil.which(program) is None]
needs_slurm = pytest.mark.skipif(
    bool(MISSING) or os.geteuid() != 0,
    reason=f"without {', '.join(MISSING)}" if MISSING else "SLURM is started by root alone",
)
CONFIGURATION = """
ClusterName=mkldist
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1
ReturnToService=2
KillWait=2
OverTimeLimit=0
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=4000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
START_SECONDS = 120


@dataclass
class Slurm:
    """A running SLURM."""

    folder: Path  # of all its files
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Variables by which the commands of SLURM find it."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def call(self, *words: str) -> str:
        """Run a command of SLURM and return what it prints."""
        environment = os.environ | self.environment
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def jobs(self, *states: str) -> list[str]:
        """Return the ids of the jobs in some states, by default of all that have not ended."""
        chosen = ["--states", ",".join(states)] if states else []
        return self.call("squeue", "--noheader", "--format=%A", *chosen).split()

    def node_of(self, job: str) -> str:
        """Return the node of a running job."""
        return self.call("squeue", "--noheader", "--format=%N", "--jobs", job)

    def ended(self) -> str:
        """Return what the controller keeps of jobs, with the reason for which each ended."""
        return self.call("scontrol", "show", "jobs")

    def start(self, *words: str | Path) -> None:
        """Start a daemon that stays in the foreground."""
        path = self.folder / f"{Path(words[0]).name}-{len(self._daemons)}.log"
        environment = os.environ | self.environment
        with path.open("wb") as log:
            self._daemons.append(
                subprocess.Popen(
                    guarded(*map(str, words)),
                    env=environment,
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    start_new_session=True,
                )
            )

    def stop(self) -> None:
        """End all jobs and daemons, the controller before munge."""
        for job in self.jobs():
            self.call("scancel", job)
        deadline = time.monotonic() + START_SECONDS
        while self.jobs() and time.monotonic() < deadline:
            time.sleep(0.2)
        for daemon in reversed(self._daemons):
            daemon.communicate(timeout=START_SECONDS)  # ends its standard input


@contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Start SLURM in a folder, yield it when both nodes are idle, and stop it."""
    folder.mkdir()
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    configuration = CONFIGURATION.format(folder=folder, host=socket.gethostname(), ports=_ports(3))
    (folder / "slurm.conf").write_text(configuration)
    here = Slurm(folder)
    own = {"socket": "munge.socket", "key-file": "munge.key", "log-file": "munge.log",
           "pid-file": "munge.pid", "seed-file": "munge.seed"}  # fmt: skip
    paths = [f"--{option}={folder / name}" for option, name in own.items()]
    try:
        here.start("munged", "--foreground", "--force", *paths)
        _wait_for(folder / "munge.socket")
        here.start("slurmctld", "-D")
        for node in ("node1", "node2"):
            here.start("slurmd", "-D", "-N", node)
        _wait_until_idle(here)
        yield here
    finally:
        here.stop()


def _ports(number: int) -> Sequence[int]:
    """Return ports that are free now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} is not there"
        time.sleep(0.1)


def _wait_until_idle(here: Slurm) -> None:
    environment, deadline = os.environ | here.environment, time.monotonic() + START_SECONDS
    words = ["sinfo", "--noheader", "--format=%T %D"]
    while True:
        asked = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if asked.stdout.strip() == "idle 2":
            return
        assert time.monotonic() < deadline, f"{asked.stdout} {asked.stderr}"
        time.sleep(0.2)


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
    monkeypatch.setenv("MKLDIST_TEST_SECONDS", "4")
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
