"""What is found on this machine and of clusters, and what is advised where something lacks."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numba
import pytest

from mkldist.bank.cache import SUFFIX
from mkldist.core.threads import n_processors
from mkldist.run import doctor
from mkldist.run.cluster import ConnectOptions
from mkldist.run.doctor import (
    Finding,
    cache_findings,
    clock_finding,
    examine,
    examine_cluster,
    failure_findings,
    limit_findings,
    memory_findings,
    place_findings,
    thread_findings,
    version_findings,
)
from mkldist.run.probe import NO_LOCK, NOT_SEEN, Difference, Environment


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the node cache, and write 2 pieces in place of 64."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(doctor, "PIECES", 2)
    return tmp_path / "cache"


def findings(folder) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(folder)}


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
def test_a_sound_machine_is_described_and_nothing_stays(tmp_path, cache):
    folder = tmp_path / "results"
    folder.mkdir()
    cache.mkdir()
    (cache / f"one{SUFFIX}").write_bytes(bytes(2**29))
    found = findings(folder)
    assert not [one for one in found.values() if one.hinders]
    for package in ("numpy", "zarr", "distributed"):
        assert f"{package} {metadata.version(package)}" in found["packages"].words
    assert found["processors"].words.startswith(str(n_processors()))
    assert "threads" in found["BLAS"].words
    assert str(folder) in found["disk"].words
    assert "MiB/s written and flushed" in found["disk speed"].words
    assert found["locks"].words == "work"
    assert found["node cache"].words == f"0.5 GiB of 32.0 GiB in {cache}"
    assert list(folder.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_missing_packages_hinder_and_missing_extras_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "no-such-package"))
    monkeypatch.setattr(
        doctor,
        "EXTRAS",
        {"figures": (("json", "no_such_module"), "pictures"), "parquet": (("json",), "tables")},
    )
    found = findings(tmp_path)
    assert found["packages"].hinders
    assert "no-such-package" in found["packages"].advice
    assert not found["extras"].hinders
    told = "installed: parquet (tables); not installed: figures (pictures)"
    assert found["extras"].words == told
    assert found["extras"].advice == "If needed: pip install 'mkldist[figures]'"


@pytest.mark.usefixtures("cache")
def test_every_extra_of_the_package_is_told():
    named = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    extras = named["project"]["optional-dependencies"].keys() - {"all", "test", "test-clusters"}
    assert doctor.EXTRAS.keys() == extras


@pytest.mark.usefixtures("cache")
def test_a_disk_that_refuses_hinders(tmp_path, monkeypatch):
    def refused(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(doctor, "write_file", refused)
    found = findings(tmp_path)
    assert found["disk"].hinders
    assert "No space left" in found["disk"].words
    assert "locks" not in found


@pytest.mark.usefixtures("cache")
def test_little_memory_slow_disks_and_uncompiled_code_are_met_with_advice(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "available_memory", lambda: 2**30)
    monkeypatch.setattr(doctor, "SLOW", float("inf"))
    found = findings(tmp_path)
    assert found["memory"].words.startswith("1.0 GiB of ")
    assert "--memory" in found["memory"].advice
    assert "outputs.banks" in found["disk speed"].advice


@pytest.mark.usefixtures("cache")
def test_numbas_switch_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert "NUMBA_DISABLE_JIT" in findings(tmp_path)["compiled code"].words


TINY = (
    "class: distributed.LocalCluster\nworkers: {workers}\n"
    "options: {{n_workers: 2, threads_per_worker: 1, dashboard_address: '127.0.0.1:0'}}\n"
)


def examined(options: ConnectOptions, folder: Path, wait: float = 30) -> dict[str, Finding]:
    places = {"results": str(folder), "banks": f"memory://{folder.name}"}
    return {one.name: one for one in examine_cluster(options, places, wait)}


@pytest.mark.slow
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


@pytest.mark.slow
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


GIB = 2**30
ONE = Environment("a", 4, 8 * GIB, "/scratch", 100 * GIB, False, (), {})
TWO = {"tcp://a:1": ONE, "tcp://a:2": ONE}
THREE = {**TWO, "tcp://b:1": replace(ONE, host="b")}


def test_equal_versions_are_one_finding_and_each_difference_is_a_fault():
    [same] = version_findings([], 2)
    assert same.words.startswith("Python 3.")
    assert not same.hinders
    older = [Difference(f"tcp://a:{i}", "numpy", "version 1", "version 2") for i in range(5)]
    lacks = Difference("scheduler", "mkldist", "no installation", "version 2")
    found = list(version_findings([*older, lacks], 1))
    assert [one.hinders for one in found] == [False, True]
    assert found[0].words == (
        "worker tcp://a:0, worker tcp://a:1, worker tcp://a:2, … 2 more: "
        "version 1 of numpy; version 2 here; sweeps leave them out"
    )
    assert all(one.hinders for one in version_findings(older, 0))
    assert found[1].words == "scheduler: no installation of mkldist; version 2 here"


def test_a_folder_that_a_worker_does_not_share_is_no_fault_but_a_store_that_none_reaches_is():
    wrong = {"tcp://a:1": "", "tcp://b:1": NOT_SEEN}
    good, other = place_findings("banks", "/b", wrong)
    assert good.words == "/b, read and written by 1 worker"
    assert (good.hinders, other.hinders) == (False, False)
    assert other.words == (
        f"/b, worker tcp://b:1: {NOT_SEEN}; each machine builds banks for itself instead"
    )
    [records] = place_findings("results", "/r", {"tcp://a:1": NOT_SEEN})
    assert records.words.endswith("workers fetch the data through the scheduler instead")
    assert [one.hinders for one in place_findings("banks", "s3://b", wrong)] == [False, False]
    [unreached] = place_findings("banks", "s3://b", {"tcp://a:1": NOT_SEEN})
    assert unreached.hinders
    [unlocked] = place_findings("results", "/r", {"tcp://a:1": NO_LOCK})
    assert not unlocked.hinders
    assert "one machine alone" in unlocked.advice


@pytest.mark.parametrize(
    ("changes", "said", "advised"),
    [
        ({}, "/scratch on a, b, 100.00 GiB free", False),
        ({"cache_bytes": 5 * GIB}, "less than the 32.00 GiB", False),
        ({"cache_bytes": -1}, "cannot be written", True),
        ({"cache_is_remote": True}, "file system of other machines", True),
    ],
)
def test_node_caches_of_machines_are_told_together(changes, said, advised):
    [one] = cache_findings({name: replace(at, **changes) for name, at in THREE.items()})
    assert said in one.words
    assert bool(one.advice) == advised


@pytest.mark.parametrize(
    ("seconds", "said", "advised", "hinders"),
    [
        (0.0, "within 0.1 s", False, False),
        (61.0, "61 s away", True, False),
        (3000.0, "3000 s", True, True),
    ],
)
def test_clocks_may_differ_by_a_minute(seconds, said, advised, hinders):
    one = clock_finding({"tcp://a:1": 0.0, "tcp://b:1": seconds})
    assert said in one.words
    assert (bool(one.advice), one.hinders) == (advised, hinders)


def test_threads_of_all_workers_of_a_machine_share_its_processors():
    threads = {"tcp://a:1": 3, "tcp://a:2": 3, "tcp://b:1": 1}
    first, second = thread_findings(THREE, threads)
    assert first.words == "6 threads on 4 processors: a"
    assert first.advice
    assert second.words == "1 thread on 4 processors: b"
    assert not second.advice


def test_memory_is_divided_among_the_threads_of_a_machine():
    [enough] = memory_findings(THREE, {"tcp://a:1": 1, "tcp://a:2": 1, "tcp://b:1": 1})
    assert enough.words == "at least 4.00 GiB for each thread, on a"
    [few] = memory_findings(THREE, {"tcp://a:1": 4, "tcp://a:2": 4, "tcp://b:1": 1})
    assert few.words == "at least 1.00 GiB for each thread, on a"
    assert (bool(enough.advice), bool(few.advice)) == (False, True)


def test_limits_of_dask_are_told_where_they_hold():
    assert not list(limit_findings(TWO))
    [one] = limit_findings({**TWO, "tcp://b:1": replace(ONE, limits=("pause", "terminate"))})
    assert one.words == "memory limits of Dask (pause, terminate) hold for worker tcp://b:1"
    assert not one.hinders


def test_workers_that_answer_with_an_error_are_told_with_it():
    failed = {"tcp://a:1": OSError("too long"), "tcp://a:2": OSError("too long")}
    [one] = failure_findings(failed, 0)
    assert one.words == (
        "worker tcp://a:1, worker tcp://a:2 cannot be examined (OSError: too long)"
    )
    assert one.hinders
    [one] = failure_findings(failed, 1)
    assert not one.hinders
