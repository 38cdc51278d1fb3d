"""Schedulers and workers that a test starts itself, as an administrator does, with certificates."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.run.sweeps import MISBEHAVING, wait_until

CLUSTER = Path(__file__).parents[2] / "cluster"
SCRIPT = CLUSTER / "tls" / "make_certificates.sh"
DASK = (sys.executable, "-m", "dask")


def make_certificates(folder: Path) -> Path:
    """Make certificates by the project's script and return their folder."""
    subprocess.run([SCRIPT, folder], capture_output=True, check=True)
    return folder


@contextmanager
def dask_cluster(
    certificates: Path,
    *,
    host: str = "127.0.0.1",
    n_workers: int = 1,
    through: Sequence[Sequence[str]] = ((),),
) -> Iterator[str]:
    """Yield the address of a scheduler with workers, and stop them."""
    note = _note(certificates)
    scheduler = ["scheduler", "--host", host, "--port", "0", "--protocol", "tls"]
    with _stopped() as start:
        start(*DASK, *scheduler, *_common(certificates))
        wait_until(lambda: _is_noted(note), "the scheduler has noted its address")
        with dask_workers(certificates, n_workers=n_workers, through=through):
            yield json.loads(note.read_text())["address"]
    note.unlink(missing_ok=True)


@contextmanager
def dask_workers(
    certificates: Path, *, n_workers: int = 1, through: Sequence[Sequence[str]] = ((),)
) -> Iterator[None]:
    """Start workers of the scheduler of a :func:`dask_cluster`, and stop them.

    `through` are words before each command of workers, such as ``ip netns exec NAME``.
    """
    workers = ["worker", "--nthreads", "1", "--nworkers", str(n_workers), "--memory-limit", "0"]
    with _stopped() as start:
        for words in through:
            start(*words, *DASK, *workers, "--preload", str(MISBEHAVING), *_common(certificates))
        yield


def _note(certificates: Path) -> Path:
    """Return the file in which a scheduler notes its address."""
    return certificates.parent / f"{certificates.name}-scheduler.json"


def _is_noted(note: Path) -> bool:
    return note.exists() and note.read_text().rstrip().endswith("}")


def _common(certificates: Path) -> list[str]:
    """Return the options that schedulers and workers share."""
    files = {"ca-file": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
    tls = [f"--tls-{option}={certificates / name}" for option, name in files.items()]
    return ["--no-dashboard", "--scheduler-file", str(_note(certificates)), *tls]


@contextmanager
def _stopped() -> Iterator[Callable[..., None]]:
    """Yield a function that starts a process; at the end, stop them all."""
    started: list[subprocess.Popen[bytes]] = []
    environment = os.environ | {"DASK_CONFIG": str(CLUSTER / "dask.yaml")}

    def start(*words: str) -> None:
        started.append(subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment))

    try:
        yield start
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(300)
