"""Connections, for run.cluster: threads, limits of memory, clear messages."""

from __future__ import annotations

import logging
import os
import socket
import threading
from pathlib import Path

import dask
import pytest

from mkldist.errors import ClusterError, SpecError
from mkldist.run.cluster import DASK_CONFIG, ConnectOptions, joined

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str | None]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {name: os.environ.get(name) for name in names}


def worker_facts():

    import dask

    return (
        environment(),
        [dask.config.get(f"distributed.worker.memory.{name}") for name in ("pause", "terminate")],
    )


def test_a_local_cluster_is_pinned_and_a_running_scheduler_can_be_joined():
    with ConnectOptions(n_workers=1).connect() as client:
        variables, limits = client.submit(worker_facts, pure=False).result(timeout=30)
        assert set(variables.values()) == {"1"}
        assert limits == [False, False]
        address = client.scheduler_info()["address"]
        with ConnectOptions(scheduler=address).connect() as second:
            assert second.submit(sum, (1, 2)).result(timeout=30) == 3
        assert client.submit(sum, (2, 2)).result(timeout=30) == 4


def test_the_port_of_the_dashboard_can_be_chosen():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(
            SpecError, match=f"--dashboard-port {port}: found a port that cannot be used .addr"
        ):
            ConnectOptions(n_workers=1, dashboard_port=port).connect().__enter__()
    with ConnectOptions(n_workers=1, dashboard_port=port).connect() as client:
        assert client.dashboard_link == f"http://127.0.0.1:{port}/status"


def test_a_scheduler_of_its_own_has_its_own_port():
    with pytest.raises(SpecError, match="Omit --dashboard-port"):
        ConnectOptions(scheduler="tcp://x:1", dashboard_port=8787).connect().__enter__()


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr("mkldist.run.cluster.CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:1: found no answer"),
        ConnectOptions(scheduler="tcp://127.0.0.1:1").connect(),
    ):
        pass


def test_a_program_that_says_something_else_is_no_scheduler():
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def greet():
            while True:
                connections.append(server.accept()[0])
                connections[-1].sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        threading.Thread(target=greet, daemon=True).start()
        options = ConnectOptions(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(ClusterError, match="a program that does not speak as schedulers do"):
            options.connect().__enter__()


def test_a_cluster_file_starts_its_class(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(
        "class: distributed.LocalCluster\n"
        "options: {n_workers: 1, threads_per_worker: 2, processes: false, "
        "dashboard_address: '127.0.0.1:0'}\n"
    )
    with ConnectOptions(cluster_file=path).connect() as client:
        assert sum(client.nthreads().values()) == 2


def test_a_missing_cluster_file_and_two_places_to_run_are_refused(tmp_path):
    with (
        pytest.raises(SpecError, match="No such file"),
        ConnectOptions(cluster_file=tmp_path / "missing.yaml").connect(),
    ):
        pass
    with (
        pytest.raises(SpecError, match="found both"),
        ConnectOptions(scheduler="tcp://x:1", cluster_file=tmp_path / "a.yaml").connect(),
    ):
        pass


def test_workers_that_die_while_they_start_are_an_error_of_the_cluster(tmp_path):
    (tmp_path / "dying.py").write_text("import os; os._exit(1)")
    with (
        dask.config.set({"distributed.worker.preload": [str(tmp_path / "dying.py")]}),
        pytest.raises(ClusterError) as caught,
        ConnectOptions(n_workers=1).connect(),
    ):
        pass
    for word in ("workers", "this machine that did not start", "workers=0", "Repeat the command"):
        assert word in str(caught.value)


def test_isolated_runs_have_one_worker_of_this_machine():
    asked = ConnectOptions(n_workers=4, threads_per_worker=2)
    assert asked.of_execution("isolated").expected_threads() == 1
    assert asked.of_execution("shared") == asked
    elsewhere = ConnectOptions("tcp://host:1")
    assert elsewhere.of_execution("isolated") == elsewhere


def test_threads_are_counted_over_workers_as_far_as_they_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr("mkldist.run.cluster.n_processors", lambda: 8)
    assert ConnectOptions().expected_threads() == 8
    assert ConnectOptions(threads_per_worker=3).expected_threads() == 6
    assert ConnectOptions(n_workers=5, threads_per_worker=2).expected_threads() == 10
    assert ConnectOptions("tcp://elsewhere").expected_threads() == 0
    path = tmp_path / "cluster.yaml"
    path.write_text("class: dask_jobqueue.SLURMCluster\nworkers: 12")
    assert ConnectOptions(cluster_file=path).expected_threads() == 12
    assert ConnectOptions(cluster_file=path, n_workers=3).expected_threads() == 3


def test_only_a_cluster_that_replaces_workers_gives_lost_ones_up(tmp_path):
    name, path = "distributed.deploy.lost-worker-timeout", tmp_path / "tiny.yaml"
    usual = dask.config.get(name)
    path.write_text(
        "class: distributed.LocalCluster\n"
        "options: {n_workers: 1, processes: false, dashboard_address: '127.0.0.1:0'}\n"
    )
    with ConnectOptions(cluster_file=path).connect():
        assert dask.config.get(name) == "365 days"
    with ConnectOptions(cluster_file=path, n_workers=1).connect():
        assert dask.config.get(name) == usual


def test_the_settings_for_ones_own_scheduler_are_those_of_a_local_cluster():
    with dask.config.set(DASK_CONFIG):
        expected = {key: dask.config.get(key) for key in DASK_CONFIG}
    given = dask.config.collect(paths=[str(ROOT / "cluster" / "dask.yaml")], env={})
    assert {key: dask.config.get(key, config=given) for key in DASK_CONFIG} == expected


def test_tasks_that_nobody_awaits_print_nothing_while_a_client_is_open(scheduler, caplog):
    of_asyncio = logging.getLogger("asyncio")
    with caplog.at_level(logging.WARNING, "asyncio"):
        with joined(ConnectOptions(scheduler=scheduler)):
            of_asyncio.error("Task exception was never retrieved")
        assert not caplog.records
        of_asyncio.error("of others")
        assert [record.message for record in caplog.records] == ["of others"]
