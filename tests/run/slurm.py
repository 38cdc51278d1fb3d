"""A SLURM of this machine for tests: a controller, two nodes of two processors, and munge.

All of it lies in one folder and listens on the loopback address, beside any SLURM of the machine.
It ends with the process that started it, even by a kill.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.run.guardian import guarded

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
    """A running SLURM.

    Parameters
    ----------
    folder : Path
        Folder of all its files.
    """

    folder: Path
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
