"""Sweeps on banks that workers hold together, beside those on banks in one memory."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from mkldist.results.schema import RunState
from mkldist.run.cluster import ConnectOptions
from mkldist.run.shards import SHARDS
from tests.run.sweeps import (
    many_kernels,
    misbehaving_methods,
    records,
    run_here,
    solutions,
    sweep_text,
    wait_until,
)

METHODS = {"level": [1.0, 10.0], "uniform": [1.0], "lp_mkl": [10.0], "rmkl": [1.0]}


def kept_bytes() -> int:
    return SHARDS.n_bytes


def test_a_sharded_bank_gives_the_results_of_one_in_memory_and_leaves_nothing(tmp_path, scheduler):
    run_here(sweep_text(METHODS, backend="sharded"), tmp_path / "sharded", scheduler)
    assert not (tmp_path / "banks").exists()
    with Client(scheduler, set_as_default=False) as client:
        assert not any(client.run(kept_bytes).values())
    run_here(sweep_text(METHODS, backend="memory"), tmp_path / "memory", scheduler)
    assert (tmp_path / "banks").exists()
    found = {name: records(tmp_path / name).values() for name in ("sharded", "memory")}
    assert [one.state for one in found["sharded"]] == [RunState.COMPLETE] * 10
    assert solutions(tmp_path / "sharded") == solutions(tmp_path / "memory")
    assert all(one.counters["bytes_moved"] > 0 for one in found["sharded"])
    assert not any("bytes_moved" in one.counters for one in found["memory"])


@pytest.mark.slow
@pytest.mark.parametrize("execution", ["shared", "isolated"])
def test_two_workers_with_a_shard_each_give_the_results_of_one_memory(tmp_path, execution):
    for backend in ("memory", "sharded"):
        text = many_kernels(METHODS, backend=backend, execution=execution, fit="all")
        with ConnectOptions(n_workers=2).connect() as client:
            run_here(text, tmp_path / backend, client.scheduler_info()["address"])
    assert len(solutions(tmp_path / "memory")) == 10
    assert solutions(tmp_path / "sharded") == solutions(tmp_path / "memory")


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["of the solver", "of a shard"])
def test_a_worker_killed_in_the_middle_has_its_shard_made_again(tmp_path, whose):
    """All solvers have asked for forms, and will ask for combinations, when the worker dies."""
    text = many_kernels({"slow": [float(c) for c in range(1, 12)]}, backend="sharded", repeats=1)
    killed: list[str] = []

    def kill(client: Any) -> None:
        workers: list[int] = []

        def both_hold_shards() -> bool:
            workers[:] = client.run(kept_bytes).values()
            return len(workers) == 2 and all(workers)

        wait_until(both_hold_shards, "both workers hold a shard")
        solving = [w for w, keys in client.processing().items() if any("solve" in k for k in keys)]
        others = client.run(os.getpid)
        for worker, pid in others.items():
            if (worker in solving) == (whose == "of the solver"):
                killed.append(worker)
                os.kill(pid, signal.SIGKILL)

    with misbehaving_methods(), ConnectOptions(n_workers=2).connect() as client:
        killer = threading.Thread(target=kill, args=(client,))
        killer.start()
        outcome = run_here(text, tmp_path / "killed", client.scheduler_info()["address"])
        killer.join()
        run_here(text, tmp_path / "quiet", client.scheduler_info()["address"])
    assert len(killed) == 1
    assert outcome.counts[RunState.COMPLETE] == 11
    assert solutions(tmp_path / "killed") == solutions(tmp_path / "quiet")


def limit_memory(further_bytes: int) -> None:
    """Allow this process so many bytes beyond those that it has."""
    import resource

    lines = Path("/proc/self/status").read_text().splitlines()
    [kib] = [line.split()[1] for line in lines if line.startswith("VmData:")]
    most = 1024 * int(kib) + further_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
def test_two_workers_solve_what_one_of_them_cannot_hold(tmp_path):
    """The system refuses each worker more than 600 MiB, and the bank has over 800 MiB."""
    outcomes = {}
    for backend in ("sharded", "memory"):
        text = many_kernels({"level": [10.0]}, backend=backend, repeats=1, fit="all")
        text = (
            text.replace("n = 80", "n = 320")
            .replace("num = 500", "num = 640")
            .replace("[splits]", "[splits]\ntrain_fraction = 0.9")
        )
        with ConnectOptions(n_workers=2).connect() as client:
            address = client.scheduler_info()["address"]
            warm = text.replace("num = 640", "num = 2")  # libraries and compiled code
            run_here(warm, tmp_path / f"{backend}-small", address)
            client.run(limit_memory, 600 * 2**20)
            outcomes[backend] = run_here(text, tmp_path / backend, address)
    [plan] = outcomes["sharded"].plan.banks
    assert plan.n_bytes > 800 * 2**20
    assert outcomes["sharded"].counts[RunState.COMPLETE] == 1
    assert outcomes["memory"].counts[RunState.FAILED] == 1
    [error] = [one.error for one in records(tmp_path / "memory").values()]
    assert "Unable to allocate" in error
