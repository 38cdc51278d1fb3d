"""The `worker_pool`: whom a sweep admits, whom it leaves out, and what it says of them."""

from __future__ import annotations

import threading
from concurrent import futures
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mkldist.errors import OutOfTimeError, UnfitClusterError
from mkldist.run import worker_pool
from mkldist.run.probe import NOT_SEEN, Compared, Difference, SharedStorageCheck
from mkldist.run.sweep_setup import WallTime
from mkldist.run.worker_pool import Needs, Sharing, WorkerPool, needs_of
from tests.run.here import FOUND, NEEDS, TEXT, spec_of


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
