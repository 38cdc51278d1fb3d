"""The thread does what Dask's workers do for the loop of a sweep, and does not outlive it."""

from __future__ import annotations

import threading
import time

import pytest

from mkldist.run.local_workers import ThreadWorker, thread_worker
from mkldist.run.sweep_loop import PendingTasks
from mkldist.run.work_queue import BuildItem

ITEM = BuildItem("bank", (0,))


def doubled(task):
    if task is None:
        raise ValueError("nothing to double")
    return 2 * task


def test_outcomes_are_those_of_the_tasks_in_their_order():
    with thread_worker() as client:
        tasks = PendingTasks(client)
        assert (tasks.n_threads, tasks.threads_of_a_machine) == (1, 1)
        tasks.submit(ITEM, doubled, 4)
        assert not tasks.has_room
        [outcome] = tasks.wait(10.0)
        assert (outcome.item, outcome.receipt, outcome.error) == (ITEM, 8, None)
        tasks.submit(ITEM, doubled, None)
        [outcome] = tasks.wait(10.0)
        assert repr(outcome.error) == "ValueError('nothing to double')"
        assert tasks.wait(0.0) == []


def test_what_has_not_begun_can_be_cancelled():
    done, go = [], threading.Event()
    with thread_worker() as client:
        client.submit(lambda _: go.wait(10.0), None, key="first", pure=False)
        waiting = client.submit(done.append, 1, key="second", pure=False)
        client.cancel([waiting], force=True)
        go.set()
    assert (waiting.status, done) == ("cancelled", [])


def test_the_end_waits_for_the_task():
    done = []
    with thread_worker() as client:
        client.submit(lambda _: (time.sleep(0.1), done.append(1)), None, key="a", pure=False)
    assert (done, client.status) == ([1], "closed")


def test_an_interrupt_does_not_wait_for_the_task():
    go, tasks = threading.Event(), []

    def interrupted() -> None:
        with thread_worker() as client:
            tasks.append(client)
            tasks.append(client.submit(lambda _: go.wait(60.0), None, key="a", pure=False))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [one.status for one in tasks] == ["closed", "pending"]
    go.set()


def test_a_callback_that_comes_late_is_called_at_once():
    client, told = ThreadWorker(), []
    task = client.submit(doubled, 1, key="a", pure=False)
    client.close(wait=True)
    task.add_done_callback(told.append)
    assert told == [task]
    assert task.result() == 2
