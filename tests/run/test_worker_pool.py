"""Whom a sweep admits: versions, environments and shared storage of workers on other machines."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from distributed import LocalCluster

from mkldist.bank.cache import NodeFolders
from mkldist.errors import OutOfTimeError, OutputError, UnfitClusterError
from mkldist.run import worker_pool
from mkldist.run.cluster import ConnectOptions
from mkldist.run.probe import (
    NO_LOCK,
    NOT_READ_BACK,
    NOT_SEEN,
    PACKAGES,
    Compared,
    Difference,
    Environment,
    SharedStorage,
    SharedStorageCheck,
    asking,
    check_storage,
    differences,
    do_where_equal,
    file_system,
    memory_share,
    probe_environment,
    reply_name,
    this_worker,
    versions_here,
    worker_memory,
)
from mkldist.run.sweep_loop import PendingTasks
from mkldist.run.sweep_setup import WallTime
from mkldist.run.work_queue import BuildItem
from mkldist.run.worker_pool import Needs, Sharing, WorkerPool, needs_of, sharing_line
from tests.run.dask_processes import DASK
from tests.run.here import FOUND, NEEDS, TEXT, SchedulerInMemory, spec_of, sweep
from tests.run.sweeps import (
    end,
    records,
    run_here,
    solutions,
    start_process,
    sweep_text,
    wait_until,
)


class Cluster:
    """A cluster of which a test says who is there, what each has, and what each shares."""

    def __init__(self, monkeypatch, workers: dict[str, Any]) -> None:
        self.workers, self.examined = workers, list[str]()
        self.thawed = threading.Event()
        self.status = "running"
        monkeypatch.setattr(worker_pool, "compared_workers", self.compared_workers)
        monkeypatch.setattr(worker_pool, "check_storage", self.check_storage)
        monkeypatch.setattr(worker_pool, "POLL_SECONDS", 0.001)
        monkeypatch.setattr(worker_pool, "GRACE_SECONDS", 0.02)

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

    def check_storage(self, client, places, workers):
        shares = {w: self.workers[w] for w in workers}
        if any(self.workers[w] == "failing" for w in workers):
            failed = dict.fromkeys(workers, OSError("File name too long"))
            return SharedStorageCheck({}, {}, {}, failed)
        wrong = {
            name: {w: "" if name in shares[w] else NOT_SEEN for w in workers} for name in places
        }
        return SharedStorageCheck(dict.fromkeys(workers, FOUND), wrong, {})


def first(cluster: Cluster, needs: Needs = NEEDS) -> tuple[WorkerPool, list[str]]:
    found = WorkerPool(cluster, needs)
    return found, list(found.wait(WallTime()))


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


def later(cluster: Cluster, one: WorkerPool, **workers: Any) -> list[str]:
    """Have workers join, and return the lines on them when all are examined."""
    futures.wait([one._probing[w] for w in workers if w in one._probing])
    cluster.workers |= workers
    one.usable(cluster.nthreads())
    futures.wait([one._probing[w] for w in workers if cluster.workers[w] != "frozen"])
    one.usable(cluster.nthreads())
    return list(one.messages())


def test_workers_that_cannot_be_used_are_left_out_in_one_line_each(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": "older"})
    one, lines = first(cluster)
    assert lines == ["worker b is left out: version 1 of mkldist; version 2 here"]
    assert one.usable(cluster.nthreads()) == {"a": 2}
    assert later(cluster, one, c=("banks",), d=BOTH, e="older") == [
        "worker c is left out: it does not share /out",
        "worker e is left out: version 1 of mkldist; version 2 here",
    ]
    assert one.usable(cluster.nthreads()) == {"a": 2, "d": 2}
    assert set(one.admitted()) == {"a", "d"}
    assert sorted(cluster.examined) == ["a", "b", "c", "d", "e"]  # each once


def test_a_worker_that_does_not_answer_is_asked_again(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": "silent"})
    one, lines = first(cluster)
    assert (lines, one.usable(cluster.nthreads())) == ([], {"a": 2})
    assert one.admitted() == ("a",)
    assert later(cluster, one, b=BOTH) == []
    assert one.usable(cluster.nthreads()) == {"a": 2, "b": 2}


def test_a_frozen_worker_stops_neither_sound_ones_nor_those_that_join_later(monkeypatch):
    cluster = Cluster(monkeypatch, {"a": BOTH, "b": "frozen"})
    one, lines = first(cluster)
    assert (lines, one.usable(cluster.nthreads())) == ([], {"a": 2})
    assert one.admitted() == ("a",)
    assert later(cluster, one, c="frozen", d=BOTH) == []
    assert one.usable(cluster.nthreads()) == {"a": 2, "d": 2}
    monkeypatch.setattr(worker_pool, "SILENCE_NOTE_SECONDS", 0.0)
    assert list(one.messages()) == ["worker b does not answer", "worker c does not answer"]
    assert list(one.messages()) == []
    cluster.thawed.set()


@pytest.mark.parametrize(
    ("kind", "said"), [("failing", "OSError: File name too long"), ("odd", "KeyError: 'numpy'")]
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
        list(WorkerPool(Cluster(monkeypatch, {}), NEEDS).wait(replace(WallTime(), end=0.0)))


def test_a_store_that_a_worker_does_not_reach_leaves_it_out(monkeypatch):
    with pytest.raises(UnfitClusterError, match=f"found s3://b: {NOT_SEEN}"):
        first(Cluster(monkeypatch, {"a": ("results",)}), Needs("/out", "s3://b"))


def test_a_worker_that_cannot_import_the_users_functions_is_left_out(monkeypatch, tmp_path):
    (tmp_path / "mine_of_a_pool.py").write_text("def alike(x, z):\n    return x @ z.T\n")
    cluster = Cluster(monkeypatch, {"a": BOTH})
    cluster.run = lambda function, *given, workers, on_error: {
        worker: function(*given) for worker in workers
    }
    needs = Needs("/out", "", str(tmp_path), ("mine_of_a_pool:alike",))
    assert first(cluster, needs)[1] == []
    with pytest.raises(UnfitClusterError, match="'mine_of_a_pool:other', which cannot be impor"):
        first(cluster, replace(needs, functions=("mine_of_a_pool:other",)))


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


def worker(memory_limit: int | None = None) -> SimpleNamespace:
    manager = SimpleNamespace(memory_limit=memory_limit)
    return SimpleNamespace(address="tcp://127.0.0.1:4000", memory_manager=manager)


def test_a_worker_tells_its_machine_and_answers_in_shared_places(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    shared, other = SharedStorage.of(str(tmp_path)), SharedStorage(str(tmp_path / "other"))
    with shared.probing():
        found = probe_environment((shared, other), worker())
        assert shared.has_reply(reply_name(worker().address))
    assert found.wrong == {shared.root: "", other.root: NOT_SEEN}
    assert found.host == socket.gethostname()
    assert found.cache == str(tmp_path / "cache")
    assert found.cache_bytes == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)
    assert not found.cache_is_remote
    assert found.limits == ()


def test_a_cache_that_cannot_be_written_has_no_room(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    monkeypatch.setattr("os.access", lambda *_: False)
    assert probe_environment((), worker()).cache_bytes == -1


def test_limits_count_only_where_the_worker_has_a_limit():
    off = {f"distributed.worker.memory.{name}": False for name in ("spill", "pause", "terminate")}
    with dask.config.set(off | {"distributed.worker.memory.target": 0.6}):
        assert probe_environment((), worker(2**30)).limits == ("target",)
        assert probe_environment((), worker()).limits == ()


def test_the_file_system_of_a_path_is_that_of_the_nearest_mount(tmp_path, monkeypatch):
    mounts = [("/", "ext4"), (str(tmp_path), "nfs4")]
    parts = [SimpleNamespace(mountpoint=place, fstype=kind) for place, kind in mounts]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: parts)
    assert file_system(tmp_path) == "nfs4"
    assert file_system(tmp_path.parent) == "ext4"
    parts.clear()
    assert file_system(tmp_path) == ""


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_shared_folder_shows_both_sides_what_the_other_wrote(tmp_path, scheme):
    place = SharedStorage.of(f"{scheme}{tmp_path}/results/that/will/be")
    assert place.root == str(tmp_path)
    with place.probing():
        assert not place.has_reply("worker")
        assert place.reply("worker") == ""
        assert place.has_reply("worker")
        assert not place.has_reply("another")
    assert not list(tmp_path.iterdir())


def test_a_store_is_tried_alike():
    place = SharedStorage.of(f"memory://{uuid.uuid4().hex}/banks")
    with place.probing():
        assert place.reply("worker") == ""
        assert place.has_reply("worker")
    assert place.reply("worker") == NOT_SEEN


def test_another_folder_holds_no_probe(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    probed = SharedStorage.of(str(here))
    with probed.probing():
        assert SharedStorage(str(there), probed.token).reply("worker") == NOT_SEEN
    assert not list(there.iterdir())


def test_a_lock_that_a_worker_gets_too_is_told(tmp_path, monkeypatch):
    class Unlocked:
        def __init__(self, path):
            self.path = path

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def acquire(self, timeout):
            return self

    monkeypatch.setattr("mkldist.run.probe.FileLock", Unlocked)
    place = SharedStorage.of(str(tmp_path))
    with place.probing():
        assert place.reply("worker") == NO_LOCK


def test_a_place_that_cannot_be_written_is_refused(monkeypatch, tmp_path):
    def refuse(self, *_, **__):
        raise OSError(30, "Read-only file system", str(tmp_path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError, match="read-only"), SharedStorage.of(str(tmp_path)).probing():
        pass


@pytest.mark.parametrize(
    ("sweeps", "workers", "threads", "share"),
    [(None, None, 4, None), (800, None, 4, 200), (None, 400, 2, 200), (800, 400, 1, 400)],
)
def test_a_task_takes_its_share_of_what_its_worker_may(
    monkeypatch, sweeps, workers, threads, share
):
    worker = SimpleNamespace(
        memory_manager=SimpleNamespace(memory_limit=workers),
        state=SimpleNamespace(nthreads=threads),
    )
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    assert this_worker() is worker
    assert memory_share(sweeps) == share
    assert worker_memory(sweeps) == (None if share is None else share * threads)


def test_outside_of_workers_a_task_may_take_all():
    assert this_worker() is None
    assert memory_share(800) == worker_memory(800) == 800


def test_versions_are_those_of_the_installed_packages():
    assert versions_here() == {name: f"version {metadata.version(name)}" for name in PACKAGES}
    assert asking(("a_package_that_nobody_has",))() == {
        "a_package_that_nobody_has": "no installation"
    }


def test_a_package_without_its_modules_or_its_metadata_is_told(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "of_metadata_alone-1.0.dist-info").mkdir()
    metadata_file = tmp_path / "of_metadata_alone-1.0.dist-info" / "METADATA"
    metadata_file.write_text("Metadata-Version: 2.1\nName: of_metadata_alone\nVersion: 1.0\n")
    (tmp_path / "of_modules_alone.py").touch()
    assert asking(("of_metadata_alone", "of_modules_alone"))() == {
        "of_metadata_alone": "no installation",
        "of_modules_alone": "an unknown version",
    }


def test_a_task_begins_only_where_all_versions_are_equal():
    assert do_where_equal(versions_here(), len, "task") == 4
    begun: list[str] = []
    with pytest.raises(UnfitClusterError, match=r"of numpy; expected version 0 as in this process"):
        do_where_equal({**versions_here(), "numpy": "version 0"}, begun.append, "task")
    assert not begun


LACKS = """
import resource, threading, time
from mkldist.run.probe import end_when_no_thread_can_start
end_when_no_thread_can_start()
class Odd:
    def __del__(self):
        raise ValueError("not of memory")
Odd()
time.sleep(2.0)  # in which that is told, as long as there is memory
spare = [object() for _ in range(5000)]
def new():
    threading.Thread(target=int).start()
new()
spare.clear()
with open("/proc/self/statm") as file:
    now = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (now, now))
print("full", flush=True)
new()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_worker_ends_when_a_thread_lacks_the_memory_to_start():
    done = subprocess.run(
        [sys.executable, "-c", LACKS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (1, "full\n")
    assert "not of memory" in done.stderr


OLDER = "Metadata-Version: 2.1\nName: mkldist\nVersion: 0.0.1\n"
WITHOUT = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "mkldist":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusing())
"""


@pytest.mark.slow
def test_a_worker_with_another_version_is_named_before_any_task(tmp_path):
    older = tmp_path / "mkldist-0.0.1.dist-info"
    older.mkdir()
    (older / "METADATA").write_text(OLDER)
    assert PACKAGES[0] == "mkldist"
    with ConnectOptions(n_workers=1).connect() as client:
        address = client.scheduler_info()["address"]
        (worker,) = client.nthreads()
        with ConnectOptions(scheduler=address).connect() as second:  # equal versions are accepted
            assert second.submit(sum, (1, 2)).result(timeout=30) == 3
            assert differences(second) == Compared((), (worker,))
        client.run(lambda: sys.path.insert(0, str(tmp_path)))
        [unequal], equal = vars(differences(client)).values()
        assert (unequal.process, unequal.package, equal) == (worker, "mkldist", ())
        with pytest.raises(UnfitClusterError) as refused:
            run_here(sweep_text({"uniform": [1.0]}), tmp_path / "small", address)
    said = str(refused.value)
    assert said.startswith(f"worker {worker}: found version 0.0.1 of mkldist; version ")
    assert not records(tmp_path / "small")


@contextmanager
def late_worker(address: str, *words: str, path: str = "") -> Iterator[None]:
    """Start a worker, with a folder before all others from which it imports."""
    command = [*DASK, "worker", address, "--nthreads", "1", "--no-nanny", *words]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([path, *sys.path])}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as worker:
        try:
            yield
        finally:
            worker.terminate()


@contextmanager
def begun_sweep(output: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the address of a scheduler without workers, and a sweep that waits for some."""
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        process = start_process(sweep_text({"uniform": [1.0]}), output, "--scheduler", address)
        try:
            wait_until((output / "sweep.json").exists, "the sweep has begun", process)
            yield address, process
        finally:
            end(process)


@pytest.mark.slow
def test_a_worker_that_joins_late_with_another_version_ends_the_sweep(tmp_path):
    (tmp_path / "mkldist-0.0.1.dist-info").mkdir()
    (tmp_path / "mkldist-0.0.1.dist-info" / "METADATA").write_text(OLDER)
    output = tmp_path / "small"
    with begun_sweep(output) as (address, process), late_worker(address, path=str(tmp_path)):
        told, _ = process.communicate(timeout=100)
    assert process.returncode == 2, told
    assert "found version 0.0.1 of mkldist; version " in told
    assert not records(output)


@pytest.mark.slow
@pytest.mark.parametrize("first", ["sound", "lacking"])
def test_a_worker_without_mkldist_is_named_and_the_others_do_the_sweep(tmp_path, first):
    (tmp_path / "without.py").write_text(WITHOUT)
    output = tmp_path / "small"
    lacking = ["--preload", str(tmp_path / "without.py")]
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
        address = cluster.scheduler_address
        orders = [(), lacking] if first == "sound" else [lacking, ()]
        with late_worker(address, *orders[0]), late_worker(address, *orders[1]):
            wait_until(lambda: len(cluster.scheduler.workers) == 2, "both workers are there")
            process = start_process(sweep_text({"uniform": [1.0]}), output, "--scheduler", address)
            try:
                told, _ = process.communicate(timeout=100)
            finally:
                end(process)
    assert process.returncode == 0, told
    assert len(records(output)) == 2
    told = " ".join(told.split())
    assert "is left out: no installation of mkldist; version" in told
    assert told.count("is left out") == 1


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


@pytest.mark.slow
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


@pytest.mark.slow
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
