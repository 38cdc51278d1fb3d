"""Schedulers and workers with other packages than this process."""

from __future__ import annotations

import sys

import pytest

from mkldist.errors import UnfitClusterError
from mkldist.run.cluster import ConnectOptions
from mkldist.run.worker_versions import PACKAGES


def test_a_worker_with_another_version_is_named_before_any_task(tmp_path):
    older = tmp_path / "mkldist-0.0.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: mkldist\nVersion: 0.0.1\n")
    assert PACKAGES[0] == "mkldist"
    with ConnectOptions(n_workers=1).connect() as client:
        address = client.scheduler_info()["address"]
        with ConnectOptions(scheduler=address).connect() as second:  # equal versions are accepted
            assert second.submit(sum, (1, 2)).result(timeout=30) == 3
        (worker,) = client.run(lambda: sys.path.insert(0, str(tmp_path)))
        with pytest.raises(UnfitClusterError) as refused:
            ConnectOptions(scheduler=address).connect().__enter__()
    said = str(refused.value)
    assert said.startswith(f"worker {worker}: found version 0.0.1 of mkldist; expected version ")
    assert "as in this process. Install the same versions" in said
