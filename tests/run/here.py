"""Sweeps in this process, tasks that fail as a test says, and what they use of a scheduler."""

import tomllib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

import pytest

from mkldist.bank.store import BankStore, list_banks
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
    return [bank for bank in list_banks(root) if not BankStore.open(root, bank).missing()]


class SchedulerInMemory:
    """A scheduler, and its client at the same time."""

    def __init__(self) -> None:
        self.queues: dict[str, list[Any]] = defaultdict(list)
        self.marks: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.n_open = 0
        self.status = "running"

    def set_metadata(self, keys: list[str], value: Any) -> None:
        place = self.marks
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = value

    def get_metadata(self, keys: list[str], default: Any) -> Any:
        place: Any = self.marks
        for key in keys:
            if key not in place:
                return default
            place = place[key]
        return place

    def publish_dataset(self, content: bytes, *, name: str, override: bool) -> None:
        assert override  # a killed coordinator may have left one
        self.files[name] = content

    def unpublish_dataset(self, name: str) -> None:
        del self.files[name]

    def get_dataset(self, name: str, default: Any) -> Any:
        return self.files.get(name, default)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """Have tasks of this process reach it."""
        scheduler = self

        class Queue:
            def __init__(self, name: str, client: Any, maxsize: int) -> None:
                assert (client, maxsize > 0) == (scheduler, True)
                self._waiting = scheduler.queues[name]
                scheduler.n_open += 1

            def put(self, message: Any, timeout: float) -> None:
                self._waiting.append(message)

            def get(self, *, batch: bool) -> list[Any]:
                return [self._waiting.pop(0) for _ in range(len(self._waiting))]

            def close(self) -> None:
                scheduler.n_open -= 1

        monkeypatch.setattr("distributed.Queue", Queue)
        monkeypatch.setattr("distributed.get_client", lambda: scheduler)
        return self
