"""One cluster for all sweeps of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mkldist.run.cluster import ConnectOptions


@pytest.fixture(scope="package")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a scheduler with one worker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MKLDIST_CACHE", str(tmp_path_factory.mktemp("cache")))
        with ConnectOptions(n_workers=1).connect() as client:
            yield client.scheduler_info()["address"]
