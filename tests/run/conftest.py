"""The workers of sweeps that do not have to end theirs: one process, or this one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from mkldist.bank import readers
from mkldist.run import worker_pool
from mkldist.run.cluster import ConnectOptions
from tests.run.here import Client
from tests.run.sweeps import misbehaving_methods

collect_ignore = ["misbehaving.py"]  # looked at for doctests, it would register its methods


@pytest.fixture(scope="package")
def node_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_turns(node_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have isolated sweeps of tests wait for none that the user has at work on this machine."""
    if "MKLDIST_CACHE" not in os.environ:
        monkeypatch.setenv("MKLDIST_CACHE", str(node_cache))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cache of the test's own."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="package")
def scheduler(node_cache: Path) -> Iterator[str]:
    """Address of a scheduler with one worker that knows the misbehaving methods."""
    with pytest.MonkeyPatch.context() as patch, misbehaving_methods():
        patch.setenv("MKLDIST_CACHE", str(node_cache))
        with ConnectOptions(n_workers=1).connect() as client:
            yield client.scheduler_info()["address"]


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return the client of the cluster that every sweep of a test connects to."""
    client = Client()

    @contextmanager
    def connect(options: ConnectOptions) -> Iterator[Client]:
        yield client

    monkeypatch.setattr(ConnectOptions, "connect", connect)
    monkeypatch.setattr(worker_pool, "worker_pool", lambda *_: nullcontext())
    monkeypatch.setattr(readers, "PAUSES", (0.0,))
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    return client
