"""One cluster for all sweeps of this folder that do not have to end theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mkldist.run.cluster import ConnectOptions
from tests.run.sweeps import misbehaving_methods

collect_ignore = ["misbehaving.py"]  # looked at for doctests, it would register its methods


@pytest.fixture(scope="package")
def node_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="package")
def scheduler(node_cache: Path) -> Iterator[str]:
    """Address of a scheduler with one worker that knows the misbehaving methods."""
    with pytest.MonkeyPatch.context() as patch, misbehaving_methods():
        patch.setenv("MKLDIST_CACHE", str(node_cache))
        with ConnectOptions(n_workers=1).connect() as client:
            yield client.scheduler_info()["address"]
