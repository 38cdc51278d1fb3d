"""Schedulers that no sweep starts: killed and started again, or with short-lived workers."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mkldist.errors import EXIT_INTERNAL
from tests.chaos.outcomes import Outcome
from tests.chaos.scene import Ended, Scene, Undisturbed, resumed
from tests.chaos.strikes import TRIES, moment
from tests.run.dask_processes import CLUSTER, DASK
from tests.run.sweeps import wait_until

LIFE_SECONDS = 12.0
LONGEST_PAUSE = 3.0
"""Most seconds between the end of a scheduler and the start of the next one."""
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Administrator:
    """The one who starts a scheduler and its workers on this machine, and ends them."""

    scene: Scene  # A sweep that is to use them
    port: int  # port of the scheduler, the same whenever it is started again
    at_end: ExitStack  # ends every process that was started

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """Start a scheduler, and return it when it listens."""
        scheduler = self._start("scheduler", "--host", HOST, "--port", str(self.port))
        wait_until(self._listens, "the scheduler listens")
        return scheduler

    def start_workers(self, *options: str) -> None:
        """Start workers that join the scheduler."""
        one_thread = ("--nthreads", "1", "--memory-limit", "0")
        self._start("worker", _address(self.port), *one_thread, *options)

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
            return True
        return False

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        cache, temporary = self.scene.places["cache"], self.scene.folder.with_name("dask")
        temporary.mkdir(parents=True, exist_ok=True)
        own = {"MKLDIST_CACHE": cache, "TMPDIR": temporary, "DASK_CONFIG": CLUSTER / "dask.yaml"}
        process = subprocess.Popen(
            [*DASK, *words, "--no-dashboard"],
            env=os.environ | {name: str(value) for name, value in own.items()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.at_end.callback(_end, process)
        return process


def kill_scheduler(folder: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    """Kill the scheduler of a sweep at a random moment, and start it again at its address."""
    for number in range(TRIES):
        with administrator(folder / str(number)) as there:
            scheduler, scene = there.start_scheduler(), there.scene
            there.start_workers("--nworkers", "2")
            with scene.started() as process:
                if not moment(scene, process, clean.seconds, rng):
                    continue  # it ended before
                scheduler.kill()
                time.sleep(float(rng.uniform(0.0, LONGEST_PAUSE)))
                there.start_scheduler()
                there.start_workers("--nworkers", "2")
                ended = Ended(*scene.wait(process), (0, EXIT_INTERNAL))
            return resumed(scene, clean, "kill -9 scheduler", ended)
    raise AssertionError("the sweep always ends before")


def short_lives(folder: Path, clean: Undisturbed, rng: np.random.Generator) -> Outcome:
    """Run a sweep on two workers that end after 12 seconds and are replaced, not at once."""
    with administrator(folder) as there:
        there.start_scheduler()
        for age in rng.uniform(0.0, 0.5 * LIFE_SECONDS, size=2):
            there.start_workers("--lifetime", f"{LIFE_SECONDS:g} s", "--lifetime-restart")
            time.sleep(float(age))
        scene = there.scene
        with scene.started() as process:
            ended = Ended(*scene.wait(process), (0,))
        return resumed(scene, clean, "workers that live 12 s", ended)


@contextmanager
def administrator(folder: Path) -> Iterator[Administrator]:
    """Yield one who works in a folder; at the end, end what he has started."""
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as at_end:
        scene = Scene(folder / "sweep", ("--scheduler", _address(port)))
        yield Administrator(scene, port, at_end)


def _address(port: int) -> str:
    return f"tcp://{HOST}:{port}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
