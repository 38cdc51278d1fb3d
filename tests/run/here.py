"""Sweeps whose tasks run in this process, at once, and tasks that fail as often as a test says."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mkldist.bank.store import GramStore, list_banks
from mkldist.run import sweep_loop
from mkldist.run.probe import Environment
from mkldist.run.record_queue import Message
from mkldist.run.sweep import SweepOutcome, run_sweep
from mkldist.run.worker_pool import Needs
from mkldist.spec.model import SweepSpec
from tests.run.sweeps import sweep_text

TEXT = sweep_text({"uniform": [1.0, 10.0]}, repeats=3)
NEEDS = Needs("/out", "/banks")
FOUND = Environment("host", 1, 2**30, "/cache", 2**30, False, (), {})  # of a worker


class Future:
    """The end of a task."""

    def __init__(self, key: str, function: Callable[[Any], Any], task: Any) -> None:
        self.key, self.status, self.outcome = key, "finished", None
        try:
            self.outcome = function(task)
        except Exception as error:
            self.status, self.outcome = "error", error

    def add_done_callback(self, tell):
        tell(self)

    def result(self, timeout=None):
        return self.outcome

    exception = result

    def release(self):
        pass


class Client:
    """A cluster of this process alone."""

    status, dashboard_link = "running", ""

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.tasks: list[Any] = []
        self.messages: SimpleQueue[Message] = SimpleQueue()

    def nthreads(self):
        return {"here": self.n_threads}

    def submit(self, function, task, key, pure, workers=None):
        self.tasks.append(task)
        return Future(key, function, task)

    def cancel(self, futures, force):
        pass


class Failing:
    """A task that fails some times before it does its work."""

    def __init__(self, monkeypatch, name: str, error: Exception, times: int) -> None:
        self.real = getattr(sweep_loop, name)
        self.error, self.times, self.calls = error, times, 0
        self.__name__ = name
        monkeypatch.setattr(sweep_loop, name, self)

    def __call__(self, task):
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return self.real(task)


def spec_of(text: str) -> SweepSpec:
    return SweepSpec.model_validate(tomllib.loads(text))


def sweep(text: str, output: Path, **options: Any) -> SweepOutcome:
    return run_sweep(spec_of(text), origin=output.parent / "x.toml", output=output, **options)


def kept(root: Path) -> list[str]:
    return [bank for bank in list_banks(root) if not GramStore.open(root, bank).missing()]
