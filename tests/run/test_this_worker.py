"""Memory of a task, out of that of its worker."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from mkldist.run.probe import memory_share, this_worker, worker_memory


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
