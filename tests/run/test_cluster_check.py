"""Clusters that are sound, that lack mkldist or a shared folder, or that do not answer at all."""

from __future__ import annotations

import sys
from pathlib import Path

from mkldist.run.cluster import ConnectOptions
from mkldist.run.doctor import Finding, examine_cluster
from mkldist.run.probe import NOT_SEEN

TINY = (
    "class: distributed.LocalCluster\nworkers: {workers}\n"
    "options: {{n_workers: 2, threads_per_worker: 1, dashboard_address: '127.0.0.1:0'}}\n"
)


def examined(options: ConnectOptions, folder: Path, wait: float = 30) -> dict[str, Finding]:
    places = {"results": str(folder), "banks": f"memory://{folder.name}"}
    return {one.name: one for one in examine_cluster(options, places, wait)}


def test_a_scheduler_without_the_same_mkldist_on_its_worker_is_told(tmp_path):
    older = tmp_path / "mkldist-0.0.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text("Metadata-Version: 2.1\nName: mkldist\nVersion: 0.0.1\n")
    with ConnectOptions(n_workers=1).connect() as client:
        options = ConnectOptions(client.scheduler_info()["address"])
        found = examined(options, tmp_path)
        assert found["workers"].words == "1 worker with 1 thread"
        assert found["versions"].words.endswith("everywhere")
        # The store is of one process alone, as a folder of a disk of one machine would be.
        assert [name for name, one in found.items() if one.hinders] == ["banks"]
        assert NOT_SEEN in found["banks"].words
        (worker,) = client.run(lambda: sys.path.insert(0, str(tmp_path)))
        found = examined(options, tmp_path)
    assert list(found) == ["scheduler", "workers", "versions"]
    assert found["versions"].words.startswith(f"worker {worker}: version 0.0.1 of mkldist; ")


def test_a_profile_is_started_checked_and_stopped(tmp_path):
    profile = tmp_path / "tiny.yaml"
    profile.write_text(TINY.format(workers=2).replace("n_workers: 2", "processes: false"))
    found = examined(ConnectOptions(cluster_file=profile), tmp_path)
    assert not [one for one in found.values() if one.hinders]
    assert found["workers"].words == "2 workers with 2 threads"
    assert f"{tmp_path}, read and written by 2 workers" in found["results"].words
    assert list(tmp_path.iterdir()) == [profile]


def test_workers_that_do_not_join_are_told(tmp_path):
    profile = tmp_path / "tiny.yaml"
    profile.write_text(TINY.format(workers="null").replace("n_workers: 2", "n_workers: 0"))
    found = examined(ConnectOptions(cluster_file=profile), tmp_path, wait=0.2)
    assert list(found) == ["scheduler", "workers"]
    assert found["workers"].words == "none joined within 0.2 s"
    assert found["workers"].hinders
