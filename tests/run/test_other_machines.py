"""Workers on other machines: shared storage, by `probe`, and whole sweeps."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mkldist.bank.cache import NodeFolders
from mkldist.errors import OutputError, UnfitClusterError
from mkldist.run import worker_pool
from mkldist.run.cluster import ConnectOptions
from mkldist.run.probe import NOT_READ_BACK, NOT_SEEN, Environment, SharedStorage, check_storage
from mkldist.run.sweep import build_banks
from mkldist.run.sweep_loop import PendingTasks
from mkldist.run.work_queue import BuildItem
from mkldist.run.worker_pool import Needs, Sharing, WorkerPool, needs_of, sharing_line
from tests.run.here import FOUND, NEEDS, TEXT, spec_of, sweep
from tests.run.scheduler_in_memory import SchedulerInMemory
from tests.run.sweeps import solutions

ELSEWHERE = ConnectOptions("tcp://elsewhere")


class Admitting(WorkerPool):
    """A pool of whoever is there."""

    def __init__(self, client, needs: Needs, sharing: Sharing) -> None:
        super().__init__(client, needs)
        self._sharing = sharing

    def usable(self, there):
        return there

    def admitted(self):
        return None


def on_other_machines(monkeypatch, sharing: Sharing) -> SchedulerInMemory:
    """Have the sweeps of a test share so much with their workers."""
    scheduler = SchedulerInMemory().install(monkeypatch)

    @contextmanager
    def pool(client, needs, note, wall_time):
        yield (found := Admitting(scheduler, needs, sharing))
        assert bool(scheduler.files) == (not sharing.output)
        found.close()

    monkeypatch.setattr(worker_pool, "worker_pool", pool)
    return scheduler


def test_a_sweep_finds_the_same_whatever_its_workers_share(tmp_path, client, monkeypatch):
    sweep(TEXT, tmp_path / "here" / "small")
    expected = solutions(tmp_path / "here" / "small")
    for output, banks in ((True, False), (False, True)):
        folder = tmp_path / f"{output}-{banks}"
        monkeypatch.setenv("MKLDIST_CACHE", str(folder / "cache"))
        scheduler = on_other_machines(monkeypatch, Sharing(output, banks))
        outcome = sweep(TEXT, folder / "small", connect_options=ELSEWHERE)
        assert (outcome.computed, outcome.waiting) == (6, 0)
        assert solutions(folder / "small") == expected
        assert len([*(folder / "banks").glob("[!.]*")]) == 3 * banks
        assert len([*NodeFolders("built").root.glob("[!.]*")]) == 3 * (not banks)
        assert NodeFolders("snapshots").root.exists() == (not output)
        assert scheduler.files == {}
        assert sweep(TEXT, folder / "small", connect_options=ELSEWHERE).computed == 0


def test_banks_cannot_be_built_for_machines_that_share_no_place(tmp_path, client, monkeypatch):
    on_other_machines(monkeypatch, Sharing(output=True, banks=False))
    where = {"origin": tmp_path / "x.toml", "output": tmp_path / "small"}
    with pytest.raises(UnfitClusterError, match=f"do not share {tmp_path}/banks; expected a f"):
        build_banks(spec_of(TEXT), connect_options=ELSEWHERE, **where)


class Told:
    """A client whose workers tell what a test says."""

    def __init__(self, **told: Any) -> None:
        self.told = told

    def run(self, function, places, *, workers, on_error):
        return {one: self.told[one](places) for one in workers}


def test_places_are_tried_from_both_sides_and_those_of_a_silent_worker_are_not(tmp_path):
    def answering(places: tuple[SharedStorage, ...]) -> Environment:
        return replace(FOUND, wrong={place.root: place.reply("a") for place in places})

    def elsewhere(places: tuple[SharedStorage, ...]) -> Environment:
        return replace(FOUND, wrong={place.root: NOT_SEEN for place in places})

    def forgetful(places: tuple[SharedStorage, ...]) -> Environment:
        return replace(FOUND, wrong={place.root: "" for place in places})

    client = Told(a=answering, b=elsewhere, c=forgetful, d=lambda _: OSError("gone"))
    (tmp_path / "file").touch()
    places = {"results": str(tmp_path), "banks": f"{tmp_path}/file"}
    tried = check_storage(client, places, ["a", "b", "c", "d"])
    assert tried.wrong["results"] == {"a": "", "b": NOT_SEEN, "c": NOT_READ_BACK}
    assert [tried.is_shared("results", worker) for worker in "abc"] == [True, False, False]
    assert {worker: str(error) for worker, error in tried.failed.items()} == {"d": "gone"}
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_place_that_this_process_cannot_write_is_told(monkeypatch, tmp_path):
    def refused(place):
        raise OutputError(place.root, "a read-only file system")

    monkeypatch.setattr(SharedStorage, "probing", refused)
    tried = check_storage(Told(), {"results": str(tmp_path)}, [])
    assert "read-only" in str(tried.refused["results"])
    assert not tried.is_shared("results", "a")


def test_the_line_on_what_is_shared_names_what_is_done_instead():
    assert sharing_line(Sharing(), NEEDS) == "workers read data from /out"
    assert sharing_line(Sharing(True, False), NEEDS).endswith("machine builds banks for itself")
    said = sharing_line(Sharing(False, True), Needs("/out", "s3://b"))
    assert said.endswith("fetch the data from s3://b")
    assert needs_of(spec_of(TEXT), Path("/out"), "", "") == Needs("/out")


class Chosen:
    """A pool of some workers, and a client that notes for whom tasks are."""

    status = "running"

    def __init__(self, *admitted: str) -> None:
        self.admitted, self.there, self.submitted, self.cancelled = {*admitted}, [], [], []

    def usable(self, there):
        return {worker: n for worker, n in there.items() if worker in self.admitted}

    def nthreads(self):
        return dict.fromkeys(self.there, 1)

    def submit(self, work, task, *, key, pure, workers=None):
        self.submitted.append(workers)
        return self

    def add_done_callback(self, tell):
        self.tell = tell

    def cancel(self, futures, force):
        self.cancelled += futures


def refreshed(tasks: PendingTasks) -> int:
    tasks._refreshed = float("-inf")
    return tasks.n_threads


def test_tasks_go_to_the_workers_admitted_and_again_when_these_have_gone():
    cluster = Chosen("tcp://a:1", "tcp://c:1")
    tasks = PendingTasks(cluster, cluster)
    tasks.submit(BuildItem("bank", (0,)), len, "task")
    assert (cluster.submitted, len(tasks)) == ([], 1)  # nobody is there
    cluster.there = ["tcp://a:1"]
    assert refreshed(tasks) == 1
    assert cluster.submitted == [["tcp://a:1"]]
    cluster.there = ["tcp://a:1", "tcp://b:1"]
    assert refreshed(tasks) == 1
    tasks.submit(BuildItem("bank", (1,)), len, "task")
    assert cluster.submitted[1:] == [["tcp://a:1"]]
    cluster.there = ["tcp://b:1"]
    assert refreshed(tasks) == 0
    cluster.there = ["tcp://b:1", "tcp://c:1"]
    assert refreshed(tasks) == 1
    assert cluster.submitted[2:] == [["tcp://c:1"], ["tcp://c:1"]]
    assert (len(cluster.cancelled), len(tasks)) == (2, 2)
