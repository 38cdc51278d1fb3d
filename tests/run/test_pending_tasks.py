"""Tasks in flight: how many there are, and the outcome of each, however its worker ends."""

from __future__ import annotations

import pytest

from mkldist.errors import ClusterError, UnfitClusterError
from mkldist.run.sweep_loop import PendingTasks
from mkldist.run.work_queue import BuildItem

ITEM = BuildItem("bank", (0,))


class Future:
    """A task that ended with a status and a result."""

    def __init__(self, key: str, status: str, result: object) -> None:
        self.key, self.status, self._result, self.released = key, status, result, False

    def add_done_callback(self, tell):
        tell(self)

    def result(self, timeout=None):
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    def exception(self):
        return self._result

    def release(self):
        self.released = True


class Client:
    """A cluster whose tasks end at once."""

    def __init__(self, ending=("finished", "receipt"), **threads: int) -> None:
        self.status, self.ending, self.futures = "running", ending, []
        self.threads = {f"tcp://{name.replace('_', ':')}": n for name, n in threads.items()}

    def nthreads(self):
        return self.threads

    def submit(self, function, task, key, pure, workers=None):
        self.allowed = workers
        self.futures.append(Future(key, *self.ending))
        return self.futures[-1]

    def cancel(self, futures, force):
        self.cancelled = list(futures)


def outcome_of(client: Client):
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    [outcome] = tasks.wait(0.0)
    return outcome


def build(task):
    raise AssertionError("the client of these tests calls nothing")


def test_there_is_room_for_one_task_for_every_thread():
    tasks = PendingTasks(Client(a_1=1, a_2=2, b_1=1))
    assert (tasks.n_threads, tasks.threads_of_a_machine) == (4, 3)
    for n in range(4):
        assert (len(tasks), tasks.has_room) == (n, True)
        tasks.submit(ITEM, build, "task")
    assert not tasks.has_room


def test_a_machine_that_does_one_task_at_a_time_has_one_worker_and_keeps_it():
    client = Client(a_1=1, a_2=2, b_1=4)
    tasks = PendingTasks(client, one_a_machine=True)
    assert (tasks.n_threads, tasks.threads_of_a_machine) == (2, 1)
    client.threads = {"tcp://a:0": 1, "tcp://c:1": 1, **client.threads}
    tasks._refreshed = float("-inf")
    for n in range(3):
        assert (len(tasks), tasks.has_room) == (n, True)
        tasks.submit(ITEM, build, "task")
        assert client.allowed == ["tcp://a:1", "tcp://b:1", "tcp://c:1"]
    assert not tasks.has_room


def test_the_only_worker_of_each_machine_needs_no_choice():
    client = Client(a_1=2, b_1=1)
    tasks = PendingTasks(client, one_a_machine=True)
    assert (tasks.n_threads, tasks.has_room) == (2, True)
    tasks.submit(ITEM, build, "task")
    assert client.allowed is None


def test_a_task_whose_workers_have_gone_is_given_to_the_next_of_the_machine():
    client = Client(a_1=1, a_2=1)
    tasks = PendingTasks(client, one_a_machine=True)
    assert tasks.has_room
    tasks.submit(ITEM, build, "task")
    assert client.allowed == ["tcp://a:1"]
    client.threads = {"tcp://a:2": 1, "tcp://a:3": 1}
    tasks._refreshed = float("-inf")
    assert not tasks.has_room
    assert client.allowed == ["tcp://a:2"]
    assert [future.key for future in client.cancelled] == [client.futures[0].key]


def test_without_workers_one_task_waits_for_the_first():
    tasks = PendingTasks(Client())
    assert (tasks.n_threads, tasks.threads_of_a_machine, tasks.has_room) == (0, 0, True)
    tasks.submit(ITEM, build, "task")
    assert not tasks.has_room


def test_a_receipt_is_taken_and_its_future_released():
    client = Client()
    outcome = outcome_of(client)
    assert (outcome.item, outcome.receipt, outcome.error) == (ITEM, "receipt", None)
    assert client.futures[0].released


def test_the_error_of_a_task_is_its_outcome():
    error = ValueError("no")
    assert outcome_of(Client(("error", error))).error is error


@pytest.mark.parametrize("ending", [("lost", None), ("finished", TimeoutError())])
def test_a_receipt_that_is_lost_with_its_worker_is_an_error_of_the_task(ending):
    assert "worker was lost" in str(outcome_of(Client(ending)).error)


@pytest.mark.parametrize("ending", [("lost", None), ("finished", TimeoutError())])
def test_a_lost_scheduler_is_an_error_of_the_cluster(ending):
    client = Client(ending)
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    client.status = "closed"
    with pytest.raises(ClusterError, match="a lost connection"):
        tasks.wait(0.0)
    with pytest.raises(ClusterError, match="a lost connection"):
        PendingTasks(client).wait(0.0)


def test_a_connection_that_breaks_while_workers_are_counted_is_an_error_of_the_cluster():
    class Broken(Client):
        def nthreads(self):
            raise OSError("Stream is closed")

        def cancel(self, futures, force):
            raise OSError("Stream is closed")

    tasks = PendingTasks(Broken())
    tasks.submit(ITEM, build, "task")
    with pytest.raises(ClusterError, match="a lost connection"):
        tasks.has_room  # noqa: B018, it asks for the workers
    tasks.cancel()
    assert len(tasks) == 0


def test_a_worker_that_could_not_begin_a_task_is_an_error_of_the_cluster():
    error = UnfitClusterError("worker", "version 1 of numpy", "version 2")
    with pytest.raises(UnfitClusterError, match="version 1 of numpy; expected version 2"):
        outcome_of(Client(("error", error)))


def test_a_task_that_an_unfit_worker_was_given_is_begun_again_where_others_are_admitted():
    class Admitting:
        def usable(self, there):
            return there

    class Choosing(Client):
        def submit(self, function, task, key, pure, workers):
            assert workers == ["tcp://a:1"]
            return super().submit(function, task, key, pure)

    error = UnfitClusterError("worker", "version 1 of numpy", "version 2")
    client = Choosing(("error", error), a_1=1)
    tasks = PendingTasks(client, Admitting())
    assert tasks.n_threads == 1
    tasks.submit(ITEM, build, "task")
    client.ending = ("finished", "receipt")
    assert [one.receipt for one in tasks.wait(0.0)] == ["receipt"]
    assert (len(client.futures), len(tasks)) == (2, 0)


def test_a_task_that_found_no_coordinator_is_begun_again():
    client = Client(("error", ClusterError("scheduler", "no coordinator", "one")), a_1=1)
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    client.ending = ("finished", "receipt")
    assert [one.receipt for one in [*tasks.wait(0.0), *tasks.wait(0.0)]] == ["receipt"]
    assert len(client.futures) == 2


def test_what_ended_before_an_error_of_the_cluster_counts():
    client = Client(a_1=2)
    tasks = PendingTasks(client)
    tasks.submit(ITEM, build, "task")
    client.ending = ("error", UnfitClusterError("worker", "version 1 of numpy", "version 2"))
    tasks.submit(ITEM, build, "task")
    assert [one.receipt for one in tasks.wait(0.0)] == ["receipt"]
    with pytest.raises(UnfitClusterError, match="version 1 of numpy"):
        tasks.wait(0.0)


def test_nothing_is_an_outcome_while_no_task_ends():
    assert PendingTasks(Client()).wait(0.0) == []


def test_all_tasks_in_flight_are_cancelled():
    client = Client(a_1=2)
    tasks = PendingTasks(client)
    for _ in range(2):
        tasks.submit(ITEM, build, "task")
    tasks.cancel()
    assert client.cancelled == client.futures
    assert len(tasks) == 0
