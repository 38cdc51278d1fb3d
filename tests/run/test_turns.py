"""Isolated sweeps that are started side by side have the machine in turns."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from mkldist.run.cluster import ConnectOptions
from mkldist.run.tasks import exclusive_machine_lock
from tests.run.sweeps import (
    end,
    many_kernels,
    misbehaving_methods,
    record_times,
    records,
    start_process,
    sweep_text,
)

TEXT = sweep_text({"slow": [1.0, 2.0, 3.0]}, execution="isolated")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_runs_of_two_isolated_sweeps_do_not_overlap(tmp_path):
    outputs = [tmp_path / "one", tmp_path / "two"]
    with ExitStack() as stack:
        processes = []
        for output in outputs:
            processes.append(stack.enter_context(start_process(TEXT, output)))
            stack.callback(end, processes[-1])
        for process in processes:
            said, _ = process.communicate(timeout=600)
            assert process.returncode == 0, said
    spans = []
    for number, output in enumerate(outputs):
        ends = {name.split(".")[0]: at / 1e9 for name, at in record_times(output).items()}
        walls = {run: one.times["wall_seconds"] for run, one in records(output).items()}
        spans += [(ends[run] - walls[run], ends[run], number) for run in walls]
    assert len(spans) == 12
    spans.sort()
    assert not sum(later[0] < earlier[1] for earlier, later in pairwise(spans))


@pytest.mark.slow
def test_a_sweep_that_waits_for_its_turn_says_so_and_then_does_its_runs(tmp_path):
    output = tmp_path / "out"
    with ExitStack() as turn, start_process(TEXT, output) as process:
        assert turn.enter_context(exclusive_machine_lock(lambda: None))
        try:
            assert process.stdout is not None
            said = next(line for line in process.stdout if "waiting for another" in line)
            assert not record_times(output)
            turn.close()
            process.communicate(timeout=600)
        finally:
            end(process)
    assert "waiting for another isolated run on its machine: " in said
    assert "0 of 6 runs" in said
    assert process.returncode == 0
    assert len(record_times(output)) == 6


@pytest.mark.slow
def test_isolated_sweeps_on_the_same_workers_end_though_one_has_a_sharded_bank(tmp_path):
    """A worker whose thread waits for its turn does no work on its shard."""
    sharded = many_kernels({"slow": [1.0, 2.0, 3.0]}, backend="sharded", execution="isolated")
    with (
        misbehaving_methods(),
        ConnectOptions(n_workers=2).connect() as client,
        ExitStack() as ends,
    ):
        address = client.scheduler_info()["address"]
        processes = []
        for name, text in {"sharded": sharded, "memory": TEXT}.items():
            processes.append(start_process(text, tmp_path / name, "--scheduler", address))
            ends.callback(end, ends.enter_context(processes[-1]))
        for process in processes:
            said, _ = process.communicate(timeout=300)
            assert process.returncode == 0, said
    assert [len(record_times(tmp_path / name)) for name in ("sharded", "memory")] == [6, 6]
