"""Workers on other machines: the `roster`, `shared_places`, the `post_box`, and whole sweeps."""

from __future__ import annotations

import threading
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mkldist.errors import OutOfTimeError, OutputError, UnfitClusterError
from mkldist.gram.node_folders import NodeFolders
from mkldist.results.state import RunState
from mkldist.run import other_machines, roster, shared_places
from mkldist.run.build_banks import build_banks
from mkldist.run.cluster import ConnectOptions
from mkldist.run.in_flight import TasksInFlight
from mkldist.run.other_machines import OtherMachines, needs_of, sharing_line
from mkldist.run.post_box import PostBox
from mkldist.run.roster import Needs, Roster, Sharing
from mkldist.run.shared_places import try_places
from mkldist.run.wall_time import WallTime
from mkldist.run.work_items import BuildItem
from mkldist.run.worker_versions import Compared, Difference
from mkldist.worker.shared_place import NOT_READ_BACK, NOTHING_THERE, SharedPlace
from mkldist.worker.surroundings import Surroundings
from tests.run.here import TEXT, Failing, spec_of, sweep
from tests.run.sweeps import records, solutions
from tests.worker.scheduler_in_memory import SchedulerInMemory

ELSEWHERE = ConnectOptions("tcp://elsewhere")
NEEDS = Needs("/out", "/banks")
FOUND = Surroundings("host", 1, 2**30, "/cache", 2**30, False, (), {})


class Admitting:
    """A roster that admits whoever is there."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing

    def sound(self, there):
        return there

    def admitted(self):
        return None

    def lines(self):
        return ()


def on_other_machines(monkeypatch, sharing: Sharing) -> SchedulerInMemory:
    """Have the sweeps of a test share so much with their workers."""
    scheduler = SchedulerInMemory().install(monkeypatch)

    @contextmanager
    def machines(client, needs, note, wall_time):
        box = None if sharing.output else PostBox(scheduler, Path(needs.output))
        yield OtherMachines(Admitting(sharing), box)
        if box is not None:
            box.close()

    monkeypatch.setattr(other_machines, "other_machines", machines)
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
        assert (bool(scheduler.letters), scheduler.n_open) == (not output, 0)
        assert sweep(TEXT, folder / "small", connect_options=ELSEWHERE).computed == 0


def test_records_that_are_lost_on_their_way_are_computed_again(tmp_path, client, monkeypatch):
    on_other_machines(monkeypatch, Sharing(False, False))
    real, lost = PostBox.take, []

    def losing(box):
        for record in real(box):
            if lost:
                yield record
            else:
                lost.append(record.id)

    monkeypatch.setattr(PostBox, "take", losing)
    outcome = sweep(TEXT, tmp_path / "small", connect_options=ELSEWHERE)
    assert (len(lost), outcome.computed, outcome.failed) == (1, 6, 0)


def test_records_of_runs_that_are_not_asked_for_any_more_are_kept(tmp_path, client, monkeypatch):
    sweep(TEXT.replace("[1.0, 10.0]", "[3.0, 30.0]"), tmp_path / "other" / "small")
    others = [*records(tmp_path / "other" / "small").values()]
    on_other_machines(monkeypatch, Sharing(False, False))
    real = PostBox.take

    def with_others(box):
        yield from (others.pop() for _ in others[:1])
        yield from real(box)

    n_kept = len(others)
    monkeypatch.setattr(PostBox, "take", with_others)
    outcome = sweep(TEXT, tmp_path / "small", connect_options=ELSEWHERE)
    assert (outcome.computed, outcome.waiting) == (6, 0)
    assert len(records(tmp_path / "small")) == 6 + n_kept


def test_a_record_of_a_complete_run_replaces_that_of_a_failed_one(tmp_path, client, monkeypatch):
    on_other_machines(monkeypatch, Sharing(False, False))
    real = PostBox.take

    def between_failures(box):  # as of workers that were thought lost
        for record in real(box):
            failed = replace(record, state=RunState.FAILED, error="died")
            yield from (failed, record, failed)

    monkeypatch.setattr(PostBox, "take", between_failures)
    outcome = sweep(TEXT, tmp_path / "small", connect_options=ELSEWHERE)
    assert (outcome.computed, outcome.failed) == (6, 0)
    states = [record.state for record in records(tmp_path / "small").values()]
    assert states == [RunState.COMPLETE] * 6


def test_a_batch_that_dies_after_its_first_record_leaves_it_done(tmp_path, client, monkeypatch):
    scheduler = on_other_machines(monkeypatch, Sharing(False, False))
    real = SchedulerInMemory.set_metadata
    dying = Failing(monkeypatch, "solve_batch", RuntimeError("died"), times=0)

    def mark(self, keys, value):
        real(self, keys, value)
        if len(keys) == 3 and not dying.calls % 2:
            raise RuntimeError("died")

    monkeypatch.setattr(SchedulerInMemory, "set_metadata", mark)
    outcome = sweep(TEXT, tmp_path / "small", connect_options=ELSEWHERE)
    assert (outcome.computed, outcome.failed) == (6, 0)
    assert scheduler.n_open == 0


def test_banks_cannot_be_built_for_machines_that_share_no_place(tmp_path, client, monkeypatch):
    on_other_machines(monkeypatch, Sharing(output=True, banks=False))
    where = {"origin": tmp_path / "x.toml", "output": tmp_path / "small"}
    with pytest.raises(UnfitClusterError, match=f"do not share {tmp_path}/banks; expected a f"):
        build_banks(spec_of(TEXT), connect_options=ELSEWHERE, **where)


class Cluster:
    """A cluster of which a test says who is there, what each has, and what each shares."""

    def __init__(self, monkeypatch, workers: dict[str, Any]) -> None:
        self.workers, self.examined = workers, list[str]()
        self.thawed = threading.Event()
        monkeypatch.setattr(roster, "compared_workers", self.compared_workers)
        monkeypatch.setattr(roster, "try_places", self.try_places)
        monkeypatch.setattr(roster, "POLL_SECONDS", 0.001)
        monkeypatch.setattr(roster, "GRACE_SECONDS", 0.02)

    def nthreads(self):
        return dict.fromkeys(self.workers, 2)

    def compared_workers(self, client, workers):
        self.examined += workers
        if any(self.workers[w] == "frozen" for w in workers):
            self.thawed.wait()
        if any(self.workers[w] == "odd" for w in workers):
            raise KeyError("numpy")
        older = tuple(w for w in workers if self.workers[w] == "older")
        unequal = tuple(Difference(w, "mkldist", "version 1", "version 2") for w in older)
        silent = {w for w in workers if self.workers[w] == "silent"}
        return Compared(unequal, tuple(w for w in workers if w not in {*older, *silent}))

    def try_places(self, client, places, workers):
        shares = {w: self.workers[w] for w in workers}
        if any(self.workers[w] == "failing" for w in workers):
            failed = dict.fromkeys(workers, OSError("File name too long"))
            return shared_places.TriedPlaces({}, {}, {}, failed)
        wrong = {
            name: {w: "" if name in shares[w] else NOTHING_THERE for w in workers}
            for name in places
        }
        return shared_places.TriedPlaces(dict.fromkeys(workers, FOUND), wrong, {})


def first(cluster: Cluster, needs: Needs = NEEDS) -> tuple[Roster, list[str]]:
    found = Roster(cluster, needs)
    return found, list(found.first(WallTime()))


BOTH = ("results", "banks")


@pytest.mark.parametrize(
    ("workers", "sharing"),
    [
        ({"a": BOTH, "b": BOTH}, Sharing(True, True)),
        ({"a": BOTH, "b": ("banks",)}, Sharing(False, True)),
        ({"a": ("results",)}, Sharing(True, False)),
        ({"a": ()}, Sharing(False, False)),
        ({"a": BOTH, "b": "older"}, Sharing(True, True)),
    ],
)
def test_what_all_sound_workers_share_is_shared(monkeypatch, workers, sharing):
    assert first(Cluster(monkeypatch, workers))[0].sharing == sharing


def test_without_stored_banks_what_lies_beside_them_goes_with_the_output(monkeypatch):
    for workers, sharing in (({"a": ()}, Sharing(False, False)), ({"a": BOTH}, Sharing())):
        assert first(Cluster(monkeypatch, workers), Needs("/out"))[0].sharing == sharing


def later(cluster: Cluster, one: Roster, **workers: Any) -> list[str]:
    """Have workers join, and return the lines on them when all are examined."""
    futures.wait([one._examining[w] for w in workers if w in one._examining])
    cluster.workers |= workers
    one.sound(cluster.nthreads())
    futures.wait([one._examining[w] for w in workers if cluster.workers[w] != "frozen"])
    one.sound(cluster.nthreads())
    return list(one.lines())


def test_workers_that_cannot_be_used_are_left_out_in_one_line_each(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": "older"})
    one, lines = first(cluster)
    assert lines == ["worker b is left out: version 1 of mkldist; version 2 here"]
    assert one.sound(cluster.nthreads()) == {"a": 2}
    assert later(cluster, one, c=("banks",), d=BOTH, e="older") == [
        "worker c is left out: it does not share /out",
        "worker e is left out: version 1 of mkldist; version 2 here",
    ]
    assert one.sound(cluster.nthreads()) == {"a": 2, "d": 2}
    assert set(one.admitted()) == {"a", "d"}
    assert sorted(cluster.examined) == ["a", "b", "c", "d", "e"]  # each once


def test_a_worker_that_does_not_answer_is_asked_again(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": "silent"})
    one, lines = first(cluster)
    assert (lines, one.sound(cluster.nthreads())) == ([], {"a": 2})
    assert one.admitted() == ("a",)
    assert later(cluster, one, b=BOTH) == []
    assert one.sound(cluster.nthreads()) == {"a": 2, "b": 2}


def test_a_frozen_worker_stops_neither_sound_ones_nor_those_that_join_later(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": "frozen"})
    one, lines = first(cluster)
    assert (lines, one.sound(cluster.nthreads())) == ([], {"a": 2})
    assert one.admitted() == ("a",)
    assert later(cluster, one, c="frozen", d=BOTH) == []
    assert one.sound(cluster.nthreads()) == {"a": 2, "d": 2}
    monkeypatch.setattr(roster, "SILENCE_NOTE_SECONDS", 0.0)
    assert list(one.lines()) == ["worker b does not answer", "worker c does not answer"]
    assert list(one.lines()) == []
    cluster.thawed.set()


@pytest.mark.parametrize(
    ("kind", "said"),
    [("failing", "OSError: File name too long"), ("odd", "KeyError: 'numpy'")],
)
def test_a_worker_that_answers_with_an_error_is_left_out_with_it(monkeypatch, kind, said):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": kind})
    one, lines = first(cluster)
    assert lines == [f"worker b is left out: it cannot be examined ({said})"]
    assert later(cluster, one, c=kind) == [lines[0].replace("worker b", "worker c")]
    with pytest.raises(UnfitClusterError, match=f"worker a: found it cannot be examined .{said}"):
        first(Cluster(monkeypatch, {"a": kind}))


def test_a_sweep_without_one_sound_worker_is_refused_and_one_without_any_waits(monkeypatch):
    with pytest.raises(UnfitClusterError, match="worker a: found version 1 of mkldist; version 2"):
        first(Cluster(monkeypatch, {"a": "older"}))
    with pytest.raises(OutOfTimeError):
        list(Roster(Cluster(monkeypatch, {}), NEEDS).first(replace(WallTime(), end=0.0)))


def test_a_store_that_a_worker_does_not_reach_leaves_it_out(monkeypatch):
    with pytest.raises(UnfitClusterError, match=f"found s3://b: {NOTHING_THERE}"):
        first(Cluster(monkeypatch, {"a": ("results",)}), Needs("/out", "s3://b"))


def test_a_worker_that_cannot_import_the_users_functions_is_left_out(monkeypatch, tmp_path):
    (tmp_path / "mine_of_a_roster.py").write_text("def alike(x, z):\n    return x @ z.T\n")
    cluster = Cluster(monkeypatch, {"a": BOTH})
    cluster.run = lambda function, *given, workers, on_error: {
        worker: function(*given) for worker in workers
    }
    needs = Needs("/out", "", str(tmp_path), ("mine_of_a_roster:alike",))
    assert first(cluster, needs)[1] == []
    with pytest.raises(UnfitClusterError, match="'mine_of_a_roster:other', which cannot be impor"):
        first(cluster, replace(needs, functions=("mine_of_a_roster:other",)))


def test_a_worker_without_the_device_is_left_out(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH})
    cluster.run = lambda function, *given, workers, on_error: {
        worker: function(*given) for worker in workers
    }
    spec = spec_of(TEXT)
    banks = tuple(bank.model_copy(update={"device": "no-such"}) for bank in spec.banks)
    needs = needs_of(spec.model_copy(update={"banks": banks}), Path("/out"), "", "")
    with pytest.raises(UnfitClusterError, match=r"worker a: found .*no-such"):
        first(cluster, needs)


class Told:
    """A client whose workers tell what a test says."""

    def __init__(self, **told: Any) -> None:
        self.told = told

    def run(self, function, places, *, workers, on_error):
        return {one: self.told[one](places) for one in workers}


def test_places_are_tried_from_both_sides_and_those_of_a_silent_worker_are_not(tmp_path):
    def answering(places: tuple[SharedPlace, ...]) -> Surroundings:
        return replace(FOUND, wrong={place.root: place.answer("a") for place in places})

    def elsewhere(places: tuple[SharedPlace, ...]) -> Surroundings:
        return replace(FOUND, wrong={place.root: NOTHING_THERE for place in places})

    def forgetful(places: tuple[SharedPlace, ...]) -> Surroundings:
        return replace(FOUND, wrong={place.root: "" for place in places})

    client = Told(a=answering, b=elsewhere, c=forgetful, d=lambda _: OSError("gone"))
    (tmp_path / "file").touch()
    places = {"results": str(tmp_path), "banks": f"{tmp_path}/file"}
    tried = try_places(client, places, ["a", "b", "c", "d"])
    assert tried.wrong["results"] == {"a": "", "b": NOTHING_THERE, "c": NOT_READ_BACK}
    assert [tried.is_shared("results", worker) for worker in "abc"] == [True, False, False]
    assert {worker: str(error) for worker, error in tried.failed.items()} == {"d": "gone"}
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_place_that_this_process_cannot_write_is_told(monkeypatch, tmp_path):
    def refused(place):
        raise OutputError(place.root, "a read-only file system")

    monkeypatch.setattr(SharedPlace, "asked", refused)
    tried = try_places(Told(), {"results": str(tmp_path)}, [])
    assert "read-only" in str(tried.refused["results"])
    assert not tried.is_shared("results", "a")


def test_the_line_on_what_is_shared_names_what_is_done_instead():
    assert sharing_line(Sharing(), NEEDS) == "workers write their records to /out"
    assert sharing_line(Sharing(True, False), NEEDS).endswith("machine builds banks for itself")
    said = sharing_line(Sharing(False, True), Needs("/out", "s3://b"))
    assert said.endswith("fetch the data from s3://b")
    assert needs_of(spec_of(TEXT), Path("/out"), "", "") == Needs("/out")


class Chosen:
    """A roster that admits some workers, and a client that notes for whom tasks are."""

    status = "running"

    def __init__(self, *admitted: str) -> None:
        self.admitted, self.there, self.submitted, self.cancelled = {*admitted}, [], [], []

    def sound(self, there):
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


def refreshed(tasks: TasksInFlight) -> int:
    tasks._refreshed = float("-inf")
    return tasks.n_threads


def test_tasks_go_to_the_workers_admitted_and_again_when_these_have_gone():
    cluster = Chosen("tcp://a:1", "tcp://c:1")
    tasks = TasksInFlight(cluster, cluster)
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
